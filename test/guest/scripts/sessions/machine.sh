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
