# dhclient and udhcpc get an address from QEMU's network, by packets of their own; ping.
. /scripts/lib.sh
ip addr show dev eth0 | grep -q 'inet 10.0.2.15/24'
mkdir -p /var/lib/dhcp
udhcpc -i eth0 -n -q -f -s /bin/true 2>&1 | grep 'lease of 10.0.2.15 obtained from 10.0.2.2'
ip addr flush dev eth0
[ -z "$(ip -4 addr show dev eth0)" ]
[ -z "$(ip route)" ] # they went with the last address
[ "$(ip route get 10.0.2.2 2>&1)" = 'RTNETLINK answers: Network is unreachable' ]
touch /etc/fstab
dhclient -v -1 -pf /tmp/dhclient.pid eth0 2>&1 | grep 'bound to 10.0.2.15'
ip -4 addr show dev eth0 | grep 'inet 10.0.2.15/24'
ip route | grep 'default via 10.0.2.2 dev eth0'
ping -c1 -W20 10.0.2.2
dhclient -v -r -pf /tmp/dhclient.pid eth0 2>&1 | grep DHCPRELEASE
[ -z "$(ip -4 addr show dev eth0)" ]
ip addr add 10.0.2.15/24 dev eth0
ip route add default via 10.0.2.2
ping -c2 -i0.2 127.0.0.1 | grep '2 received'
ping -6 -c1 ::1 | grep '1 received'
ping -c1 -s 3000 -I 127.0.0.5 127.0.0.1 | grep '3008 bytes from 127.0.0.1'
