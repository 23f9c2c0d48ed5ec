# nc, socat, curl, dig and getent talk to each other over TCP, UDP, names in the file system
# and names without one.
. /scripts/lib.sh
rm -f /tmp/s?

nc.openbsd -l 127.0.0.1 7001 >/tmp/s1 &
wait_for grep -q :1B59 /proc/net/tcp
echo hello | nc.openbsd -N 127.0.0.1 7001
wait $!
[ "$(cat /tmp/s1)" = hello ]
nc.openbsd -zv 127.0.0.1 7002 2>&1 | grep -q 'Connection refused\|failed'
nc.openbsd -lU /tmp/s2 >/tmp/s3 &
wait_for test -S /tmp/s2
echo by name | nc.openbsd -N -U /tmp/s2
wait $!
[ "$(cat /tmp/s3)" = 'by name' ]

socat -t60 UNIX-LISTEN:/tmp/s4 EXEC:'tr a-z A-Z' &
wait_for test -S /tmp/s4
[ "$(echo shout | socat -t60 - UNIX-CONNECT:/tmp/s4)" = SHOUT ]
wait
socat -u ABSTRACT-RECV:abs OPEN:/tmp/s5,creat &
wait_for grep -q @abs /proc/net/unix
echo abstract | socat -u - ABSTRACT-SENDTO:abs
wait_for grep -q abstract /tmp/s5
kill %% && wait || true
socat -u UDP4-RECVFROM:8003,ip-add-membership=224.1.1.1:127.0.0.1 OPEN:/tmp/s6,creat &
wait_for grep -q :1F43 /proc/net/udp
grep -q 010101E0 /proc/net/igmp
echo multicast | socat -u - UDP4-DATAGRAM:224.1.1.1:8003,ip-multicast-if=127.0.0.1
wait
[ "$(cat /tmp/s6)" = multicast ]
socat -t60 TCP6-LISTEN:8004,ipv6only=0,fork SYSTEM:'cat; echo $SOCAT_PEERADDR' &
wait_for grep -q :1F44 /proc/net/tcp6
echo a | socat -t60 - TCP4:127.0.0.1:8004 | grep -q ffff
echo a | socat -t60 - 'TCP6:[::1]:8004' | grep -q 0001
kill %% && wait || true
socat -t60 PTY,link=/tmp/s7,raw,echo=0 SYSTEM:'read x; echo got $x' &
wait_for test -e /tmp/s7
exec 5<>/tmp/s7
echo ping >&5
read -r -t 20 line <&5
exec 5>&-
[ "$line" = 'got ping' ]

mkdir -p /tmp/www && echo page >/tmp/www/page
busybox httpd -f -p 127.0.0.1:8005 -h /tmp/www &
wait_for grep -q :1F45 /proc/net/tcp
[ "$(curl -s http://127.0.0.1:8005/page)" = page ]
[ "$(curl -s --interface lo --local-port 9000-9010 http://localhost:8005/page)" = page ]
[ "$(curl -s -o /dev/null -w '%{http_code}' http://127.0.0.1:8005/none)" = 404 ]
rc=0; curl -s http://127.0.0.1:9/ || rc=$?
[ $rc = 7 ]
kill %% && wait || true

grep -q localhost /etc/hosts || echo '127.0.0.1 localhost' >>/etc/hosts
getent hosts localhost | grep -q 'localhost'
getent ahostsv4 localhost | grep -q '^127.0.0.1 *STREAM'
[ "$(getent services 22/tcp | cut -d' ' -f1)" = ssh ] || [ ! -e /etc/services ]
rc=0; dig +time=2 +tries=1 @127.0.0.1 localhost >/tmp/dig || rc=$?
[ $rc = 9 ]
