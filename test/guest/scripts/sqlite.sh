# SQLite, with each kind of journal, every transaction durable.
. /scripts/lib.sh
cd /root
for mode in wal delete truncate persist; do
	sqlite3 $mode.db "pragma journal_mode=$mode; pragma synchronous=full; create table t(id integer primary key, v text);"
	{
		echo "pragma synchronous=full;"
		for i in $(seq 40); do echo "begin; insert into t(v) values(hex(randomblob($((i * 30))))); commit;"; done
		echo "begin; delete from t; rollback;"
	} | sqlite3 $mode.db
	echo "$mode: $(sqlite3 $mode.db 'pragma integrity_check; select count(*), sum(length(v)) from t;' | tr '\n' ' ')"
done
