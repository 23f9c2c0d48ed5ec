package initramfs

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/mem"
	"hardtack/kernel/base/uio"
	"hardtack/kernel/fs/tmpfs"
	"hardtack/kernel/fs/vfs"
)

// cpio writes archives, content of a page and more on page boundaries.
type cpio struct {
	bytes.Buffer
	ino uint32
}

func (c *cpio) add(name string, mode, ino, nlink uint32, data []byte) {
	if ino == 0 {
		c.ino++
		ino = 1000 + c.ino
	}
	size := len(name) + 1
	if len(data) >= mem.PageSize {
		for (c.Len()+headerSize+size)%mem.PageSize != 0 {
			size++
		}
	}
	fmt.Fprintf(c, "070701%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X",
		ino, mode, 3, 4, nlink, 77, len(data), 0, 0, 1, 3, size, 0)
	c.WriteString(name)
	c.Write(make([]byte, size-len(name)))
	c.pad()
	c.Write(data)
	c.pad()
}

func (c *cpio) pad() {
	for c.Len()%4 != 0 {
		c.WriteByte(0)
	}
}

const record = `{"args":["/bin/sh","-c","x"],"env":["A=b"],"cwd":"/root","uid":1,"groups":[2,3],"terminal":true,"rows":24,"net":{"mode":"dhcp"}}`

// load puts an archive into frames of the arena that follow each other.
func load(t testing.TB, archive []byte) ([]byte, mem.Frame, int) {
	mem.InitHost(8192)
	n := max((len(archive)+mem.PageSize-1)/mem.PageSize, 1)
	var frames []mem.Frame
	for range 4 * n {
		if f, ok := mem.Alloc(); ok {
			frames = append(frames, f)
		}
	}
	slices.Sort(frames)
	run := 0
	for i := range frames {
		if i > 0 && frames[i] != frames[i-1]+1 {
			run = 0
		}
		if run++; run == n {
			run = i + 1 - n
			break
		} else if i == len(frames)-1 {
			t.Skip("the arena is in pieces")
		}
	}
	first := frames[run]
	for i, f := range frames {
		if i < run || i >= run+n {
			f.Put()
		}
	}
	b := contiguous(first, len(archive))
	copy(b, archive)
	return b, first, n
}

// unpacked is what one Unpack left.
type unpacked struct {
	boot  *BootConfig
	fs    *tmpfs.FS
	freed int
	first mem.Frame
	n     int
	err   error
}

func unpack(t testing.TB, archive []byte) *unpacked {
	u := &unpacked{fs: tmpfs.New(tmpfs.Options{Mode: 0o755, MaxPages: 4096, MaxInodes: 4096})}
	var b []byte
	b, u.first, u.n = load(t, archive)
	u.boot, u.err = Unpack(u.fs, b, u.first, func(f mem.Frame, n int) {
		for i := range n {
			(f + mem.Frame(i)).Put()
		}
		u.freed += n
	})
	return u
}

// drop gives all frames back.
func (u *unpacked) drop() {
	vfs.DropTree(u.fs.Root)
	for i := range u.n {
		if f := u.first + mem.Frame(i); u.err != nil && f.Refs() > 0 {
			f.Put()
		}
	}
}

func TestUnpack(t *testing.T) {
	big := make([]byte, 3*mem.PageSize+100)
	for i := range big {
		big[i] = byte(i * 7)
	}
	var a cpio
	a.add(bootName, linux.S_IFREG|0o600, 0, 1, []byte(record))
	a.add(".", linux.S_IFDIR|0o711, 0, 2, nil)
	a.add("bin", linux.S_IFDIR|0o755, 0, 2, nil)
	a.add("bin/big", linux.S_IFREG|0o755, 5, 2, big)
	a.add("bin/small", linux.S_IFREG|0o644, 0, 1, []byte("hello"))
	a.add("bin/same", linux.S_IFREG|0o755, 5, 2, nil)
	a.add("dev/null", linux.S_IFCHR|0o666, 0, 1, nil)
	a.add("lib", linux.S_IFLNK|0o777, 0, 1, []byte("usr/lib"))
	a.add("late1", linux.S_IFREG|0o600, 6, 2, nil)
	a.add("late2", linux.S_IFREG|0o600, 6, 2, []byte("content comes last"))
	a.add("page", linux.S_IFREG|0o600, 0, 1, big[:mem.PageSize])
	a.add(trailer, 0, 0, 1, nil)
	u := unpack(t, a.Bytes())
	defer u.drop()
	if u.err != nil {
		t.Fatal(u.err)
	}
	boot, fs, freed := u.boot, u.fs, u.freed
	if len(boot.Args) != 3 || boot.Cwd != "/root" || !boot.Terminal || boot.Net.Mode != "dhcp" || boot.Groups[1] != 3 {
		t.Fatalf("%+v", boot)
	}
	_, root := vfs.NewNamespace(fs.FileSystem, "rootfs")
	c, ctx := caller.NewKernelCtx(), vfs.NewFSContext(root)
	read := func(path string) []byte {
		f, e := vfs.Open(c, ctx, nil, path, linux.O_RDONLY, 0)
		if e != 0 {
			t.Fatal(path, e)
		}
		defer f.Put()
		b := make([]byte, 5*mem.PageSize)
		n, e := f.Ops.Read(c, f, uio.Bytes(b), 0)
		if e != 0 {
			t.Fatal(path, e)
		}
		return b[:n]
	}
	for path, want := range map[string][]byte{"/bin/big": big, "/bin/same": big, "/bin/small": []byte("hello"),
		"/late1": []byte("content comes last"), "/late2": []byte("content comes last"), "/page": big[:mem.PageSize]} {
		if !bytes.Equal(read(path), want) {
			t.Error(path, "differs")
		}
	}
	p, _ := vfs.Lookup(c, ctx, nil, "/bin/same", 0)
	var st linux.Stat
	p.Inode().FillStat(&st)
	if st.Nlink != 2 || st.UID != 3 || st.GID != 4 || st.Mode != linux.S_IFREG|0o755 || st.Mtime.Sec != 77 {
		t.Errorf("%+v", st)
	}
	p, _ = vfs.Lookup(c, ctx, nil, "/dev/null", 0)
	if p.Inode().Rdev != linux.Makedev(1, 3) {
		t.Error("device number")
	}
	p, _ = vfs.Lookup(c, ctx, nil, "/lib", 0)
	if s, _ := vfs.ReadLink(c, ctx, p); s != "usr/lib" {
		t.Error(s)
	}
	if _, e := vfs.Lookup(c, ctx, nil, "/"+bootName, 0); e != linux.ENOENT {
		t.Error("the record is in the tree")
	}
	if m := root.Inode().Mode(); m != linux.S_IFDIR|0o711 {
		t.Errorf("root %o", m)
	}
	// Four whole pages were taken over, all others came back.
	if pages := (a.Len() + mem.PageSize - 1) / mem.PageSize; freed != pages-4 {
		t.Errorf("%d of %d pages given back", freed, pages)
	}
}

func TestWildArchives(t *testing.T) {
	good := func(name string, mode uint32, data []byte) []byte {
		var a cpio
		a.add(bootName, linux.S_IFREG|0o600, 0, 1, []byte(record))
		a.add(name, mode, 0, 1, data)
		a.add(trailer, 0, 0, 1, nil)
		return a.Bytes()
	}
	deep := bytes.Repeat([]byte("d/"), 1000)
	for what, archive := range map[string][]byte{
		"empty":           nil,
		"no record":       good("x", 0, nil)[:50],
		"cut":             good("x", linux.S_IFREG, []byte("hello"))[:300],
		"escape":          good("../x", linux.S_IFREG, nil),
		"escape inside":   good("a/../../x", linux.S_IFREG, nil),
		"no type":         good("x", 0o644, nil),
		"long name":       good(string(bytes.Repeat([]byte("n"), 300)), linux.S_IFREG, nil),
		"deep":            good(string(deep)+"x", linux.S_IFREG, nil),
		"link to nothing": good("l", linux.S_IFLNK, nil),
		"no hexadecimal":  bytes.Replace(good("x", linux.S_IFREG, nil), []byte("070701000"), []byte("070701xyz"), 1),
	} {
		u := unpack(t, archive)
		if u.err == nil {
			t.Error(what, "is accepted")
		}
		u.drop()
	}
}

func FuzzUnpack(f *testing.F) {
	var a cpio
	a.add(bootName, linux.S_IFREG|0o600, 0, 1, []byte(record))
	a.add("d/f", linux.S_IFREG|0o644, 7, 2, make([]byte, 5000))
	a.add("d/g", linux.S_IFREG|0o644, 7, 2, nil)
	a.add("d", linux.S_IFDIR|0o700, 0, 2, nil)
	a.add("d/f", linux.S_IFLNK|0o644, 0, 1, []byte("x"))
	a.add(trailer, 0, 0, 1, nil)
	f.Add(a.Bytes())
	f.Fuzz(func(t *testing.T, archive []byte) {
		if len(archive) > 64<<10 {
			return
		}
		mem.InitHost(8192)
		before := mem.Available()
		u := unpack(t, archive)
		u.drop()
		if n := mem.Available(); n != before || u.fs.Used() != 0 {
			t.Fatalf("%d frames before, %d after; %d charged; %v", before, n, u.fs.Used(), u.err)
		}
	})
}

// Damaged copies of a good archive: an error or an odd tree, and nothing lost.
func TestDamagedArchives(t *testing.T) {
	mem.InitHost(8192)
	var a cpio
	a.add(bootName, linux.S_IFREG|0o600, 0, 1, []byte(record))
	a.add("d/f", linux.S_IFREG|0o644, 7, 2, make([]byte, 5000))
	a.add("d/g", linux.S_IFREG|0o644, 7, 2, nil)
	a.add("d", linux.S_IFDIR|0o700, 0, 2, nil)
	a.add("d/f", linux.S_IFLNK|0o644, 0, 1, []byte("x"))
	a.add(trailer, 0, 0, 1, nil)
	r := rand.New(rand.NewPCG(1, 2))
	before := mem.Available()
	for range 3000 {
		b := bytes.Clone(a.Bytes())
		for range 1 + r.IntN(3) {
			b[r.IntN(len(b))] = "0123456789abcdefF/.\x00xyz"[r.IntN(23)]
		}
		u := unpack(t, b)
		u.drop()
		if u.fs.Used() != 0 {
			t.Fatal(u.fs.Used(), "pages charged;", u.err)
		}
	}
	if n := mem.Available(); n != before {
		t.Fatalf("%d frames before, %d after", before, n)
	}
}
