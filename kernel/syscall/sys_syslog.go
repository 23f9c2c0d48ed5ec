package syscall

import (
	"hardtack/abi/linux"
	"hardtack/kernel/base/settings"
	"hardtack/kernel/fs/devfs"
	"hardtack/kernel/process/proc"
)

// The kernel's log.
var syslogCalls = []Call{
	{linux.SYS_syslog, "syslog", sysSyslog, "works except that the console's level has no effect: the log does not go there"},
}

// sysSyslog is syslog(int type, char *buf, int len).
func sysSyslog(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	kind, n := a.Int(0), a.Int(2)
	open := kind == linux.SYSLOG_ACTION_READ_ALL || kind == linux.SYSLOG_ACTION_SIZE_BUFFER
	if (!open || settings.DmesgRestrict.Get() != 0) && !devfs.MayReadLog(t.Cred()) {
		return 0, linux.EPERM
	}
	l := &devfs.Messages
	switch kind {
	case linux.SYSLOG_ACTION_CLOSE, linux.SYSLOG_ACTION_OPEN, linux.SYSLOG_ACTION_CONSOLE_OFF, linux.SYSLOG_ACTION_CONSOLE_ON:
		return 0, 0
	case linux.SYSLOG_ACTION_READ, linux.SYSLOG_ACTION_READ_ALL, linux.SYSLOG_ACTION_READ_CLEAR:
		return readLog(t, a, kind, int(n))
	case linux.SYSLOG_ACTION_CLEAR:
		l.Clear()
		return 0, 0
	case linux.SYSLOG_ACTION_CONSOLE_LEVEL:
		if n < 1 || n > 8 {
			return 0, linux.EINVAL
		}
		return 0, 0
	case linux.SYSLOG_ACTION_SIZE_UNREAD:
		return uint64(l.Unread()), 0
	case linux.SYSLOG_ACTION_SIZE_BUFFER:
		return devfs.LogSize, 0
	}
	return 0, linux.EINVAL
}

// readLog copies a part of the log out.
func readLog(t *proc.Thread, a *Args, kind int32, n int) (uint64, linux.Errno) {
	if a[1] == 0 || n < 0 {
		return 0, linux.EINVAL
	}
	if n == 0 {
		return 0, 0
	}
	var text string
	if kind == linux.SYSLOG_ACTION_READ {
		var e linux.Errno
		if text, e = devfs.Messages.Next(&t.Ctx, n); e != 0 {
			return 0, e
		}
	} else {
		text = devfs.Messages.Last(n, kind == linux.SYSLOG_ACTION_READ_CLEAR)
	}
	done, e := t.Mem.CopyOut(a.Addr(1), []byte(text))
	if e != 0 {
		return 0, e
	}
	return uint64(done), 0
}
