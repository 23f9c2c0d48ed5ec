# Programs that look at the machine, and the settings of an ordinary server.
. /scripts/lib.sh
lscpu >/tmp/lscpu
grep -qE "^CPU\(s\): +$(nproc)\$" /tmp/lscpu
grep -q '^Thread(s) per core:' /tmp/lscpu
lscpu -e >/dev/null
lscpu -p=CPU,CORE,SOCKET,ONLINE >/dev/null
free >/dev/null
vmstat | tail -n 1
lsipc >/dev/null
TERM=linux top -bn1 | grep "load average"
sysctl -p /scripts/sessions/sysctl.conf
test "$(sysctl -n vm.overcommit_memory net.core.somaxconn kernel.hostname | tr '\n' ' ')" = "1 4096 box "
# A setting of a module that is not loaded: the others of the file are made all the same.
printf 'net.core.default_qdisc=fq\nnet.ipv4.tcp_congestion_control=bbr\nvm.swappiness=20\n' >/tmp/bbr.conf
if sysctl -p /tmp/bbr.conf; then exit 1; fi
test "$(sysctl -n vm.swappiness)" = 20
# The CPU time of what spins is the machine's.
timeout 2 sh -c 'while :; do :; done' || true
read -r _ user _ sys idle _ </proc/stat
test $((user + sys)) -ge 100
grep -q '^ctxt [1-9]' /proc/stat
