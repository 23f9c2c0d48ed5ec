package debian

import "strings"

// appletNames are commands of Debian's busybox that people type.
const appletNames = `
awk basename bc bunzip2 bzcat cat chgrp chmod chown clear cmp comm cp cut date dd df diff dirname
dmesg dos2unix du echo ed egrep env expand expr false fgrep find fold free ftpget grep groups gunzip
gzip halt head hexdump hostname id ifconfig ip kill killall less ln logname ls lsof md5sum mkdir mkfifo
mknod mktemp more mount mv nc netstat nice nl nohup nproc nslookup od paste patch pgrep pidof ping pkill
poweroff printenv printf ps pwd readlink realpath reboot renice reset rev rm rmdir route sed seq setsid
sha1sum sha256sum sha512sum shuf sleep sort split stat strings stty sum sync sysctl tac tail tar tee
telnet test time timeout top touch tr traceroute tree true truncate tty tsort umount uname unexpand uniq
unix2dos unlink unxz unzip uptime usleep uudecode uuencode vi watch wc wget which who whoami xargs xxd
xz yes zcat`

// applets links the commands that no package has brought to busybox.
func (f *finisher) applets() error {
	for _, name := range strings.Fields(appletNames) {
		taken := false
		for _, dir := range []string{"usr/bin/", "usr/sbin/", "usr/local/bin/"} {
			taken = taken || f.exists(dir+name)
		}
		if taken {
			continue
		}
		if err := f.link("usr/bin/"+name, "busybox"); err != nil {
			return err
		}
	}
	return nil
}
