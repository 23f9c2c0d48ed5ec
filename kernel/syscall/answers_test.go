package syscall_test

import (
	"bytes"
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"hardtack/abi/linux"
)

// The handlers of system calls are tested without booting: a script makes calls and
// notes what they answer. Linux 6.1 has answered each script once; its answers are kept in
// testdata/linux. The handlers must answer the same.
//
// To boot Linux and renew its answers:
//
//	go test ./kernel/syscall -run TestAnswers -linux

var (
	askLinux  = flag.Bool("linux", false, "boot Linux 6.1 and keep its answers")
	keepKnown = flag.Bool("known", false, "keep the present differences as known")
)

// machine is what a script runs on.
type machine interface {
	// call makes a system call and returns what the register says.
	call(nr uint64, a [6]uint64) uint64
	read(b []byte, addr uint64)
	write(addr uint64, b []byte)
}

// The arena is memory at the same address on each machine, so that pointers and what
// is made of them are the same. No page follows it.
const (
	arena     = 0x70000000
	arenaSize = 1 << 20
	arenaEnd  = arena + arenaSize
)

// script is one test.
type script struct {
	name string
	run  func(p *prog)
}

// prog is a running script.
type prog struct {
	machine
	out  bytes.Buffer
	next uint64
}

// room takes n zeroed bytes of the arena.
func (p *prog) room(n int) uint64 {
	at := p.next
	p.next += uint64(n+15) &^ 15
	if p.next > arenaEnd {
		panic("the arena is full")
	}
	p.write(at, make([]byte, n))
	return at
}

// give puts bytes into the arena.
func (p *prog) give(b []byte) uint64 {
	at := p.room(len(b))
	p.write(at, b)
	return at
}

// str puts a string into the arena, with its end.
func (p *prog) str(s string) uint64 { return p.give(append([]byte(s), 0)) }

// words puts 64-bit words into the arena.
func (p *prog) words(w ...uint64) uint64 {
	var b []byte
	for _, v := range w {
		b = le.AppendUint64(b, v)
	}
	return p.give(b)
}

// ints puts 32-bit words into the arena.
func (p *prog) ints(w ...uint32) uint64 {
	var b []byte
	for _, v := range w {
		b = le.AppendUint32(b, v)
	}
	return p.give(b)
}

// get returns n bytes at addr.
func (p *prog) get(addr uint64, n int) []byte {
	b := make([]byte, n)
	p.read(b, addr)
	return b
}

// u32 and u64 read a word.
func (p *prog) u32(addr uint64) uint32 { return le.Uint32(p.get(addr, 4)) }
func (p *prog) u64(addr uint64) uint64 { return le.Uint64(p.get(addr, 8)) }

// cut is what the arena may be reset to, so that loops do not fill it.
func (p *prog) cut() func() {
	at := p.next
	return func() { p.next = at }
}

// failed returns a result's error, if it is one.
func failed(v uint64) (linux.Errno, bool) {
	if e := -int64(v); e > 0 && e < 4096 {
		return linux.Errno(e), true
	}
	return 0, false
}

// ask makes a call without noting it.
func (p *prog) ask(nr uint64, a ...uint64) uint64 {
	var six [6]uint64
	copy(six[:], a)
	return p.call(nr, six)
}

// must makes a call that a script cannot do without.
func (p *prog) must(nr uint64, a ...uint64) uint64 {
	v := p.ask(nr, a...)
	if e, bad := failed(v); bad {
		panic(fmt.Sprintf("call %d%x: %v", nr, a, e))
	}
	return v
}

// do makes a call and notes its result.
func (p *prog) do(what string, nr uint64, a ...uint64) uint64 {
	v := p.ask(nr, a...)
	if e, bad := failed(v); bad {
		p.note("%s: %s", what, unix.ErrnoName(unix.Errno(e)))
	} else {
		p.note("%s = %d", what, v)
	}
	return v
}

// brief makes a call and returns its result for a line of several.
func (p *prog) brief(nr uint64, a ...uint64) string {
	v := p.ask(nr, a...)
	if e, bad := failed(v); bad {
		return " " + unix.ErrnoName(unix.Errno(e))
	}
	return fmt.Sprint(" ", v)
}

// ok is do where the value itself differs from machine to machine.
func (p *prog) ok(what string, nr uint64, a ...uint64) uint64 {
	v := p.ask(nr, a...)
	if e, bad := failed(v); bad {
		p.note("%s: %s", what, unix.ErrnoName(unix.Errno(e)))
	} else {
		p.note("%s: ok", what)
	}
	return v
}

// show notes what is in memory.
func (p *prog) show(what string, addr uint64, n int) {
	p.note("%s: %s", what, hex.EncodeToString(p.get(addr, n)))
}

func (p *prog) note(format string, a ...any) { fmt.Fprintf(&p.out, format+"\n", a...) }

// open opens a file that must open.
func (p *prog) open(name string, flags uint64) uint64 {
	defer p.cut()()
	return p.must(linux.SYS_openat, at, p.str(name), flags, 0o644)
}

// file makes a file with a text and opens it.
func (p *prog) file(name, text string) uint64 {
	defer p.cut()()
	fd := p.open(name, unix.O_RDWR|unix.O_CREAT|unix.O_TRUNC)
	p.must(linux.SYS_pwrite64, fd, p.give([]byte(text)), uint64(len(text)), 0)
	return fd
}

// pair makes a call that returns two descriptors.
func (p *prog) pair(nr uint64, a ...uint64) (uint64, uint64) {
	defer p.cut()()
	at := p.room(8)
	p.must(nr, append(a, at)...)
	return uint64(p.u32(at)), uint64(p.u32(at + 4))
}

func (p *prog) pipe() (r, w uint64) {
	defer p.cut()()
	at := p.room(8)
	p.must(linux.SYS_pipe2, at, unix.O_NONBLOCK)
	return uint64(p.u32(at)), uint64(p.u32(at + 4))
}

func (p *prog) close(fds ...uint64) {
	for _, fd := range fds {
		p.must(linux.SYS_close, fd)
	}
}

// at is AT_FDCWD.
const at = ^uint64(99)

// neg is a negative argument.
func neg(n int64) uint64 { return uint64(-n) }

// play runs a script on a machine, in a root directory of its own, and returns its
// notes.
func play(m machine, s script) (text string) {
	p := &prog{machine: m, next: arena}
	defer func() {
		if r := recover(); r != nil {
			text = p.out.String() + fmt.Sprintf("script failed: %v\n", r)
		}
	}()
	p.enter(s.name)
	s.run(p)
	return p.out.String()
}

// enter gives a script the root directory, the descriptors and the limits that all of
// them begin with.
func (p *prog) enter(name string) {
	defer p.cut()()
	p.ask(linux.SYS_mkdir, p.str("/tmp"), 0o1777) // it is there on most machines
	dir := p.str("/tmp/" + name)
	p.ask(linux.SYS_mkdir, dir, 0o755) // so is this when a test runs again
	p.must(linux.SYS_mount, p.str("none"), dir, p.str("tmpfs"), 0, p.str("mode=755"))
	p.must(linux.SYS_chdir, dir)
	for _, d := range []string{"dev", "proc", "tmp", "etc"} {
		p.must(linux.SYS_mkdir, p.str(d), 0o755)
	}
	p.must(linux.SYS_mount, p.str("proc"), p.str("proc"), p.str("proc"), 0, 0)
	for dev, minor := range map[string]uint32{"null": 3, "zero": 5, "full": 7, "random": 8, "urandom": 9} {
		p.must(linux.SYS_mknod, p.str("dev/"+dev), linux.S_IFCHR|0o666, linux.Makedev(1, minor))
	}
	p.must(linux.SYS_chroot, p.str("."))
	p.must(linux.SYS_chdir, p.str("/"))
	p.must(linux.SYS_umask, 0o022)
	// Signals stay pending: neither Go's runtime nor their default actions see them.
	p.must(linux.SYS_rt_sigprocmask, unix.SIG_SETMASK, p.words(^uint64(0)), 0, 8)
	null := p.open("/dev/null", unix.O_RDWR)
	for fd := range uint64(3) {
		if fd != null {
			p.must(linux.SYS_dup3, null, fd, 0)
		}
	}
	if null > 2 {
		p.close(null)
	}
	// Root without CAP_SYS_RESOURCE, which not every host gives its root.
	caps := []uint32{1<<32 - 1 - 1<<24, 1<<32 - 1 - 1<<24, 0, 1<<9 - 1, 1<<9 - 1, 0}
	p.must(linux.SYS_capset, p.ints(unix.LINUX_CAPABILITY_VERSION_3, 0), p.ints(caps...))
	p.must(linux.SYS_prlimit64, 0, unix.RLIMIT_NOFILE, p.words(1024, 4096), 0)
	p.must(linux.SYS_prlimit64, 0, unix.RLIMIT_CORE, p.words(0, 0), 0)
}

// TestAnswers compares what the handlers answer with what Linux did. Differences that
// are known stand in testdata/known.
func TestAnswers(t *testing.T) {
	if *askLinux {
		for name, text := range askedLinux(t) {
			keep(t, filepath.Join("testdata", "linux", name+".txt"), text)
		}
	}
	for _, s := range scripts {
		t.Run(s.name, func(t *testing.T) {
			file := filepath.Join("testdata", "linux", s.name+".txt")
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if bytes.Count(want, []byte("\n")) < 20 || bytes.Contains(want, []byte("script failed")) {
				t.Errorf("Linux did not answer: %.500s", want)
			}
			got := differences(string(want), onHardtack(t, s))
			file = filepath.Join("testdata", "known", s.name+".txt")
			if *keepKnown {
				keep(t, file, got)
			}
			known, _ := os.ReadFile(file) // none: no difference is known
			if more := without(got, string(known)); more != "" {
				t.Errorf("Linux's answers, and the handlers' below them:\n%s", more)
			}
			if fewer := without(string(known), got); fewer != "" {
				t.Errorf("these in %s differ no longer, or differently (-known):\n%s", file, fewer)
			}
		})
	}
}

// without returns the differences in a that are not in b; each has two lines.
func without(a, b string) string {
	pairs := func(s string) (all []string) {
		lines := strings.SplitAfter(s, "\n")
		for ; len(lines) > 1; lines = lines[2:] {
			all = append(all, lines[0]+lines[1])
		}
		return all
	}
	known := map[string]bool{}
	for _, p := range pairs(b) {
		known[p] = true
	}
	var more strings.Builder
	for _, p := range pairs(a) {
		if !known[p] {
			more.WriteString(p)
		}
	}
	return more.String()
}

func keep(t *testing.T, file, text string) {
	t.Helper()
	if text == "" {
		os.Remove(file)
		return
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// differences are the lines that differ, with their numbers.
func differences(want, got string) string {
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	var b strings.Builder
	line := func(s []string, i int) string {
		if i < len(s) {
			return s[i]
		}
		return "(nothing)"
	}
	for i := range max(len(w), len(g)) {
		if a, c := line(w, i), line(g, i); a != c {
			fmt.Fprintf(&b, "%d\t%s\n\t%s\n", i+1, a, c)
		}
	}
	return b.String()
}
