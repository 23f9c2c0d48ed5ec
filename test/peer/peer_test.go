package peer

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"hardtack/abi/linux"
	"hardtack/ext4"
	"hardtack/tool/disk"
	"hardtack/tool/rootfs"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// needLinux boots nothing where that is not wanted.
func needLinux(t *testing.T) *linuxPeer {
	if os.Getenv("HARDTACK_GUEST") == "" {
		t.Skip("boots Debian's Linux in QEMU; set HARDTACK_GUEST=1")
	}
	for _, name := range []string{"qemu-system-x86_64", "gcc", "apt-get", e2fs("mke2fs")} {
		if _, err := exec.LookPath(name); err != nil {
			t.Skipf("needs %s", name)
		}
	}
	l, err := newLinux(t.TempDir())
	must(t, err)
	return l
}

// scratch is a directory in memory if the machine has one.
func scratch(t *testing.T) string {
	if d, err := os.MkdirTemp("/dev/shm", "peer"); err == nil {
		t.Cleanup(func() { os.RemoveAll(d) })
		return d
	}
	return t.TempDir()
}

func mount(t *testing.T, dev ext4.BlockDevice) *ext4.FS {
	t.Helper()
	fs, err := ext4.Mount(dev, ext4.Options{})
	must(t, err)
	return fs
}

// listed recovers a disk if it must be, and lists it.
func listed(t *testing.T, dev ext4.BlockDevice, i int) string {
	t.Helper()
	fs := mount(t, dev)
	text, err := list(fs, i)
	must(t, err)
	must(t, fs.Unmount())
	return text
}

// same wants two lists to be alike, and shows where they are not.
func same(t *testing.T, what, ours, theirs string) {
	t.Helper()
	if ours == theirs {
		return
	}
	a, b := strings.Split(ours, "\n"), strings.Split(theirs, "\n")
	shown := 0
	for i := 0; i < max(len(a), len(b)) && shown < 5; i++ {
		var x, y string
		if i < len(a) {
			x = a[i]
		}
		if i < len(b) {
			y = b[i]
		}
		if x != y {
			t.Logf("ours:  %s\nLinux: %s", x, y)
			shown++
		}
	}
	t.Errorf("%s: the lists differ (%d lines, Linux %d)", what, len(a), len(b))
}

func wantClean(t *testing.T, f *farm, i int, what string) {
	t.Helper()
	out, err := f.fsck(i, filepath.Dir(f.file.Name()))
	must(t, err)
	if out != "" {
		t.Errorf("%s: e2fsck: %s", what, out)
	}
	if n, err := ext4.Check(f.disk(i), func(p string) { t.Error(what, p) }); n != 0 || err != nil {
		t.Errorf("%s: our checker: %d problems, %v", what, n, err)
	}
}

// kinds are the file systems that go back and forth.
var kinds = []struct {
	name string
	args []string // of mke2fs; nil: ours
	size int      // of blocks
}{
	{"mke2fs", []string{}, 4096}, {"mke2fs, 1 KiB", []string{"-b", "1024"}, 1024},
	{"without 64bit", []string{"-O", "^64bit"}, 4096}, {"without metadata_csum", []string{"-O", "^metadata_csum"}, 4096},
	{"orphan_file", []string{"-O", "metadata_csum_seed,orphan_file"}, 4096}, {"large_dir, no flex_bg", []string{"-O", "large_dir,^flex_bg"}, 4096},
	{"ours", nil, 4096}, {"ours, 1 KiB", nil, 1024}, {"ours, 2 KiB", nil, 2048},
}

// long says whether the long forms are wanted: make crash.
func long() bool { return os.Getenv("HARDTACK_CRASH_STATES") != "" }

// TestToAndFro has Linux and our library change the same disks in turn. After each
// turn both list them, and e2fsck and our checker find them clean. One turn, or four
// in the long form.
func TestToAndFro(t *testing.T) {
	l, dir := needLinux(t), scratch(t)
	f, err := newFarm(filepath.Join(dir, "farm"), len(kinds)+2, 64<<20)
	must(t, err)
	defer f.file.Close()
	for i, k := range kinds {
		if k.args == nil {
			must(t, ext4.Mkfs(f.disk(i), ext4.MkfsOptions{BlockSize: k.size, Zeroed: true}))
			continue
		}
		name := filepath.Join(dir, "fs")
		args := append([]string{"-q", "-F", "-t", "ext4"}, k.args...)
		if out, err := exec.Command(e2fs("mke2fs"), append(args, name, fmt.Sprintf("%dk", f.stride>>10))...).CombinedOutput(); err != nil {
			t.Fatalf("mke2fs: %v\n%s", err, out)
		}
		must(t, f.put(i, name))
		must(t, os.Remove(name))
	}
	// The last two disks are what `hardtack image disk` makes; one of them stays
	// as it is.
	image := imageDisk(t, dir, f.stride)
	must(t, f.put(len(kinds), image))
	must(t, f.put(len(kinds)+1, image))
	name := func(i int) string {
		if i >= len(kinds) {
			return "image disk"
		}
		return kinds[i].name
	}
	turns := 1
	if long() {
		turns = 4
	}
	for turn := range turns {
		lists, err := l.run(f, "write", 0, f.count-1, turn+1)
		must(t, err)
		for i := range f.count - 1 {
			what := fmt.Sprintf("%s, turn %d", name(i), turn)
			if len(lists[i]) < 10000 {
				t.Fatalf("%s: Linux wrote next to nothing:\n%s", what, lists[i])
			}
			same(t, what+", by Linux", listed(t, f.disk(i), i), lists[i])
			wantClean(t, f, i, what+", by Linux")
			fs := mount(t, f.disk(i))
			must(t, change(fs, uint64(100*turn+i), 600))
			must(t, fs.Unmount())
			wantClean(t, f, i, what+", by us")
		}
		if lists, err = l.run(f, "list", 0, f.count); err != nil {
			t.Fatal(err)
		}
		for i := range f.count {
			what := fmt.Sprintf("%s, turn %d", name(i), turn)
			same(t, what+", by us", listed(t, f.disk(i), i), lists[i])
			wantClean(t, f, i, what+", listed by Linux")
		}
	}
}

// imageDisk makes a disk of a small root.
func imageDisk(t *testing.T, dir string, size int64) string {
	tree := rootfs.New(rootfs.Budget{Bytes: 1 << 30, Entries: 1 << 20, Disk: true})
	rng := rand.New(rand.NewPCG(3, 3))
	for i := range 500 {
		b := make([]byte, rng.IntN(20000))
		for j := range b {
			b[j] = byte(rng.Uint32())
		}
		n := &rootfs.Inode{Mode: rootfs.Regular | rng.Uint32N(0o10000), UID: rng.Uint32() >> 1, GID: rng.Uint32() >> 1,
			Mtime: rng.Int64N(4e9), Nanos: rng.Uint32N(1e9), Data: rootfs.Bytes(b)}
		if i%10 == 0 {
			n.Xattrs = map[string]string{"user.x": fmt.Sprint(i), "system.posix_acl_access": string(acl), "security.capability": "\x01\x00\x00\x02\x00\x20" + strings.Repeat("\x00", 14)}
		}
		must(t, tree.Put(fmt.Sprintf("usr/d%d/f%d", i%17, i), n))
	}
	must(t, tree.Link("usr/link", "usr/d0/f0"))
	must(t, tree.Put("dev/sda", &rootfs.Inode{Mode: rootfs.Block | 0o660, Major: 8, Minor: 300}))
	name := filepath.Join(dir, "image")
	f, err := os.Create(name)
	must(t, err)
	defer f.Close()
	must(t, f.Truncate(size))
	must(t, disk.Write(f, size, tree, disk.Options{Zeroed: true}))
	return name
}

// TestCrashStates has Linux mount disks as a crash leaves them, and others that
// our mount recovered: 8 of each, 100 in the long form.
func TestCrashStates(t *testing.T) {
	l, dir := needLinux(t), scratch(t)
	n := 8
	if long() {
		n = 100
	}
	make := exec.Command("go", "test", "-count=1", "-run", "^TestCrashSample$", "./ext4")
	make.Dir = l.dirs.Repo
	make.Env = append(os.Environ(), "HARDTACK_CRASH_KEEP="+dir, "HARDTACK_CRASH_SAMPLE="+fmt.Sprint(n))
	if out, err := make.CombinedOutput(); err != nil {
		t.Fatalf("making crash states: %v\n%s", err, out)
	}
	f, err := newFarm(filepath.Join(dir, "farm"), 2*n, 12<<20)
	must(t, err)
	defer f.file.Close()
	want := map[int]string{}
	for i := range n {
		for j, kind := range []string{"raw", "ours"} {
			name := filepath.Join(dir, fmt.Sprintf("%s-%d", kind, i))
			must(t, f.put(2*i+j, name))
			want[2*i+j] = listed(t, disk.Overlay(f.disk(2*i+j)), 2*i+j)
			must(t, os.Remove(name))
		}
	}
	lists, err := l.run(f, "list", 0, f.count)
	must(t, err)
	for i := range f.count {
		what := fmt.Sprintf("crash state %d, recovered by %s", i/2, []string{"Linux", "us"}[i%2])
		same(t, what, want[i], lists[i])
		wantClean(t, f, i, what)
	}
}

// TestDirtyByLinux kills a Linux that writes and syncs, and recovers its disks.
func TestDirtyByLinux(t *testing.T) {
	l, dir := needLinux(t), scratch(t)
	const disks = 8
	f, err := newFarm(filepath.Join(dir, "farm"), disks, 32<<20)
	must(t, err)
	defer f.file.Close()
	for i := range disks {
		must(t, ext4.Mkfs(f.disk(i), ext4.MkfsOptions{BlockSize: []int{4096, 1024}[i%2], Zeroed: true}))
	}
	m, err := l.start(f, f.command("dirty", 0, disks))
	must(t, err)
	synced := map[int]int{}
	for deadline := time.Now().Add(10 * time.Minute); ; time.Sleep(20 * time.Millisecond) {
		out := m.Output()
		if n := strings.Count(out, "synced "); n >= 60*disks {
			break
		}
		if time.Now().After(deadline) || strings.Contains(out, "peer:") {
			m.Stop()
			t.Fatalf("Linux writes too little:\n%s", out)
		}
	}
	m.Stop()
	for line := range strings.Lines(m.Output()) {
		var i, k int
		if n, _ := fmt.Sscanf(line, "synced %d %d\n", &i, &k); n == 2 && strings.HasSuffix(line, "\n") {
			synced[i] = max(synced[i], k)
		}
	}
	if len(synced) != disks {
		t.Fatalf("synced: %v", synced)
	}
	dirty := 0
	for i := range disks {
		fs, err := ext4.Mount(f.disk(i), ext4.Options{ReadOnly: true, NoLoad: true})
		must(t, err)
		if fs.Info().Recover {
			dirty++
		}
		fs = mount(t, f.disk(i))
		checkSynced(t, fs, i, synced[i])
		must(t, fs.Unmount())
		wantClean(t, f, i, fmt.Sprintf("disk %d, left dirty by Linux", i))
	}
	if dirty != disks {
		t.Errorf("%d of %d disks were dirty", dirty, disks)
	}
	lists, err := l.run(f, "list", 0, disks)
	must(t, err)
	for i := range disks {
		same(t, fmt.Sprintf("disk %d, recovered by us", i), listed(t, f.disk(i), i), lists[i])
	}
}

// checkSynced wants what peer.c had written to a disk up to its last fsync: names
// are journaled in order, so all of them are there; contents only of what was
// synced, or written out by itself.
func checkSynced(t *testing.T, fs *ext4.FS, disk, last int) {
	t.Helper()
	root, err := fs.Root()
	must(t, err)
	defer fs.Put(root)
	for k := range last + 1 {
		name := fmt.Sprint("f", k)
		// f(k-5) is renamed when k is written, after it.
		ino, err := fs.Lookup(root, name)
		must(t, err)
		moved := false
		if later := k + 5; later%7 == 3 && later > 10 && ino == 0 {
			moved = true
			ino, err = fs.Lookup(root, fmt.Sprint("moved", k))
			must(t, err)
		}
		if ino == 0 {
			t.Errorf("disk %d: file %d of %d that are synced is gone", disk, k, last)
			continue
		}
		if later := k + 5; !moved && later%7 == 3 && later > 10 && later < last {
			t.Errorf("disk %d: file %d was not renamed", disk, k)
		}
		in, err := fs.Get(ino)
		must(t, err)
		b := make([]byte, 4*(k+1)+1)
		n, err := fs.ReadAt(in, b, 0)
		must(t, err)
		word := uint32(k*16 + disk)
		if k == last && n != 4*(k+1) {
			t.Errorf("disk %d: file %d was synced and has %d bytes", disk, k, n)
		}
		for i := 0; i+4 <= n; i += 4 {
			got := uint32(b[i]) | uint32(b[i+1])<<8 | uint32(b[i+2])<<16 | uint32(b[i+3])<<24
			if got != word && (k == last || got != 0) {
				t.Errorf("disk %d: file %d has %#x", disk, k, got)
				break
			}
		}
		must(t, fs.Put(in))
	}
}

// TestDirtyByUs leaves disks without unmounting them; Linux recovers them.
func TestDirtyByUs(t *testing.T) {
	l, dir := needLinux(t), scratch(t)
	const disks = 8
	f, err := newFarm(filepath.Join(dir, "farm"), disks, 32<<20)
	must(t, err)
	defer f.file.Close()
	want, synced := map[int]string{}, map[int]int{}
	for i := range disks {
		must(t, ext4.Mkfs(f.disk(i), ext4.MkfsOptions{BlockSize: []int{4096, 1024}[i%2], Zeroed: true}))
		fs := mount(t, f.disk(i))
		must(t, change(fs, uint64(i), 100+50*i))
		root, err := fs.Root()
		must(t, err)
		for k := range 40 + i {
			in, err := fs.Create(root, fmt.Sprint("mine", k), ext4.NewInode{Mode: linux.S_IFREG | 0o600})
			must(t, err)
			_, err = fs.WriteAt(in, []byte(strings.Repeat(fmt.Sprintln(k), k)), 0)
			must(t, err)
			if k%3 == 0 {
				must(t, fs.Fsync(in, false))
				synced[i] = k
			}
			must(t, fs.Put(in))
		}
		must(t, fs.Put(root)) // and nobody unmounts it
		want[i] = listed(t, disk.Overlay(f.disk(i)), i)
	}
	lists, err := l.run(f, "list", 0, disks)
	must(t, err)
	for i := range disks {
		what := fmt.Sprintf("disk %d, left dirty by us", i)
		for k := range synced[i] + 1 {
			if !strings.Contains(lists[i], fmt.Sprintf("%d /mine%d ", i, k)) {
				t.Errorf("%s: file %d is gone, %d was synced", what, k, synced[i])
			}
		}
		same(t, what, want[i], lists[i])
		wantClean(t, f, i, what)
	}
}
