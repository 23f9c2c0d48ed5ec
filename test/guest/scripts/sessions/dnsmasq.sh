# dnsmasq over UDP and TCP, IPv4 and IPv6, with sockets bound to addresses and not.
. /scripts/lib.sh
printf '10.9.8.7 hello.test\nfd00::5 hello.test\n' >/tmp/names
ask() { [ "$(dig +short +time=5 +tries=2 "$1" "@$2" hello.test "$3")" = "$4" ]; }
for how in --bind-interfaces --bind-dynamic --no-negcache; do
	dnsmasq --keep-in-foreground --no-resolv --no-hosts --addn-hosts=/tmp/names --user=root --pid-file= \
		--log-facility=- $how --interface=lo &
	wait_for ask +notcp 127.0.0.1 A 10.9.8.7
	for server in 127.0.0.1 ::1; do
		for by in +notcp +tcp; do
			ask $by $server A 10.9.8.7
			ask $by $server AAAA fd00::5
		done
	done
	kill $!
	wait $! || true
done
