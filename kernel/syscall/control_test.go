package syscall_test

import (
	"fmt"

	"golang.org/x/sys/unix"

	"hardtack/abi/linux"
)

func controls(p *prog) {
	p.must(linux.SYS_mkdir, p.str("/dev/pts"), 0o755)
	p.must(linux.SYS_mount, p.str("devpts"), p.str("/dev/pts"), p.str("devpts"), 0, p.str("newinstance,ptmxmode=0666"))
	arg := p.room(512)
	requests := []uint64{unix.TIOCINQ, unix.TIOCOUTQ, unix.TCGETS, unix.TIOCGWINSZ, unix.TIOCGPGRP, unix.TIOCGSID, unix.TIOCGPTN, unix.TIOCGETD, unix.TIOCEXCL, unix.TIOCNXCL,
		unix.FS_IOC_GETFLAGS, 0x801c581f, unix.BLKGETSIZE64, unix.BLKSSZGET, 2, unix.TIOCSTI, unix.TCFLSH, unix.TCSBRK, unix.TCXONC, unix.TIOCNOTTY, unix.TIOCSPTLCK, 0x80045430, 0xdeadbeef, 0}
	for _, k := range p.kinds() {
		for _, r := range requests {
			p.do(fmt.Sprintf("ioctl(%s, %#x)", k.name, r), linux.SYS_ioctl, k.fd, r, arg)
		}
		for _, r := range []uint64{0x5421, 0x5452} { // FIONBIO, FIOASYNC
			for _, v := range []uint32{1, 0} {
				p.do(fmt.Sprintf("ioctl(%s, %#x, %d)", k.name, r, v), linux.SYS_ioctl, k.fd, r, p.ints(v))
				p.do("flags", linux.SYS_fcntl, k.fd, unix.F_GETFL)
			}
			p.do("from nowhere", linux.SYS_ioctl, k.fd, r, 8)
		}
		p.do("FIOCLEX", linux.SYS_ioctl, k.fd, 0x5451)
		p.do("descriptor flags", linux.SYS_fcntl, k.fd, unix.F_GETFD)
		p.do("FIONCLEX", linux.SYS_ioctl, k.fd, 0x5450)
		p.next = arena + 1<<16
	}
}

func terminals(p *prog) {
	p.must(linux.SYS_mkdir, p.str("/dev/pts"), 0o755)
	p.must(linux.SYS_mount, p.str("devpts"), p.str("/dev/pts"), p.str("devpts"), 0, p.str("newinstance,ptmxmode=0666"))
	arg := p.room(512)
	m := p.open("/dev/pts/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_NONBLOCK)
	p.do("number", linux.SYS_ioctl, m, unix.TIOCGPTN, arg)
	p.note("%d", p.u32(arg))
	name := fmt.Sprintf("/dev/pts/%d", p.u32(arg))
	p.do("locked", linux.SYS_open, p.str(name), unix.O_RDWR|unix.O_NOCTTY)
	p.do("unlock", linux.SYS_ioctl, m, unix.TIOCSPTLCK, p.ints(0))
	s := p.do("open", linux.SYS_open, p.str(name), unix.O_RDWR|unix.O_NOCTTY|unix.O_NONBLOCK)
	for _, fd := range []named{{"master", m}, {"terminal", s}} {
		p.do("size "+fd.name, linux.SYS_ioctl, fd.fd, unix.TIOCGWINSZ, arg)
		p.show("it", arg, 8)
		p.do("set size", linux.SYS_ioctl, fd.fd, unix.TIOCSWINSZ, p.give([]byte{24, 0, 80, 0, 0, 0, 0, 0}))
		p.do("modes", linux.SYS_ioctl, fd.fd, unix.TCGETS, arg)
		p.show("they", arg, 36)
		p.do("to nowhere", linux.SYS_ioctl, fd.fd, unix.TCGETS, 8)
		for _, r := range []uint64{unix.TCSETS, unix.TCSETSW, unix.TCSETSF} {
			p.do("set modes", linux.SYS_ioctl, fd.fd, r, arg)
			p.do("from nowhere", linux.SYS_ioctl, fd.fd, r, 8)
		}
		p.do("group", linux.SYS_ioctl, fd.fd, unix.TIOCGPGRP, arg)
		p.do("session", linux.SYS_ioctl, fd.fd, unix.TIOCGSID, arg)
		p.do("discipline", linux.SYS_ioctl, fd.fd, unix.TIOCGETD, arg)
		p.do("flush", linux.SYS_ioctl, fd.fd, unix.TCFLSH, 2)
		p.do("flush what", linux.SYS_ioctl, fd.fd, unix.TCFLSH, 9)
		p.do("exclusive", linux.SYS_ioctl, fd.fd, 0x80045440, arg)
		p.do("packet mode", linux.SYS_ioctl, fd.fd, unix.TIOCPKT, p.ints(0))
		p.do("no controlling terminal", linux.SYS_ioctl, fd.fd, unix.TIOCNOTTY, 0)
	}
	p.do("type", linux.SYS_write, m, p.str("line\n"), 5)
	p.do("wait for it", linux.SYS_poll, p.ints(uint32(s), 1), 1, 5000)
	p.do("how much", linux.SYS_ioctl, s, unix.TIOCINQ, arg)
	p.note("%d", p.u32(arg))
	n := p.do("read", linux.SYS_read, s, arg, 100)
	p.show("it", arg, int(min(n, 16)))
	p.do("echo", linux.SYS_read, m, arg, 100)
	p.show("it", arg, 6)
	p.do("print", linux.SYS_write, s, p.str("a\nb\n"), 4)
	p.do("see", linux.SYS_read, m, arg, 100)
	p.show("it", arg, 6)
	p.do("half a line", linux.SYS_write, m, p.str("abc"), 3)
	p.do("nothing yet", linux.SYS_read, s, arg, 100)
	p.do("erase and end", linux.SYS_write, m, p.str("\x7f\x7fz\x04"), 4)
	p.do("read", linux.SYS_read, s, arg, 100)
	p.show("it", arg, 4)
	p.close(s)
	p.do("nobody there", linux.SYS_read, m, arg, 1000)
	p.do("then", linux.SYS_read, m, arg, 1000)
	p.do("poll", linux.SYS_poll, p.ints(uint32(m), 0xffff), 1, 0)
}

func machineNames(p *prog) {
	buf := p.room(512)
	p.do("sethostname", linux.SYS_sethostname, p.str("ship"), 4)
	p.do("setdomainname", linux.SYS_setdomainname, p.str("sea"), 3)
	p.do("uname", linux.SYS_uname, buf)
	p.show("node", buf+65, 8)
	p.show("machine", buf+4*65, 8)
	p.show("domain", buf+5*65, 8)
	p.do("uname nowhere", linux.SYS_uname, 8)
	p.do("sethostname long", linux.SYS_sethostname, buf, 65)
	p.do("sethostname negative", linux.SYS_sethostname, buf, neg(1))
	p.do("sethostname nowhere", linux.SYS_sethostname, 8, 4)
	p.do("sysinfo", linux.SYS_sysinfo, buf)
	p.do("sysinfo nowhere", linux.SYS_sysinfo, 8)
	p.do("personality", linux.SYS_personality, ^uint64(0)>>32)
	p.do("unshare nothing", linux.SYS_unshare, 0)
	p.do("unshare unknown", linux.SYS_unshare, 1)
	p.do("unshare files", linux.SYS_unshare, unix.CLONE_FILES|unix.CLONE_FS|unix.CLONE_SYSVSEM)
	p.do("setns of null", linux.SYS_setns, 0, 0)
	p.do("setns of nothing", linux.SYS_setns, 277, 0)
	for _, c := range []uint64{unix.LINUX_REBOOT_CMD_CAD_OFF, 7} {
		p.do("reboot without the magic", linux.SYS_reboot, 1, 2, c)
	}
	p.do("syslog", linux.SYS_syslog, 99, buf, 10)
	p.do("syslog negative", linux.SYS_syslog, 3, buf, neg(1))
	p.do("ustat", linux.SYS_ustat, 99999, buf)
	p.do("sysfs", linux.SYS_sysfs, 99, 0, 0)
	for _, nr := range []uint64{134, 156, 174, 177, 178, 180, 181, 182, 183, 184, 185, 211, 214, 215, 236, 511, 600, 100000} {
		p.do(fmt.Sprintf("call %d", nr), nr, 0, 0, 0)
	}
	p.do("rseq size", linux.SYS_rseq, buf, 31, 0, 0)
	p.do("restart_syscall", linux.SYS_restart_syscall)
	for _, r := range []uint64{0, 16, 99} {
		p.do("ptrace of none", linux.SYS_ptrace, r*b2u(r != 0)+b2u(r == 0)*3, 1<<29, 0, 0)
	}
}
