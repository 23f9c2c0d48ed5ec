# PostgreSQL, synchronous commits.
. /scripts/lib.sh
postgres_init
postgres_start
echo "fsync $(sql -c 'show fsync'), synchronous_commit $(sql -c 'show synchronous_commit')"
sql -c 'create table t(id int primary key, v text)'
for i in $(seq 100); do echo "insert into t values($i, repeat('$i ', $i));"; done | sql
echo "begin; delete from t; rollback;" | sql
sql -c 'create index on t(v)' -c 'vacuum full t' -c checkpoint
want=$(sql -c 'select count(*), md5(string_agg(v, chr(10) order by id)) from t')
postgres_stop
postgres_start
[ "$(sql -c 'select count(*), md5(string_agg(v, chr(10) order by id)) from t')" = "$want" ]
postgres_stop
echo "postgres: ${want%%|*} rows"
