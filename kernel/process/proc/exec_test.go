package proc

import (
	"os"
	"strings"
	"testing"

	"hardtack/abi/linux"
	"hardtack/kernel/base/uio"
	"hardtack/kernel/fs/vfs"
	"hardtack/kernel/process/program"
)

// Entries of the auxiliary vector (include/uapi/linux/auxvec.h).
const (
	atNull     = 0
	atPhdr     = 3
	atPhent    = 4
	atPhnum    = 5
	atPagesz   = 6
	atBase     = 7
	atEntry    = 9
	atPlatform = 15
	atClkTck   = 17
	atSecure   = 23
)

// initialStack is a program's initial stack as the program reads it.
type initialStack struct {
	argv, env []string
	aux       map[uint64]uint64
}

func readStack(t testing.TB, c *Thread) (s initialStack) {
	t.Helper()
	p := uio.Addr(c.User.RSP)
	next := func() uint64 {
		v, e := c.Space.LoadU64(p)
		if e != 0 {
			t.Fatal(e)
		}
		p += 8
		return v
	}
	str := func(a uint64) string {
		v, e := c.Space.ReadString(uio.Addr(a), 1<<20)
		if e != 0 {
			t.Fatal(e)
		}
		return v
	}
	n := next()
	for range n {
		s.argv = append(s.argv, str(next()))
	}
	if next() != 0 {
		t.Error("argv does not end")
	}
	for v := next(); v != 0; v = next() {
		s.env = append(s.env, str(v))
	}
	s.aux = map[uint64]uint64{}
	for {
		k, v := next(), next()
		if k == atNull {
			break
		}
		s.aux[k] = v
	}
	if got := str(s.aux[atPlatform]); got != "x86_64" {
		t.Errorf("platform %q", got)
	}
	return s
}

// tiny is the smallest program: one segment with code, one with data and bss.
func tinyELF() []byte {
	b := make([]byte, 0x2010)
	copy(b, "\x7fELF\x02\x01\x01")
	put := func(off int, v uint64) { le.PutUint64(b[off:], v) }
	le.PutUint16(b[16:], 2)
	le.PutUint16(b[18:], 62)
	put(24, 0x401000)
	put(32, 64)
	le.PutUint16(b[54:], 56)
	le.PutUint16(b[56:], 2)
	for i, ph := range [][]uint64{{1 | 5<<32, 0, 0x400000, 0, 0x1100, 0x1100, 4096}, {1 | 6<<32, 0x2000, 0x403000, 0, 0x10, 0x3000, 4096}} {
		for j, v := range ph {
			put(64+56*i+8*j, v)
		}
	}
	for i := 0x2000; i < len(b); i++ {
		b[i] = 0xaa
	}
	return b
}

func TestExec(t *testing.T) {
	asInit(func(c *Thread) {
		// Bytes behind the segment's end in the file must not show in the bss.
		c.put(t, "/tiny", 0o755, append(tinyELF(), "junk behind the data"...))
		c.put(t, "/script", 0o755, []byte("#!/tiny  -x y \nrest"))
		c.put(t, "/script2", 0o755, []byte("#!/script\n"))
		c.put(t, "/noexec", 0o644, tinyELF())
		c.put(t, "/text", 0o755, []byte("hello\n"))
		c.put(t, "/missing", 0o755, []byte("#!/nowhere\n"))
		c.put(t, "/loop", 0o755, []byte("#!/loop\n"))
		pid := c.spawn(t, fork, func(c *Thread) {
			exec := func(path string, argv ...string) linux.Errno {
				return c.Exec(&program.Args{Path: path, Walk: vfs.FollowLast, Argv: argv, Env: []string{"A=b", "C="}})
			}
			before := c.Space
			for path, want := range map[string]linux.Errno{
				"/nothing": linux.ENOENT, "/noexec": linux.EACCES, "/": linux.EACCES,
				"/text": linux.ENOEXEC, "/missing": linux.ENOENT, "/loop": linux.ELOOP,
			} {
				if e := exec(path); e != want {
					t.Errorf("%s: %v, want %v", path, e, want)
				}
			}
			if c.Space != before {
				t.Error("a failed exec changed the program")
			}
			c.Proc.SetAction(linux.SIGUSR1, &linux.SigAction{Handler: 0x1000})
			c.Proc.SetAction(linux.SIGUSR2, &linux.SigAction{Handler: linux.SIG_IGN})
			c.User.FSBase = 0x5555
			if e := exec("/tiny", "a0", "", "a2"); e != 0 {
				t.Fatal(e)
			}
			s := readStack(t, c)
			if strings.Join(s.argv, "|") != "a0||a2" || strings.Join(s.env, "|") != "A=b|C=" {
				t.Errorf("%q %q", s.argv, s.env)
			}
			for k, want := range map[uint64]uint64{
				atPhdr: 0x400040, atPhent: 56, atPhnum: 2, atEntry: 0x401000, atPagesz: 4096, atBase: 0, atSecure: 0, atClkTck: 100,
			} {
				if s.aux[k] != want {
					t.Errorf("auxv %d is %#x, want %#x", k, s.aux[k], want)
				}
			}
			if c.User.RIP != 0x401000 || c.User.RSP%16 != 0 || c.User.FSBase != 0 || c.User.RFLAGS != 0x202 {
				t.Errorf("%+v", c.User.Regs)
			}
			var data [32]byte
			c.Space.CopyIn(data[:], 0x403000)
			if data[15] != 0xaa || data[16] != 0 || data[31] != 0 {
				t.Errorf("data %x", data)
			}
			if v, e := c.Space.LoadU64(0x405ff8); v != 0 || e != 0 {
				t.Error("bss", v, e)
			}
			if e := c.Space.StoreU32(0x400000, 1); e != linux.EFAULT {
				t.Error("code is writable:", e)
			}
			ignored, caught := c.Proc.SignalSets()
			if ignored != linux.SIGUSR2.Set() || caught != 0 {
				t.Errorf("signals %#x %#x", ignored, caught)
			}
			if c.Name() != "tiny" {
				t.Error(c.Name())
			}
			if e := exec("/script", "zero", "one"); e != 0 {
				t.Fatal(e)
			}
			if s := readStack(t, c); strings.Join(s.argv, "|") != "/tiny|-x y|/script|one" || c.Name() != "script" {
				t.Errorf("%q %q", s.argv, c.Name())
			}
			if e := exec("/script2", "zero", "one"); e != 0 {
				t.Fatal(e)
			}
			if s := readStack(t, c); strings.Join(s.argv, "|") != "/tiny|-x y|/script|/script2|one" {
				t.Errorf("%q", s.argv)
			}
		})
		c.waitFor(t, pid)
	})
}

// exec in a thread that is not the leader: the others end, it gets their number.
func TestExecOfThread(t *testing.T) {
	asInit(func(c *Thread) {
		c.put(t, "/tiny", 0o755, tinyELF())
		pid := c.spawn(t, fork, func(c *Thread) {
			c.spawn(t, CloneArgs{Flags: threadFlags, Stack: 4096}, func(c *Thread) {
				if e := c.Exec(&program.Args{Path: "/tiny", Walk: vfs.FollowLast}); e != 0 {
					t.Error(e)
				}
				if c.TID != c.PID || ByTID(c.PID) != c || len(c.Proc.Threads()) != 1 || c.Proc.Main() != c {
					t.Errorf("tid %d pid %d", c.TID, c.PID)
				}
				c.Exit(9)
			})
			for c.call(func() { c.Arm(); c.Sleep(0) }) {
			}
		})
		if r := c.waitFor(t, pid); r.Status != 9<<8 {
			t.Errorf("%+v", r)
		}
	})
}

// A real dynamic program of the host: both it and its interpreter are mapped.
func TestExecDynamic(t *testing.T) {
	prog, err := os.ReadFile("/bin/true")
	if err != nil {
		t.Skip("no /bin/true here")
	}
	ld, err := os.ReadFile("/lib64/ld-linux-x86-64.so.2")
	if err != nil {
		t.Skip("no dynamic linker here")
	}
	asInit(func(c *Thread) {
		vfs.MkdirAt(&c.Ctx, c.FS, nil, "/lib64", 0o755)
		c.put(t, "/lib64/ld-linux-x86-64.so.2", 0o755, ld)
		c.put(t, "/true", 0o755, prog)
		pid := c.spawn(t, fork, func(c *Thread) {
			var bases [2]uint64
			for i := range bases {
				if e := c.Exec(&program.Args{Path: "/true", Walk: vfs.FollowLast, Argv: []string{"true"}}); e != 0 {
					t.Fatal(e)
				}
				s := readStack(t, c)
				bases[i] = s.aux[atBase]
				var head [4]byte
				c.Space.CopyIn(head[:], uio.Addr(s.aux[atBase]))
				if string(head[:]) != "\x7fELF" {
					t.Errorf("no interpreter at %#x", s.aux[atBase])
				}
				if c.User.RIP < bases[i] || s.aux[atEntry] < 1<<46 {
					t.Errorf("%+v", s.aux)
				}
			}
			if bases[0] == bases[1] {
				t.Error("no randomisation")
			}
		})
		c.waitFor(t, pid)
	})
}

// A program that cannot be mapped fails without harm.
func TestExecFailsInTheMiddle(t *testing.T) {
	b := tinyELF()
	le.PutUint64(b[64+56+16:], 0x7ffffffe0000) // the second segment, where the stack goes
	le.PutUint64(b[64+56+40:], 0x1f000)
	huge := tinyELF()
	le.PutUint64(huge[64+56+40:], 1<<46)
	asInit(func(c *Thread) {
		c.put(t, "/clash", 0o755, b)
		c.put(t, "/huge", 0o755, huge)
		pid := c.spawn(t, fork, func(c *Thread) {
			c.Proc.Prlimit(&c.Ctx, linux.RLIMIT_AS, &linux.Rlimit{Cur: 1 << 30, Max: 1 << 30})
			before := c.Space
			if e := c.Exec(&program.Args{Path: "/huge", Walk: vfs.FollowLast}); e != linux.ENOMEM || c.Space != before {
				t.Errorf("huge: %v", e)
			}
			c.Exec(&program.Args{Path: "/clash", Walk: vfs.FollowLast}) // whatever it says, nothing breaks
		})
		c.waitFor(t, pid)
	})
}
