# ip: addresses, routes, rules, neighbours and interfaces are changed, shown as Linux shows
# them, and told of; ping meets the routes.
. /scripts/lib.sh
ip link set lo up

# says CONDITION...: its output is what comes on the standard input.
says() {
	want=$(cat)
	got=$("$@" 2>&1) || true
	if [ "$(echo "$got" | sed 's/ *$//')" != "$want" ]; then
		printf '%s says\n%s\nand not\n%s\n' "$*" "$got" "$want"
		exit 1
	fi
}

(timeout 60 ip monitor address route rule link >/tmp/monitor 2>&1 & echo $! >/tmp/monitor.pid)
sleep 2
ip addr add 10.44.0.1/24 dev lo
says ip addr add 10.44.0.1/24 dev lo <<<'RTNETLINK answers: File exists'
says ip addr del 10.44.0.9/24 dev lo <<<'RTNETLINK answers: Cannot assign requested address'
ip addr add 10.44.0.2/24 dev lo label lo:two valid_lft 5000 preferred_lft 4000
says ip -4 -o addr show dev lo to 10.44.0.1 <<<'1: lo    inet 10.44.0.1/24 scope global lo\       valid_lft forever preferred_lft forever'
ip -4 -o addr show dev lo label lo:two | grep -q 'inet 10.44.0.2/24 scope global secondary dynamic lo:two'
ip addr del 10.44.0.2/24 dev lo

ip route add 10.55.0.0/16 via 10.44.0.7 dev lo
says ip route add 10.55.0.0/16 via 10.44.0.8 <<<'RTNETLINK answers: File exists'
if ip route add 10.56.0.0/16 via 10.99.0.1 dev lo; then exit 1; fi
says ip route change 10.55.0.0/16 dev lo metric 7 <<<'RTNETLINK answers: No such file or directory'
says ip route del 10.57.0.0/16 <<<'RTNETLINK answers: No such process'
ip route add blackhole 10.66.0.0/16
ip route add unreachable 10.67.0.0/16
ip route add prohibit 10.68.0.0/16 metric 5
says ip route show root 10.0.0.0/8 dev lo <<<'10.55.0.0/16 via 10.44.0.7'
says ip route show type blackhole <<<'blackhole 10.66.0.0/16'
says ip route show type prohibit <<<'prohibit 10.68.0.0/16 metric 5'
says ip route get 10.66.1.1 <<<'RTNETLINK answers: Invalid argument'
says ip route get 10.67.1.1 <<<'RTNETLINK answers: No route to host'
says ip route get 10.68.1.1 <<<'RTNETLINK answers: Permission denied'
says ping -c1 -W1 10.66.1.1 <<<'ping: connect: Invalid argument'
says ping -c1 -W1 10.67.1.1 <<<'ping: connect: No route to host'
ip route del blackhole 10.66.0.0/16
says ip route del unreachable 10.68.0.0/16 <<<'RTNETLINK answers: No such process'
ip route del 10.67.0.0/16
ip route flush proto boot type prohibit
ip route replace 10.55.0.0/16 dev lo
says ip route show root 10.55.0.0/16 <<<'10.55.0.0/16 dev lo scope link'
ip route del 10.55.0.0/16
says ip mroute </dev/null
says ip -6 route show table local dev lo <<<'local ::1 proto kernel metric 0 pref medium'

ip rule add from 10.44.0.0/24 table 100
ip rule show | grep -q '^32765:	from 10.44.0.0/24 lookup 100'
ip rule del from 10.44.0.0/24 table 100
ip link set lo mtu 1400
ip link show dev lo | grep -q 'mtu 1400'
ip link set lo mtu 65536
says ip link set nothing up <<<'Cannot find device "nothing"'
says ip maddr show dev lo <<'EOF'
1:	lo
	inet  224.0.0.1
	inet6 ff02::1
	inet6 ff01::1
EOF
ip addr del 10.44.0.1/24 dev lo
sleep 2
kill "$(cat /tmp/monitor.pid)"
says grep -v 'valid_lft\|link/\|lo:two\|eth0' /tmp/monitor <<'EOF'
1: lo    inet 10.44.0.1/24 scope global lo
local 10.44.0.1 dev lo table local proto kernel scope host src 10.44.0.1
local 10.44.0.0/24 dev lo table local proto kernel scope host src 10.44.0.1
broadcast 10.44.0.255 dev lo table local proto kernel scope link src 10.44.0.1
local 10.44.0.2 dev lo table local proto kernel scope host src 10.44.0.1
Deleted local 10.44.0.2 dev lo table local proto kernel scope host src 10.44.0.1
10.55.0.0/16 via 10.44.0.7 dev lo
blackhole 10.66.0.0/16
unreachable 10.67.0.0/16
prohibit 10.68.0.0/16 metric 5
Deleted blackhole 10.66.0.0/16
Deleted unreachable 10.67.0.0/16
Deleted prohibit 10.68.0.0/16 metric 5
10.55.0.0/16 dev lo scope link
Deleted 10.55.0.0/16 dev lo scope link
32765:	from 10.44.0.0/24 lookup 100
Deleted 32765:	from 10.44.0.0/24 lookup 100
1: lo: <LOOPBACK,UP,LOWER_UP> mtu 1400 qdisc noqueue state UNKNOWN group default
1: lo: <LOOPBACK,UP,LOWER_UP> mtu 65536 qdisc noqueue state UNKNOWN group default
Deleted 1: lo    inet 10.44.0.1/24 scope global lo
Deleted local 10.44.0.0/24 dev lo table local proto kernel scope host src 10.44.0.1
Deleted broadcast 10.44.0.255 dev lo table local proto kernel scope link src 10.44.0.1
Deleted local 10.44.0.1 dev lo table local proto kernel scope host src 10.44.0.1
EOF
