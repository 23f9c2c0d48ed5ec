# sshd: password and key, commands, copies, forwarded ports, a terminal.
. /scripts/lib.sh
ssh-keygen -q -t ed25519 -N '' -f /etc/ssh/ssh_host_ed25519_key
test -e /etc/ssh/sshd_config || cp /usr/share/openssh/sshd_config /etc/ssh/
ssh-keygen -q -t ed25519 -N '' -f /root/key
install -d -o joe -m 700 /home/joe/.ssh
install -o joe -m 600 /root/key.pub /home/joe/.ssh/authorized_keys
# The default key exchange takes seconds of an emulated machine.
echo 'KexAlgorithms curve25519-sha256' >/etc/ssh/ssh_config.d/test.conf
/usr/sbin/sshd -E /tmp/sshd.out
o="-o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR"
key="$o -o BatchMode=yes -i /root/key"

[ "$(sshpass -p secret ssh $o joe@127.0.0.1 'id -un; cat /proc/self/loginuid')" = "joe
$(id -u joe)" ]
if sshpass -p wrong ssh $o -o NumberOfPasswordPrompts=1 joe@127.0.0.1 true; then
	echo 'a wrong password is right'
	exit 1
fi
rc=0
ssh $key joe@::1 'exit 7' || rc=$?
[ $rc = 7 ]

dd if=/dev/urandom of=/tmp/data bs=64k count=16 2>/dev/null
scp $key /tmp/data joe@127.0.0.1:data
scp -O $key joe@127.0.0.1:data /tmp/data2
cmp /tmp/data /tmp/data2
printf 'put /tmp/data up\nls -l up\nget up /tmp/data3\nrm up\nmkdir d\nrmdir d\ndf\n' | sftp -b - $key joe@127.0.0.1
cmp /tmp/data /tmp/data3

ssh $key -f -N -o ExitOnForwardFailure=yes -L 9000:127.0.0.1:22 -R 9001:127.0.0.1:22 joe@127.0.0.1
for port in 9000 9001; do
	exec 3<>/dev/tcp/127.0.0.1/$port
	read -r -t 60 line <&3
	exec 3>&-
	case $line in SSH-2.0-*) ;; *) echo "port $port: $line"; exit 1 ;; esac
done
expect /scripts/sessions/login.exp
