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
vmstat -m | grep -q '^kmalloc-'
vmstat -d | grep -q '^vda '
slabtop -o | grep -q 'kmalloc-'
# One namespace of each of the eight kinds, with its number.
test "$(lsns -n -o NS,TYPE | sort | tr -s ' \n' ' ')" = "4026531834 time 4026531835 cgroup 4026531836 pid 4026531837 user 4026531838 uts 4026531839 ipc 4026531840 net 4026531841 mnt "
test "$(ps -o netns= -p $$ | tr -d ' ')" = 4026531840
nsenter -t $$ -m -u -i -n -p true
iostat -x | grep -q '^vda '
numactl --hardware | grep -q '^available: 1 nodes'
numastat -p $$ | grep -q '^Total'
# What came from the disk and goes there, by process.
pidstat -d -p SELF >/dev/null
head -c 5000000 /dev/zero >/root/file
sync
echo 3 >/proc/sys/vm/drop_caches
test "$(bash -c 'read -r -N 100000 text </root/file; sed -n s/^read_bytes:.//p /proc/$$/io' 2>/dev/null)" -ge 100000
bash -c 'printf %100000s >/root/file; sed -n s/^write_bytes:.//p /proc/$$/io' >/tmp/written
test "$(cat /tmp/written)" -ge 100000
grep -q '^some avg10=.* total=[1-9]' /proc/pressure/io
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
