# Programs that look at the machine, and the settings of an ordinary server.
. /scripts/lib.sh
lscpu >/tmp/lscpu
grep -qE "^CPU\(s\): +$(nproc)\$" /tmp/lscpu
grep -q '^Thread(s) per core:' /tmp/lscpu
lscpu -e >/dev/null
lscpu -p=CPU,CORE,SOCKET,ONLINE >/dev/null
free >/dev/null
vmstat >/dev/null
lsipc >/dev/null
lsblk >/dev/null
top -bn1 >/dev/null
sysctl -p /scripts/sessions/sysctl.conf
test "$(sysctl -n vm.overcommit_memory net.core.somaxconn kernel.hostname | tr '\n' ' ')" = "1 4096 box "
# A setting of a module that is not loaded: the others of the file are made all the same.
printf 'net.core.default_qdisc=fq\nnet.ipv4.tcp_congestion_control=bbr\nvm.swappiness=20\n' >/tmp/bbr.conf
! sysctl -p /tmp/bbr.conf
test "$(sysctl -n vm.swappiness)" = 20
# The CPU time of what spins grows, the machine's with it, and idle is not more than passed.
timeout 2 sh -c 'while :; do :; done' || true
read -r _ user _ sys idle _ </proc/stat
test $((user + sys)) -ge 100
grep -q '^ctxt [1-9]' /proc/stat
