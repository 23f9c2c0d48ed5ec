package procfs

import (
	"slices"
	"strings"
	"testing"

	"hardtack/abi/linux"
	"hardtack/kernel/kern"
	"hardtack/kernel/mem"
	"hardtack/kernel/uio"
	"hardtack/kernel/vfs"
)

func mounted(t *testing.T) (*kern.Ctx, *vfs.FSContext) {
	mem.InitHost(1024)
	_, root := vfs.NewNamespace(FS(), "proc")
	return kern.NewKernelCtx(), vfs.NewFSContext(root)
}

func read(t *testing.T, c *kern.Ctx, ctx *vfs.FSContext, path string) string {
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

func list(t *testing.T, c *kern.Ctx, ctx *vfs.FSContext, path string, at int) []string {
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
	const path = "/sys/vm/overcommit_memory"
	write := func(s string) linux.Errno {
		f, e := vfs.Open(c, ctx, nil, path, linux.O_WRONLY|linux.O_TRUNC, 0)
		if e != 0 {
			t.Fatal(e)
		}
		defer f.Put()
		_, e = f.Ops.Write(c, f, uio.Bytes([]byte(s)), 0)
		return e
	}
	if e := write("1\n"); e != 0 || read(t, c, ctx, path) != "1\n" {
		t.Error(e)
	}
	for _, s := range []string{"3", "x", "", "1 2"} {
		if e := write(s); e != linux.EINVAL {
			t.Errorf("%q: %v", s, e)
		}
	}
	c.SetCred(&kern.Cred{FSUID: 5})
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
		if got := [2]string{cpuMask(n), CPURange(n)}; got != want {
			t.Errorf("%d CPUs: %q", n, got)
		}
	}
}
