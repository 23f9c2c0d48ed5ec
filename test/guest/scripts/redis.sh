# Redis with every write durable, stopped and started again.
. /scripts/lib.sh
redis_start
redis-benchmark -t set,lpush -n 300 -c 4 -r 100000 -q >/dev/null
redis-cli set key value >/dev/null
before=$(redis-cli dbsize)
digest=$(redis-cli debug digest 2>/dev/null || true)
redis-cli shutdown >/dev/null 2>&1 || true
redis-check-aof /srv/redis/appendonlydir/*.incr.aof
redis_start
[ "$(redis-cli dbsize)" = "$before" ] || { echo "$(redis-cli dbsize) keys, before $before"; exit 1; }
[ "$(redis-cli debug digest 2>/dev/null || true)" = "$digest" ] || { echo "the data differ"; exit 1; }
redis-cli get key
redis-cli bgrewriteaof >/dev/null
wait_for eval 'redis-cli info persistence | busybox grep -q aof_rewrite_in_progress:0'
redis-cli shutdown >/dev/null 2>&1 || true
