# Sourced by the other scripts, which are process 1 of a guest that runs from a disk.
set -eu
export HOME=/root LC_ALL=C PATH=/usr/lib/postgresql/15/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin

# wait_for COMMAND...: until it succeeds, for two minutes of a slow machine.
wait_for() {
	for _ in $(seq 600); do
		if "$@" >/dev/null 2>&1; then return 0; fi
		sleep 0.2
	done
	echo "waited in vain for: $*"
	exit 1
}

redis_start() {
	mkdir -p /srv/redis
	redis-server --dir /srv/redis --port 6379 --appendonly yes --appendfsync always --save '' \
		--daemonize yes --logfile /srv/redis/log >/dev/null
	wait_for redis-cli ping
	# While it loads its file the server answers, but not to this.
	wait_for eval '[ "$(redis-cli dbsize)" -ge 0 ]'
}

as_postgres() { setpriv --reuid 100 --regid 100 --clear-groups "$@"; }
sql() { psql -h /tmp -U postgres -qtA -v ON_ERROR_STOP=1 postgres "$@"; }

postgres_init() {
	echo 'postgres:x:100:100::/srv/postgres:/bin/bash' >>/etc/passwd
	echo 'postgres:x:100:' >>/etc/group
	mkdir -p /srv/postgres
	chown 100:100 /srv/postgres
	(cd /srv/postgres && as_postgres initdb -D /srv/postgres/data --no-locale -E UTF8 -A trust >/srv/initdb.log 2>&1) ||
		{ cat /srv/initdb.log; exit 1; }
}

postgres_start() {
	(cd /srv/postgres && as_postgres pg_ctl -D data -w -t 300 -l log -o '-k /tmp' start >/dev/null) ||
		{ cat /srv/postgres/log; exit 1; }
}

postgres_stop() { (cd /srv/postgres && as_postgres pg_ctl -D data -w -t 300 -m fast stop >/dev/null); }
