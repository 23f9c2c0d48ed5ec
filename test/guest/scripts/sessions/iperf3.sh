# iperf3 over TCP, several connections, backwards, UDP, IPv4 and IPv6.
. /scripts/lib.sh
iperf3 -s -D --logfile /tmp/iperf3.server
wait_for eval '(exec 3<>/dev/tcp/127.0.0.1/5201) 2>/dev/null'
for args in "127.0.0.1" "::1 -P 2 -R" "127.0.0.1 -u -b 2M" "::1 -u -b 2M"; do
	idle() { iperf3 -c $args -t 1 --json >/tmp/iperf3.out; } # it refuses while it is busy
	wait_for idle
	grep -q '"end"' /tmp/iperf3.out
	if grep '"error"' /tmp/iperf3.out; then exit 1; fi
done
