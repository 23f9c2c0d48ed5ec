package syscall_test

import (
	"fmt"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"hardtack/abi/linux"
	"hardtack/kernel/process/proc"
	"hardtack/kernel/process/proctest"
)

// text reads a file to its end, in pieces of n bytes.
func (p *prog) text(name string, n uint64) (string, bool) {
	defer p.cut()()
	fd := p.ask(linux.SYS_openat, at, p.str(name), unix.O_RDONLY|unix.O_NONBLOCK, 0)
	if _, bad := failed(fd); bad {
		return "", false
	}
	defer p.close(fd)
	buf := p.room(int(n))
	var b strings.Builder
	for b.Len() < 1<<18 {
		got := p.ask(linux.SYS_read, fd, buf, n)
		if _, bad := failed(got); bad {
			return "", false
		}
		if got == 0 {
			break
		}
		b.Write(p.get(buf, int(got)))
	}
	return b.String(), true
}

// procFiles asks for what does not differ from machine to machine.
func procFiles(p *prog) {
	for _, name := range []string{"/proc/self/oom_score_adj", "/proc/self/loginuid", "/proc/self/coredump_filter",
		"/proc/self/uid_map", "/proc/self/timerslack_ns", "/proc/sys/kernel/ostype", "/proc/sys/fs/pipe-max-size", "/proc/sys/kernel/randomize_va_space",
		"/proc/sys/net/ipv4/ip_forward", "/proc/sys/net/ipv4/tcp_fin_timeout", "/proc/sys/net/ipv4/ip_default_ttl", "/proc/sys/kernel/shmmni", "/proc/sys/kernel/msgmni"} {
		text, ok := p.text(name, 4096)
		p.note("%s %v %q", name, ok, text)
	}
	// The names of the fields.
	for _, name := range []string{"/proc/self/status", "/proc/self/io", "/proc/self/smaps_rollup", "/proc/stat", "/proc/net/sockstat"} {
		text, _ := p.text(name, 4096)
		var fields []string
		for line := range strings.Lines(text) {
			field, _, _ := strings.Cut(line, " ")
			field, _, _ = strings.Cut(field, "\t")
			if !strings.Contains(field, "-") { // an address
				fields = append(fields, strings.TrimSpace(field))
			}
		}
		p.note("%s: %v", name, fields)
	}
	for _, name := range []string{"/proc/net/tcp", "/proc/net/udp", "/proc/net/unix", "/proc/net/raw", "/proc/net/packet", "/proc/net/netlink", "/proc/net/dev", "/proc/net/route", "/proc/net/arp", "/proc/locks", "/proc/swaps", "/proc/sysvipc/shm", "/proc/sysvipc/sem", "/proc/sysvipc/msg"} {
		text, ok := p.text(name, 4096)
		head, _, _ := strings.Cut(text, "\n")
		p.note("%s %v %q", name, ok, head)
	}
	st, buf := p.room(256), p.room(64)
	for _, name := range []string{"self", "self/fd", "self/fd/0", "self/cwd", "self/root", "self/ns/net", "self/task", "self/maps", "self/mem", "self/environ", "self/cmdline", "self/comm", "self/none", "999999999",
		"mounts", "meminfo", "cpuinfo", "uptime", "version", "loadavg", "filesystems", "sys/kernel/hostname", "sys/kernel/osrelease", "sys/none", "self/attr/current", "thread-self", "self/fdinfo/0", "self/pagemap", "self/oom_adj"} {
		path := p.str("/proc/" + name)
		if v := p.do("lstat "+name, linux.SYS_lstat, path, st); v == 0 {
			p.note("mode %o uid %d", p.u32(st+24), p.u32(st+28))
		}
		for _, flags := range []uint64{unix.O_RDONLY, unix.O_WRONLY, unix.O_RDWR, unix.O_DIRECTORY, unix.O_CREAT, unix.O_NOFOLLOW} {
			fd := p.ask(linux.SYS_openat, at, path, flags, 0o644)
			if e, bad := failed(fd); bad {
				p.note("open %s %#x: %d", name, flags, e)
				continue
			}
			p.note("open %s %#x", name, flags)
			if flags == unix.O_RDONLY && !strings.HasPrefix(name, "self/ns") && name != "self/fd/0" && name != "self/mem" {
				p.ok("read", linux.SYS_read, fd, buf, 8)
				p.ok("seek", linux.SYS_lseek, fd, 0, 0)
				p.ok("pread at 3", linux.SYS_pread64, fd, buf, 8, 3)
				p.do("far behind the end", linux.SYS_pread64, fd, buf, 8, 1<<40)
				p.do("write", linux.SYS_write, fd, buf, 1)
			}
			p.close(fd)
		}
		p.do("unlink", linux.SYS_unlink, path)
		p.do("mkdir", linux.SYS_mkdir, path, 0o755)
		p.do("rename", linux.SYS_rename, path, p.str("/proc/other"))
	}
	for _, w := range [][2]string{{"self/oom_score_adj", "5\n"}, {"self/oom_score_adj", "2000"}, {"self/oom_score_adj", "x"}, {"self/comm", "new-name"}, {"self/coredump_filter", "0x7"}, {"self/timerslack_ns", "x"},
		{"sys/kernel/hostname", "named"}, {"sys/kernel/domainname", "here"}, {"sys/net/ipv4/ip_default_ttl", "70"}, {"sys/net/ipv4/ip_default_ttl", "900"}, {"sys/net/ipv4/ip_default_ttl", "64"}, {"sys/net/ipv4/tcp_fin_timeout", "-x"}, {"sys/kernel/ostype", "x"}} {
		fd := p.ask(linux.SYS_openat, at, p.str("/proc/"+w[0]), unix.O_WRONLY, 0)
		if e, bad := failed(fd); bad {
			p.note("open %s to write: %d", w[0], e)
			continue
		}
		p.do(fmt.Sprintf("write %q to %s", w[1], w[0]), linux.SYS_write, fd, p.str(w[1]), uint64(len(w[1])))
		p.close(fd)
		text, _ := p.text("/proc/"+w[0], 100)
		p.note("then %q", text)
	}
}

// A file of /proc is the same however it is read, and the same twice.
func TestProcPieces(t *testing.T) {
	plug()
	proctest.AsInit(func(c *proc.Thread) {
		pid := proctest.Spawn(t, c, proctest.Fork, func(c *proc.Thread) {
			if e := arenaFor(c); e != 0 {
				t.Error(e)
				return
			}
			p := &prog{machine: handlers{c}, next: arena}
			p.enter("pieces")
			p.must(linux.SYS_dup3, p.file("/f", "text"), 40, 0)
			if files := p.walk(t, "/proc"); files < 100 {
				t.Errorf("only %d files were read", files)
			}
		})
		proctest.Wait(t, c, pid)
	})
}

// changingFiles are files whose text depends on the time or on what reads it.
var changingFiles = []string{"stat", "uptime", "schedstat", "sched", "io", "syscall", "random", "interrupts", "heap", "meminfo", "slabinfo", "vmstat", "zoneinfo", "buddyinfo",
	"kmsg", "pressure", "mem", "pagemap", "loadavg", "statm", "status", "smaps", "syscalls", "goroutines", "uuid", "frames", "entropy_avail", "file-nr", "inode-nr", "inode-state", "dentry-state", "snmp", "netstat", "sockstat", "softirqs", "numa_maps", "timers", "rt_cache", "fd", "oom_score", "clear_refs", "latency"}

// walk reads all files below a directory and returns how many there are.
func (p *prog) walk(t *testing.T, dir string) (files int) {
	for _, name := range p.list(dir) {
		path := dir + "/" + name
		undo := p.cut()
		st := p.room(256)
		e := p.ask(linux.SYS_lstat, p.str(path), st)
		mode := p.u32(st + 24)
		undo()
		switch {
		case e != 0:
			t.Errorf("%s is listed but not there: %d", path, -int64(e))
		case mode&linux.S_IFMT == linux.S_IFDIR:
			if name != "task" && !strings.HasPrefix(name, "fd") && !strings.HasPrefix(path, "/proc/1/") {
				files += p.walk(t, path)
			}
		case mode&linux.S_IFMT == linux.S_IFREG && mode&0o444 != 0:
			files++
			whole, ok := p.text(path, 1<<16)
			if !ok || changes(path) || strings.HasPrefix(path, "/proc/sys/") {
				continue // a setting is read in one piece, as on Linux
			}
			if pieces, _ := p.text(path, 7); pieces != whole {
				t.Errorf("%s: in pieces\n%.300s\nas a whole\n%.300s", path, pieces, whole)
			}
		}
	}
	return files
}

func changes(path string) bool {
	for _, s := range changingFiles {
		if strings.Contains(path[strings.LastIndexByte(path, '/'):], s) {
			return true
		}
	}
	return false
}

// list returns the names in a directory.
func (p *prog) list(dir string) (names []string) {
	defer p.cut()()
	fd := p.ask(linux.SYS_openat, at, p.str(dir), unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if _, bad := failed(fd); bad {
		return nil
	}
	defer p.close(fd)
	const size = 4096
	buf := p.room(size)
	for {
		n := p.ask(linux.SYS_getdents64, fd, buf, size)
		if _, bad := failed(n); bad || n == 0 {
			return names
		}
		for b := p.get(buf, int(n)); len(b) > 0; b = b[le.Uint16(b[16:]):] {
			name, _, _ := strings.Cut(string(b[19:]), "\x00")
			if name != "." && name != ".." {
				names = append(names, name)
			}
		}
	}
}
