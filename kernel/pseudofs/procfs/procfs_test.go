package procfs

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/creds"
	"hardtack/kernel/base/mem"
	"hardtack/kernel/base/settings"
	"hardtack/kernel/base/uio"
	"hardtack/kernel/fs/vfs"
	"hardtack/kernel/mm/vm"
)

func TestMain(m *testing.M) {
	Init()
	os.Exit(m.Run())
}

func mounted(t *testing.T) (*caller.Ctx, *vfs.FSContext) {
	mem.InitHost(1024)
	_, root := vfs.NewNamespace(fs, "proc")
	return caller.NewKernelCtx(), vfs.NewFSContext(root)
}

func read(t *testing.T, c *caller.Ctx, ctx *vfs.FSContext, path string) string {
	t.Helper()
	f, e := vfs.Open(c, ctx, nil, path, linux.O_RDONLY, 0)
	if e != 0 {
		t.Fatal(path, e)
	}
	defer f.Put()
	var text []byte
	b := make([]byte, 7) // in small pieces, as from one text
	for {
		n, e := f.Ops.Read(c, f, uio.Bytes(b), int64(len(text)))
		if e != 0 {
			t.Fatal(path, e)
		}
		if n == 0 {
			return string(text)
		}
		text = append(text, b[:n]...)
	}
}

func list(t *testing.T, c *caller.Ctx, ctx *vfs.FSContext, path string, at int) []string {
	f, e := vfs.Open(c, ctx, nil, path, linux.O_RDONLY|linux.O_DIRECTORY, 0)
	if e != 0 {
		t.Fatal(path, e)
	}
	defer f.Put()
	var names []string
	for more := true; more; { // so many names a call
		k := 0
		more = false
		f.Ops.(vfs.DirReader).ReadDir(c, f, func(d *vfs.Dirent) bool {
			if k == at {
				more = true
				return false
			}
			k++
			names = append(names, d.Name)
			return true
		})
	}
	return names
}

func TestSystemFiles(t *testing.T) {
	c, ctx := mounted(t)
	if s := read(t, c, ctx, "/sys/kernel/ostype"); s != "Linux\n" {
		t.Errorf("%q", s)
	}
	for _, name := range list(t, c, ctx, "/", 3) {
		p, e := vfs.Lookup(c, ctx, nil, "/"+name, 0)
		if e != 0 {
			t.Error(name, e)
			continue
		}
		if p.Inode().Type() == linux.S_IFREG {
			read(t, c, ctx, "/"+name)
		}
	}
	one, all := list(t, c, ctx, "/sys/vm", 1), list(t, c, ctx, "/sys/vm", 1000)
	if !slices.Equal(one, all) || len(all) < 5 {
		t.Error(one, all)
	}
	m := read(t, c, ctx, "/meminfo")
	for _, want := range []string{"MemTotal:", "MemFree:", "MemAvailable:", " kB\n"} {
		if !strings.Contains(m, want) {
			t.Error("meminfo lacks", want)
		}
	}
	if _, e := vfs.Lookup(c, ctx, nil, "/self", vfs.FollowLast); e != linux.ENOENT {
		t.Error("self of nobody:", e)
	}
	for _, p := range []string{"/0", "/1", "/01", "/-1", "/99999999999", "/nothing", "/sys/nothing"} {
		if _, e := vfs.Lookup(c, ctx, nil, p, 0); e != linux.ENOENT {
			t.Error(p, e)
		}
	}
	if e := vfs.MkdirAt(c, ctx, nil, "/new", 0o755); e != linux.ENOENT {
		t.Error(e)
	}
}

func TestValuesCanBeSet(t *testing.T) {
	c, ctx := mounted(t)
	path := "/sys/kernel/randomize_va_space"
	defer settings.RandomizeVA.Set(settings.RandomizeVA.Get())
	write := func(s string) linux.Errno {
		f, e := vfs.Open(c, ctx, nil, path, linux.O_WRONLY|linux.O_TRUNC, 0)
		if e != 0 {
			t.Fatal(e)
		}
		defer f.Put()
		_, e = f.Ops.Write(c, f, uio.Bytes([]byte(s)), 0)
		return e
	}
	for _, n := range []int64{0, 1, 2} {
		if e := write(fmt.Sprintln(n)); e != 0 || settings.RandomizeVA.Get() != n {
			t.Errorf("%d: %v", n, e)
		}
	}
	path = "/sys/vm/overcommit_memory"
	if e := write("1\n"); e != 0 || read(t, c, ctx, path) != "1\n" {
		t.Error(e)
	}
	for _, s := range []string{"3", "x", "1x", "-1", " "} {
		if e := write(s); e != linux.EINVAL {
			t.Errorf("%q: %v", s, e)
		}
	}
	c.SetCred(&creds.Cred{FSUID: 5})
	if _, e := vfs.Open(c, ctx, nil, path, linux.O_WRONLY, 0); e != linux.EACCES {
		t.Error(e)
	}
}

func TestRegister(t *testing.T) {
	c, ctx := mounted(t)
	n := 0
	Register("test/deep/count", func() []byte { n++; return []byte(strings.Repeat("x", 20)) })
	Register("test/a", func() []byte { return nil })
	if s := read(t, c, ctx, "/test/deep/count"); len(s) != 20 || n != 1 {
		t.Error(s, "made", n, "times")
	}
	if names := list(t, c, ctx, "/test", 1); !slices.Equal(names, []string{".", "..", "a", "deep"}) {
		t.Error(names)
	}
	if !slices.Contains(list(t, c, ctx, "/", 5), "test") {
		t.Error("not listed")
	}
	p, e := vfs.Lookup(c, ctx, nil, "/test/deep/../deep/count", 0)
	if s, _ := p.String(ctx.Root()); e != 0 || s != "/test/deep/count" {
		t.Error(s, e)
	}
}

func TestCPUSets(t *testing.T) {
	for n, want := range map[int][2]string{1: {"1", "0"}, 2: {"3", "0-1"}, 32: {"ffffffff", "0-31"}, 33: {"1,ffffffff", "0-32"}, 64: {"ffffffff,ffffffff", "0-63"}} {
		if got := [2]string{hexCPUs(n, allOf(n)), CPURange(n)}; got != want {
			t.Errorf("%d CPUs: %q", n, got)
		}
	}
}

// What one reader was shown is not what another reads next from the same file.
func TestTextIsTheReaders(t *testing.T) {
	c, ctx := mounted(t)
	register("test/who", &entry{mode: 0o444, read: func(x *about) ([]byte, linux.Errno) {
		return fmt.Appendf(nil, "%d\n%d\n%d\n", x.c.Cred().UID, x.c.Cred().UID, x.c.Cred().UID), 0
	}})
	f, e := vfs.Open(c, ctx, nil, "/test/who", linux.O_RDONLY, 0)
	if e != 0 {
		t.Fatal(e)
	}
	defer f.Put()
	b := make([]byte, 2)
	step := func(c *caller.Ctx, off int64, want string) {
		t.Helper()
		if n, e := f.Ops.Read(c, f, uio.Bytes(b), off); e != 0 || string(b[:n]) != want {
			t.Errorf("at %d: %q %v, want %q", off, b[:n], e, want)
		}
	}
	other := caller.NewKernelCtx()
	other.SetCred(&creds.Cred{UID: 7})
	step(c, 0, "0\n")
	step(other, 2, "7\n")
	step(c, 4, "0\n")
	step(other, 6, "")
	step(other, 4, "7\n")
	step(other, 1, "\n7")
}

// A long text is made again for each piece and goes on at a whole line; the open
// file keeps no more than a page of it.
func TestLongTextIsNotKept(t *testing.T) {
	c, ctx := mounted(t)
	first := 0 // lines that are gone from the front of the list
	register("test/long", &entry{mode: 0o444, read: func(*about) (b []byte, e linux.Errno) {
		for i := first; i < 4000; i++ {
			b = fmt.Appendf(b, "line %06d\n", i)
		}
		return b, 0
	}})
	for _, size := range []int{7, 1000, 4096, 100000} {
		first = 0
		f, e := vfs.Open(c, ctx, nil, "/test/long", linux.O_RDONLY, 0)
		if e != 0 {
			t.Fatal(e)
		}
		var all []byte
		b := make([]byte, size)
		for {
			n, e := f.Ops.Read(c, f, uio.Bytes(b), int64(len(all)))
			if e != 0 {
				t.Fatal(e)
			}
			if n == 0 {
				break
			}
			all = append(all, b[:n]...)
			if kept := cap(f.Ops.(*text).ahead); kept > maxAhead {
				t.Fatalf("%d bytes are kept", kept)
			}
			if len(all) > 20000 {
				first = 5 // as if sockets had been closed
			}
		}
		f.Put()
		for _, line := range strings.SplitAfter(strings.TrimSuffix(string(all), "\n"), "\n") {
			if len(strings.TrimSuffix(line, "\n")) != len("line 000000") {
				t.Fatalf("by %d: %q", size, line)
			}
		}
		if n := strings.Count(string(all), "\n"); n < 3990 || n > 4000 {
			t.Errorf("by %d: %d lines", size, n)
		}
	}
}

// A text without line ends is cut anywhere.
func TestLongLine(t *testing.T) {
	c, ctx := mounted(t)
	long := strings.Repeat("0123456789", 3000)
	register("test/line", &entry{mode: 0o444, read: fixed(long)})
	if s := read(t, c, ctx, "/test/line"); s != long {
		t.Errorf("%d bytes of %d", len(s), len(long))
	}
}

func TestAdminFiles(t *testing.T) {
	c, ctx := mounted(t)
	RegisterAdmin("test/secret", func() []byte { return []byte("x") }, nil)
	if s := read(t, c, ctx, "/test/secret"); s != "x" {
		t.Error(s)
	}
	for e, cred := range map[linux.Errno]*creds.Cred{
		linux.EPERM:  {}, // user 0 without capabilities
		linux.EACCES: {FSUID: 1000, UID: 1000},
	} {
		c.SetCred(cred)
		if _, got := vfs.Open(c, ctx, nil, "/test/secret", linux.O_RDONLY, 0); got != e {
			t.Errorf("%+v: %v", cred, got)
		}
	}
}

// maps of many mappings is read a page at a time, at any offset, and an open file
// keeps no more than that.
func TestMapsInPieces(t *testing.T) {
	mem.InitHost(1024)
	s, e := vm.New()
	if e != 0 {
		t.Fatal(e)
	}
	c := caller.NewKernelCtx()
	const count, base = 2000, 1 << 30
	for i := range uint64(count) {
		m := vm.MapArgs{Addr: base + 2*i*mem.PageSize, Length: mem.PageSize, Prot: linux.PROT_READ,
			Flags: linux.MAP_PRIVATE | linux.MAP_ANONYMOUS | linux.MAP_FIXED}
		if _, e := s.Mmap(c, &m); e != 0 {
			t.Fatal(e)
		}
	}
	f := &mapsText{n: &node{e: &entry{maps: true}}, space: s}
	at := func(off int64, n int) string {
		b := make([]byte, n)
		n, e := f.Read(c, nil, uio.Bytes(b), off)
		if e != 0 {
			t.Fatal(e)
		}
		if kept := cap(f.rest); kept > 2*mapsPiece {
			t.Fatalf("%d bytes are kept", kept)
		}
		return string(b[:n])
	}
	whole := ""
	for {
		piece := at(int64(len(whole)), 1<<20)
		if piece == "" {
			break
		}
		if len(piece) >= mapsPiece || len(piece) < mapsPiece/2 && len(whole)+len(piece) < count*30 || !strings.HasSuffix(piece, "\n") {
			t.Fatalf("a read gives %d bytes at %d: %q", len(piece), len(whole), piece)
		}
		whole += piece
	}
	if n := strings.Count(whole, "\n"); n != count {
		t.Fatalf("%d lines", n)
	}
	text := ""
	for {
		piece := at(int64(len(text)), 777)
		if piece == "" {
			break
		}
		text += piece
	}
	if text != whole {
		t.Error("in pieces it is another text")
	}
	for _, off := range []int{50000, 3, 49999, len(whole) - 5, 0, len(whole), len(whole) + 1} {
		got, want := at(int64(off), 100), whole[min(off, len(whole)):min(off+100, len(whole))]
		if got == "" != (want == "") || !strings.HasPrefix(want, got) {
			t.Errorf("at %d: %q, want %q", off, got, want)
		}
	}
	// What is unmapped between two reads is left out, and no line is cut.
	first := at(0, 4096)
	s.Munmap(c, base, 2*count*mem.PageSize-2*mem.PageSize)
	if rest := at(int64(len(first)), 1<<20); strings.Count(rest, "\n") != 1 || !strings.HasSuffix(rest, "\n") {
		t.Errorf("%q", rest)
	}
	s.Release()
	if got := at(0, 100); got != "" {
		t.Errorf("after the end: %q", got)
	}
}

func TestTerminals(t *testing.T) {
	c, ctx := mounted(t)
	PtyMinors.Set(func() int { return 4096 })
	Ptys.Set(func() int64 { return 3 })
	for path, want := range map[string]string{
		"/tty/drivers": "/dev/tty             /dev/tty        5       0 system:/dev/tty\n" +
			"/dev/console         /dev/console    5       1 system:console\n" +
			"/dev/ptmx            /dev/ptmx       5       2 system\n" +
			"serial               /dev/ttyS       4      64 serial\n" +
			"pty_slave            /dev/pts      136 0-4095 pty:slave\n",
		"/tty/ldiscs": "n_tty       0\n",
		"/cgroups":    "#subsys_name\thierarchy\tnum_cgroups\tenabled\n",
	} {
		if got := read(t, c, ctx, path); got != want {
			t.Errorf("%s:\n%swant\n%s", path, got, want)
		}
	}
	f, e := vfs.Open(c, ctx, nil, "/sys/kernel/pty/nr", linux.O_RDONLY, 0)
	if e != 0 {
		t.Fatal(e)
	}
	defer f.Put()
	b := make([]byte, 8)
	if n, e := f.Ops.Read(c, f, uio.Bytes(b), 0); e != 0 || string(b[:n]) != "3\n" {
		t.Errorf("pty/nr: %q, %d", b[:n], e)
	}
}

func TestIOMem(t *testing.T) {
	list := []Resource{
		{0, 0x9fc00, "System RAM", nil},
		{0x9fc00, 0xa0000, "Reserved", nil},
		{0x100000, 0x140000000, "System RAM", []Resource{{0x1000000, 0x1200000, "Kernel code", nil}, {0x1200000, 0x1200000, "empty", nil}}},
	}
	for shown, want := range map[bool]string{
		true:  "00000000-0009fbff : System RAM\n0009fc00-0009ffff : Reserved\n00100000-13fffffff : System RAM\n  01000000-011fffff : Kernel code\n",
		false: "00000000-00000000 : System RAM\n00000000-00000000 : Reserved\n00000000-00000000 : System RAM\n  00000000-00000000 : Kernel code\n",
	} {
		if got := string(resources(nil, list, 0, shown)); got != want {
			t.Errorf("%v:\n%swant\n%s", shown, got, want)
		}
	}
}
