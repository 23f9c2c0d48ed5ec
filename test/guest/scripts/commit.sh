# Three databases that commit until the machine is killed. A line is printed after
# each commit: so much must be there later.
. /scripts/lib.sh
mkdir -p /srv/sqlite
sqlite3 /srv/sqlite/db 'pragma journal_mode=wal; create table if not exists t(id integer primary key);' >/dev/null
redis_start
postgres_start
sql -c 'create table if not exists c(id int primary key)'
sqlite() {
	for i in $(seq 100000); do
		sqlite3 /srv/sqlite/db "pragma synchronous=full; insert into t values($i);"
		echo "committed sqlite $i"
	done
}
redis() {
	for i in $(seq 100000); do
		redis-cli set "n$i" "$i" >/dev/null
		echo "committed redis $i"
	done
}
postgres() {
	for i in $(seq 100000); do
		sql -c "insert into c values($i)"
		echo "committed postgres $i"
	done
}
sqlite &
redis &
postgres &
wait
