# Debian's servers and tools in sessions like those of a person at work, each told
# with its outcome. The arguments name scripts of sessions/.
. /scripts/lib.sh

# What maintainer scripts do when packages are installed: shadow passwords, the
# ordinary chain of PAM, a place for who is logged in.
pwconv && grpconv
for kind in auth account password session; do
	case $kind in
	session) echo "session required pam_unix.so" ;;
	*) printf '%s [success=1 default=ignore] pam_unix.so\n%s requisite pam_deny.so\n%s required pam_permit.so\n' $kind $kind $kind ;;
	esac >/etc/pam.d/common-$kind
done
cp /etc/pam.d/common-session /etc/pam.d/common-session-noninteractive
mkdir -p /run/sshd /run/lock
touch /run/utmp
mount -t tmpfs tmpfs /tmp
useradd -m -s /bin/bash joe
echo joe:secret | chpasswd -c SHA256 -s 1000
# Close to the end of a minute, so that cron has something to do soon.
date -s "@$((($(date +%s) / 60 + 1) * 60 - 5))" >/dev/null

for name in "$@"; do
	if timeout 600 bash -eu "/scripts/sessions/$name.sh" >"/tmp/$name.log" 2>&1; then
		echo "session $name: ok"
	else
		echo "session $name: failed"
		tail -n 60 "/tmp/$name.log"
	fi
done
