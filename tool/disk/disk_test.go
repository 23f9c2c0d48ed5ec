package disk

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"hardtack/abi/linux"
	"hardtack/ext4"
	"hardtack/tool/fault"
	"hardtack/tool/rootfs"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// scratch is a directory in memory if the machine has one.
func scratch(t *testing.T) string {
	if d, err := os.MkdirTemp("/dev/shm", "disktest"); err == nil {
		t.Cleanup(func() { os.RemoveAll(d) })
		return d
	}
	return t.TempDir()
}

// e2fs finds a program of e2fsprogs.
func e2fs(t *testing.T, name string) string {
	t.Helper()
	for _, dir := range []string{"/sbin", "/usr/sbin"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			return filepath.Join(dir, name)
		}
	}
	t.Skipf("%s is not installed (package e2fsprogs)", name)
	return ""
}

// newDisk makes a disk of a tree.
func newDisk(t *testing.T, size int64, tree *rootfs.Tree) string {
	t.Helper()
	name := filepath.Join(scratch(t), "disk")
	f, err := os.Create(name)
	must(t, err)
	defer f.Close()
	must(t, f.Truncate(size))
	must(t, Write(f, size, tree, Options{Label: "test", Zeroed: true}))
	t.Cleanup(func() {
		if !t.Failed() && !dirty(t, name) {
			wantClean(t, name)
		}
	})
	return name
}

// dirty reports whether a disk was left mounted, as some tests do.
func dirty(t *testing.T, file string) bool {
	t.Helper()
	d, err := Open(file, 0, false)
	must(t, err)
	defer d.Close()
	fs, err := ext4.Mount(d, ext4.Options{ReadOnly: true, NoLoad: true})
	must(t, err)
	return fs.Info().Recover
}

// wantClean asks e2fsck and our own checker.
func wantClean(t *testing.T, file string) {
	t.Helper()
	if out, err := exec.Command(e2fs(t, "e2fsck"), "-fn", file).CombinedOutput(); err != nil {
		t.Fatalf("e2fsck: %v\n%s", err, out)
	}
	d, err := Open(file, 0, false)
	must(t, err)
	defer d.Close()
	n, err := ext4.Check(d, func(p string) { t.Error(p) })
	if n != 0 || err != nil {
		t.Fatalf("%d problems, %v", n, err)
	}
}

// holed is a file of nothing but holes, with a byte every step bytes.
type holed struct{ size, step int64 }

func (h holed) ReadAt(p []byte, off int64) (int, error) {
	n := int(max(min(int64(len(p)), h.size-off), 0))
	clear(p[:n])
	for at := (off + h.step - 1) / h.step * h.step; at < off+int64(n); at += h.step {
		p[at-off] = 1
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (h holed) NextData(off int64) (start, end int64, err error) {
	if start = (off + h.step - 1) / h.step * h.step; start >= h.size {
		return h.size, h.size, nil
	}
	return start, start + 1, nil
}

// everything is a tree with a file of each kind.
func everything(t *testing.T) *rootfs.Tree {
	tree := rootfs.New(rootfs.Budget{Bytes: 1 << 30, Entries: 1 << 20, Disk: true})
	rng := rand.New(rand.NewPCG(7, 7))
	put := func(name string, n *rootfs.Inode) {
		t.Helper()
		n.Mtime, n.Nanos = 1e9+rng.Int64N(1e9), rng.Uint32N(1e9)
		must(t, tree.Put(name, n))
	}
	put("", &rootfs.Inode{Mode: rootfs.Dir | 0o751, UID: 3})
	put("home/u", &rootfs.Inode{Mode: rootfs.Dir | 0o2770, UID: 1000, GID: 70000})
	for i := range 300 {
		b := make([]byte, rng.IntN(40000)/(1+i%20))
		for j := range b {
			b[j] = byte(rng.Uint32())
		}
		put(fmt.Sprintf("home/u/f%d", i), &rootfs.Inode{Mode: rootfs.Regular | rng.Uint32N(0o10000), UID: rng.Uint32() >> 1, GID: rng.Uint32() >> 1, Data: rootfs.Bytes(b)})
	}
	big := make([]byte, 3<<20+123) // more than one read, with zeros in it
	for i := range big {
		if i/70000%3 != 1 {
			big[i] = byte(rng.Uint32())
		}
	}
	put("big", &rootfs.Inode{Mode: rootfs.Regular | 0o600, Data: rootfs.Bytes(big)})
	put("zeros", &rootfs.Inode{Mode: rootfs.Regular | 0o600, Data: rootfs.Bytes(make([]byte, 1<<20+1))})
	put("sparse", &rootfs.Inode{Mode: rootfs.Regular | 0o600, Data: rootfs.NewBlob(holed{5<<30 + 77, 600 << 20}, 5<<30+77, 9*4096)})
	put("short", &rootfs.Inode{Mode: rootfs.Symlink | 0o777, Target: "home/u/f1"})
	put("long", &rootfs.Inode{Mode: rootfs.Symlink | 0o777, Target: strings.Repeat("../", 300), UID: 5})
	put("dev/null", &rootfs.Inode{Mode: rootfs.Char | 0o666, Major: 1, Minor: 3})
	put("srv/disk", &rootfs.Inode{Mode: rootfs.Block | 0o660, Major: 259, Minor: 70000, GID: 6})
	put("run/pipe", &rootfs.Inode{Mode: rootfs.FIFO | 0o622})
	put("run/socket", &rootfs.Inode{Mode: rootfs.Socket | 0o755})
	acl := "\x02\x00\x00\x00\x01\x00\x06\x00\xff\xff\xff\xff\x02\x00\x04\x00\xe8\x03\x00\x00\x04\x00\x04\x00\xff\xff\xff\xff\x10\x00\x04\x00\xff\xff\xff\xff\x20\x00\x00\x00\xff\xff\xff\xff"
	put("bin/ping", &rootfs.Inode{Mode: rootfs.Regular | 0o4755, Data: rootfs.Bytes([]byte("ping")), Xattrs: map[string]string{
		"security.capability": "\x01\x00\x00\x02\x00\x20\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00",
		"user.empty":          "", "user.long": strings.Repeat("x", 2000), "system.posix_acl_access": acl}})
	put("acl", &rootfs.Inode{Mode: rootfs.Dir | 0o750, Xattrs: map[string]string{"system.posix_acl_default": acl, "trusted.x": "y"}})
	must(t, tree.Link("bin/ping6", "bin/ping"))
	must(t, tree.Link("run/pipe2", "run/pipe"))
	put("lost+found", &rootfs.Inode{Mode: rootfs.Dir | 0o700, GID: 4})
	put("lost+found/#12", &rootfs.Inode{Mode: rootfs.Regular | 0o644})
	for i := range 3000 { // a directory with an index
		put(fmt.Sprintf("names/a-file-with-a-name-%d", i), &rootfs.Inode{Mode: rootfs.Regular | 0o644})
	}
	tree.Config = &rootfs.Config{Cmd: []string{"/bin/ping", "-c1"}, Env: []string{"A=b"}}
	return tree
}

// compare wants the same files in both trees.
func compare(t *testing.T, got, want *rootfs.Tree) {
	t.Helper()
	names := map[*rootfs.Inode]*rootfs.Inode{}
	count := func(tree *rootfs.Tree) (n int) {
		_ = tree.Walk(func(string, *rootfs.Inode) error { n++; return nil })
		return n
	}
	if g, w := count(got), count(want); g != w {
		t.Errorf("%d names, want %d", g, w)
	}
	err := want.Walk(func(name string, w *rootfs.Inode) error {
		g, err := got.Lookup(name, false)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if old, ok := names[w]; ok && old != g {
			t.Errorf("%s is another file than its other names", name)
		}
		names[w] = g
		if g.Mode != w.Mode || g.UID != w.UID || g.GID != w.GID || g.Mtime != w.Mtime || g.Nanos != w.Nanos ||
			g.Major != w.Major || g.Minor != w.Minor || g.Target != w.Target || !maps.Equal(g.Xattrs, w.Xattrs) {
			t.Errorf("%s: %+v, want %+v", name, g, w)
		}
		if w.Type() == rootfs.Regular {
			if g.Data.Size() != w.Data.Size() {
				t.Errorf("%s: %d bytes, want %d", name, g.Data.Size(), w.Data.Size())
			} else if err := sameContent(g.Data, w.Data); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		return nil
	})
	must(t, err)
}

// sameContent compares where either has data.
func sameContent(a, b rootfs.Blob) error {
	p, q := make([]byte, chunk), make([]byte, chunk)
	for off := int64(0); off < a.Size(); {
		x, _, err := a.NextData(off)
		if err != nil {
			return err
		}
		y, _, err := b.NextData(off)
		if err != nil {
			return err
		}
		if off = min(x, y); off >= a.Size() {
			break
		}
		n := min(a.Size()-off, 4096)
		if _, _, e := a.NextData(off); e == nil && x == y {
			n = min(a.Size()-off, chunk)
		}
		if _, err := a.Open().ReadAt(p[:n], off); err != nil && err != io.EOF {
			return err
		}
		if _, err := b.Open().ReadAt(q[:n], off); err != nil && err != io.EOF {
			return err
		}
		if !bytes.Equal(p[:n], q[:n]) {
			return fmt.Errorf("differs in the %d bytes from %d on", n, off)
		}
		off += n
	}
	return nil
}

func TestWrite(t *testing.T) {
	tree := everything(t)
	file := newDisk(t, 256<<20, tree)
	wantClean(t, file)
	d, err := Open(file, 0, false)
	must(t, err)
	defer d.Close()
	got, err := Peek(d)
	must(t, err)
	compare(t, got, tree)
	if got.Config == nil || strings.Join(got.Config.Cmd, " ") != "/bin/ping -c1" || got.Config.Env[0] != "A=b" {
		t.Errorf("config %+v", got.Config)
	}
	for name, limit := range map[string]int64{"sparse": 10 * 4096, "zeros": 0, "big": 3 << 20} {
		n, err := got.Lookup(name, false)
		must(t, err)
		if n.Data.Cost() > limit {
			t.Errorf("%s takes %d bytes, %d are enough", name, n.Data.Cost(), limit)
		}
	}
	for _, dir := range []string{"dev", "proc", "sys", "run", "tmp"} {
		if n, err := got.Lookup(dir, false); err != nil || n.Type() != rootfs.Dir {
			t.Errorf("/%s: %v", dir, err)
		}
	}
}

// debugfs reads what we wrote as we meant it.
func TestDebugfs(t *testing.T) {
	debugfs := e2fs(t, "debugfs")
	tree := everything(t)
	file := newDisk(t, 256<<20, tree)
	var script strings.Builder
	var names []string
	must(t, tree.Walk(func(name string, n *rootfs.Inode) error {
		if !strings.HasPrefix(name, "names/") || strings.HasSuffix(name, "7") {
			names = append(names, name)
			fmt.Fprintf(&script, "stat \"/%s\"\n", name)
		}
		return nil
	}))
	out := debugfsScript(t, debugfs, file, script.String())
	answers := strings.Split(out, "debugfs: stat ")[1:]
	if len(answers) != len(names) {
		t.Fatalf("%d answers to %d questions", len(answers), len(names))
	}
	field := func(text, pattern string) string {
		if m := regexp.MustCompile(pattern).FindStringSubmatch(text); m != nil {
			return m[1]
		}
		return ""
	}
	for i, name := range names {
		n, err := tree.Lookup(name, false)
		must(t, err)
		a := answers[i]
		for _, x := range [][2]string{
			{`Mode:\s+(\d+)`, fmt.Sprintf("0%03o", n.Perm())},
			{`User:\s+(\d+)`, fmt.Sprint(n.UID)},
			{`Group:\s+(\d+)`, fmt.Sprint(n.GID)},
			{`mtime: (0x[0-9a-f]+:[0-9a-f]+)`, fmt.Sprintf("0x%08x:%08x", uint32(n.Mtime), n.Nanos<<2)},
		} {
			if got := field(a, x[0]); got != x[1] {
				t.Errorf("/%s: %s gives %q, want %q", name, x[0], got, x[1])
			}
		}
		if n.Type() == rootfs.Char || n.Type() == rootfs.Block {
			if got := field(a, `Device major/minor number: (\d+:\d+)`); got != fmt.Sprintf("%02d:%02d", n.Major, n.Minor) {
				t.Errorf("/%s: device %s", name, got)
			}
		}
		if n.Type() == rootfs.Regular && field(a, `Size: (\d+)`) != fmt.Sprint(n.Data.Size()) {
			t.Errorf("/%s: size %s", name, field(a, `Size: (\d+)`))
		}
		for x := range n.Xattrs {
			if !strings.Contains(a, x+" (") && !strings.Contains(a, x+":") {
				t.Errorf("/%s: no %s in\n%s", name, x, a)
			}
		}
	}
	dir := t.TempDir()
	debugfsScript(t, debugfs, file, fmt.Sprintf("rdump /home %s\ndump /big %s/big\n", dir, dir))
	for _, name := range names {
		n, err := tree.Lookup(name, false)
		must(t, err)
		if n.Type() != rootfs.Regular || !strings.HasPrefix(name, "home/") && name != "big" {
			continue
		}
		got, err := os.ReadFile(filepath.Join(dir, name))
		must(t, err)
		want, err := io.ReadAll(n.Data.Open())
		must(t, err)
		if !bytes.Equal(got, want) {
			t.Errorf("/%s differs", name)
		}
	}
}

func debugfsScript(t *testing.T, debugfs, file, script string) string {
	t.Helper()
	cmd := filepath.Join(t.TempDir(), "cmd")
	must(t, os.WriteFile(cmd, []byte(script), 0o600))
	out, err := exec.Command(debugfs, "-f", cmd, file).Output()
	if err != nil {
		t.Fatalf("debugfs: %v", err)
	}
	return string(out)
}

func TestTooSmall(t *testing.T) {
	for _, x := range []struct {
		size  int64
		bytes int
		files int
	}{{4 << 20, 1, 1}, {16 << 20, 20 << 20, 1}, {16 << 20, 0, 9000}} {
		tree := rootfs.New(rootfs.Budget{Bytes: 1 << 30, Entries: 1 << 20, Disk: true})
		b := bytes.Repeat([]byte("x"), x.bytes)
		for i := range x.files {
			must(t, tree.Put(fmt.Sprintf("d/%d", i), &rootfs.Inode{Mode: rootfs.Regular | 0o644, Data: rootfs.Bytes(b)}))
		}
		f, err := os.Create(filepath.Join(scratch(t), "disk"))
		must(t, err)
		must(t, f.Truncate(x.size))
		err = Write(f, x.size, tree, Options{Zeroed: true})
		f.Close()
		if fault.Status(err) != fault.Input || !strings.Contains(err.Error(), "too few") {
			t.Errorf("%+v: %v", x, err)
		}
	}
}

// Many small files get the inodes that they need.
func TestManyFiles(t *testing.T) {
	tree := rootfs.New(rootfs.Budget{Bytes: 1 << 30, Entries: 1 << 20, Disk: true})
	for i := range 6000 {
		must(t, tree.Put(fmt.Sprintf("d%d/%d", i%10, i), &rootfs.Inode{Mode: rootfs.Regular | 0o644}))
	}
	wantClean(t, newDisk(t, 40<<20, tree))
}

// Old bytes on the device do no harm.
func TestUsedDevice(t *testing.T) {
	name := filepath.Join(scratch(t), "disk")
	must(t, os.WriteFile(name, bytes.Repeat([]byte{0xa5}, 32<<20), 0o600))
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	must(t, err)
	defer f.Close()
	tree := rootfs.New(rootfs.Budget{Bytes: 1 << 30, Entries: 1 << 20, Disk: true})
	must(t, tree.Put("a", &rootfs.Inode{Mode: rootfs.Regular | 0o644, Data: rootfs.Bytes([]byte("a"))}))
	must(t, Write(f, 32<<20, tree, Options{}))
	wantClean(t, name)
}

// TestPartitions opens a file system in a partition.
func TestPartitions(t *testing.T) {
	plain, err := os.ReadFile(newDisk(t, 16<<20, rootfs.New(rootfs.Budget{Bytes: 1 << 20, Entries: 100, Disk: true})))
	must(t, err)
	b := make([]byte, 1<<20+len(plain))
	copy(b[1<<20:], plain)
	e := b[446:]
	e[4] = 0x83
	binary.LittleEndian.PutUint32(e[8:], 2048)
	binary.LittleEndian.PutUint32(e[12:], uint32(len(plain)/512))
	b[510], b[511] = 0x55, 0xaa
	name := filepath.Join(scratch(t), "disk")
	must(t, os.WriteFile(name, b, 0o600))
	d, err := Open(name, 1, true)
	must(t, err)
	n, err := ext4.Check(d, func(p string) { t.Error(p) })
	if n != 0 || err != nil {
		t.Errorf("%d problems, %v", n, err)
	}
	fs, err := ext4.Mount(d, ext4.Options{})
	must(t, err)
	must(t, fs.Unmount())
	must(t, d.Close())
	for part, want := range map[int]string{0: "has partitions (1); name one", 2: "no partition 2, but 1"} {
		if _, err := Open(name, part, false); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("partition %d: %v", part, err)
		}
	}
	if _, err := Open(filepath.Join(filepath.Dir(name), "none"), 0, false); fault.Status(err) != fault.Input {
		t.Errorf("no file: %v", err)
	}
}

// A disk that was not unmounted is looked at as its recovery will leave it, and
// stays as it is.
func TestPeekDirty(t *testing.T) {
	file := newDisk(t, 16<<20, rootfs.New(rootfs.Budget{Bytes: 1 << 20, Entries: 100, Disk: true}))
	d, err := Open(file, 0, true)
	must(t, err)
	defer d.Close()
	fs, err := ext4.Mount(d, ext4.Options{})
	must(t, err)
	root, err := fs.Root()
	must(t, err)
	in, err := fs.Create(root, "new", ext4.NewInode{Mode: linux.S_IFREG | 0o600})
	must(t, err)
	_, err = fs.WriteAt(in, []byte("hello"), 0)
	must(t, err)
	must(t, fs.Fsync(in, false))
	before, err := os.ReadFile(file)
	must(t, err)
	tree, err := Peek(d)
	must(t, err)
	n, err := tree.Lookup("new", false)
	must(t, err)
	text, err := io.ReadAll(n.Data.Open())
	if string(text) != "hello" || err != nil {
		t.Errorf("%q, %v", text, err)
	}
	after, err := os.ReadFile(file)
	must(t, err)
	if !bytes.Equal(before, after) {
		t.Error("the disk changed")
	}
}

// A directory of the host becomes the disk, with its holes and links.
func TestFromDirectory(t *testing.T) {
	dir := scratch(t)
	must(t, os.MkdirAll(dir+"/a/b", 0o755))
	must(t, os.WriteFile(dir+"/a/b/f", []byte("text"), 0o640))
	must(t, os.Link(dir+"/a/b/f", dir+"/g"))
	must(t, os.Symlink("a/b/f", dir+"/s"))
	f, err := os.Create(dir + "/hole")
	must(t, err)
	_, err = f.WriteAt([]byte("end"), 1<<30)
	must(t, err)
	must(t, f.Close())
	tree := rootfs.New(rootfs.Budget{Bytes: 1 << 20, Entries: 1000, Disk: true})
	must(t, tree.ReadDir(dir, rootfs.AsIs))
	file := newDisk(t, 16<<20, tree)
	wantClean(t, file)
	d, err := Open(file, 0, false)
	must(t, err)
	defer d.Close()
	got, err := Peek(d)
	must(t, err)
	must(t, got.Remove("lost+found"))
	compare(t, got, tree)
}
