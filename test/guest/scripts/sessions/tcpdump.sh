# tcpdump with filters on lo and on all interfaces, to the screen and to a file.
. /scripts/lib.sh
id tcpdump >/dev/null 2>&1 || useradd -r -s /usr/sbin/nologin tcpdump

# listening FILE: tcpdump has begun to listen.
listening() { wait_for grep -q 'listening on' "$1"; }

timeout 100 tcpdump -l -n -i lo -c 3 'udp and dst port 5353' >/tmp/udp 2>/tmp/udp.err &
listening /tmp/udp.err
for word in one three; do
	echo $word | socat -u - UDP4-SENDTO:127.0.0.1:5353
	echo other | socat -u - UDP4-SENDTO:127.0.0.1:5354
done
echo six | socat -u - 'UDP6-SENDTO:[::1]:5353'
wait $!
grep -q 'IP 127.0.0.1.* > 127.0.0.1.5353: .*' /tmp/udp
grep -q 'IP6 ::1.* > ::1.5353: .*' /tmp/udp
[ "$(grep -c 5354 /tmp/udp)" = 0 ]
grep -q '^3 packets captured' /tmp/udp.err

# A whole connection: the handshake, data both ways, the end.
timeout 100 tcpdump -n -i lo -w /tmp/tcp.pcap 'tcp port 7777' 2>/tmp/tcp.err &
dump=$!
listening /tmp/tcp.err
socat -t60 TCP-LISTEN:7777,reuseaddr EXEC:'tr a-z A-Z' &
wait_for grep -q :1E61 /proc/net/tcp
[ "$(echo hello | socat -t60 - TCP:127.0.0.1:7777)" = HELLO ]
sleep 1
kill -INT $dump
wait $dump
tcpdump -n -r /tmp/tcp.pcap >/tmp/tcp 2>/dev/null
for flags in 'Flags \[S\]' 'Flags \[S\.\]' 'Flags \[P\.\].*length 6' 'Flags \[F\.\]'; do
	grep -q "$flags" /tmp/tcp
done
[ "$(tcpdump -n -r /tmp/tcp.pcap 'tcp[tcpflags] & tcp-syn != 0' 2>/dev/null | wc -l)" = 2 ]

timeout 100 tcpdump -l -n -i any -c 2 icmp >/tmp/any 2>/tmp/any.err &
listening /tmp/any.err
ping -c1 127.0.0.1 >/dev/null
wait $!
grep -q 'lo .*ICMP echo request' /tmp/any
tcpdump -D | grep -q 'lo \[Up, Running, Loopback\]'
