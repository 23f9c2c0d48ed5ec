# After the machine was killed: verify.sh SQLITE REDIS POSTGRES says how many commits
# each had announced.
. /scripts/lib.sh
[ "$(sqlite3 /srv/sqlite/db 'pragma integrity_check')" = ok ]
n=$(sqlite3 /srv/sqlite/db "select count(*) from t where id <= $1")
[ "$n" = "$1" ] || { echo "sqlite: $n of $1 rows"; exit 1; }
redis_start
for i in $(seq "$2"); do echo "get n$i"; done | redis-cli >/tmp/got
seq "$2" | cmp - /tmp/got || { echo "redis: keys are missing"; exit 1; }
redis-cli shutdown >/dev/null 2>&1 || true
rm -f /tmp/.s.PGSQL*
postgres_start
n=$(sql -c "select count(*) from c where id <= $3")
[ "$n" = "$3" ] || { echo "postgres: $n of $3 rows"; exit 1; }
postgres_stop
echo "verified $1 $2 $3"
