package ext4

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"hardtack/abi/linux"
)

// memDisk is a disk in memory, in pages so that large ones cost little.
type memDisk struct {
	mu    sync.Mutex
	size  int64
	pages map[int64][]byte // 64 KiB each; guarded by mu
	fail  func(write bool) error
	// damaged is set where a test itself writes to the disk.
	damaged bool
	seen    bool // clean, and not written since; guarded by mu
}

// under is a disk made of a memDisk.
type under interface{ inMemory() *memDisk }

func (m *memDisk) inMemory() *memDisk { return m }

const memPage = 64 << 10

func newMemDisk(size int64) *memDisk { return &memDisk{size: size, pages: map[int64][]byte{}} }

func (m *memDisk) Size() int64    { return m.size }
func (m *memDisk) BlockSize() int { return 512 }
func (m *memDisk) Flush() error {
	if m.fail != nil {
		return m.fail(true)
	}
	return nil
}
func (m *memDisk) Discard(off, n int64) error { return nil }

func (m *memDisk) move(batch []Transfer, write bool) error {
	if m.fail != nil {
		if err := m.fail(write); err != nil {
			return err
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.seen = m.seen && !write
	for _, t := range batch {
		if err := checkTransfer(t, m.size); err != nil {
			return err
		}
		if t.Off%512 != 0 || len(t.Buf)%512 != 0 {
			return fmt.Errorf("%d bytes at %d are not blocks: %w", len(t.Buf), t.Off, linux.EINVAL)
		}
		for p, off := t.Buf, t.Off; len(p) > 0; {
			pg, at := off/memPage, off%memPage
			n := min(int64(len(p)), memPage-at)
			page := m.pages[pg]
			switch {
			case write:
				if page == nil {
					page = make([]byte, memPage)
					m.pages[pg] = page
				}
				copy(page[at:], p[:n])
			case page == nil:
				clear(p[:n])
			default:
				copy(p[:n], page[at:])
			}
			p, off = p[n:], off+n
		}
	}
	return nil
}

func (m *memDisk) ReadAt(batch []Transfer) error            { return m.move(batch, false) }
func (m *memDisk) WriteAt(batch []Transfer, fua bool) error { return m.move(batch, true) }

func (m *memDisk) clone() *memDisk {
	c := newMemDisk(m.size)
	for i, p := range m.pages {
		c.pages[i] = append([]byte(nil), p...)
	}
	return c
}

// save writes the disk to a file, sparse.
func (m *memDisk) save(t testing.TB, name string) {
	t.Helper()
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Truncate(m.size); err != nil {
		t.Fatal(err)
	}
	for i, p := range m.pages {
		if _, err := f.WriteAt(p[:min(memPage, m.size-i*memPage)], i*memPage); err != nil {
			t.Fatal(err)
		}
	}
}

// loadDisk reads a file into memory.
func loadDisk(t testing.TB, name string) *memDisk {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	st, _ := f.Stat()
	m := newMemDisk(st.Size())
	zero := make([]byte, memPage)
	for i := int64(0); i*memPage < m.size; i++ {
		p := make([]byte, memPage)
		f.ReadAt(p, i*memPage)
		if string(p) != string(zero) {
			m.pages[i] = p
		}
	}
	return m
}

// tool finds one of e2fsprogs' programs, or skips the test.
func tool(t testing.TB, name string) string {
	t.Helper()
	for _, dir := range []string{"/sbin", "/usr/sbin"} {
		if p := filepath.Join(dir, name); exec.Command(p, "-V").Run() == nil || fileExists(p) {
			return p
		}
	}
	p, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("%s is not installed (package e2fsprogs)", name)
	}
	return p
}

func fileExists(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}

// scratch is a directory in memory if the machine has one.
func scratch(t testing.TB) string {
	if d, err := os.MkdirTemp("/dev/shm", "ext4test"); err == nil {
		t.Cleanup(func() { os.RemoveAll(d) })
		return d
	}
	return t.TempDir()
}

// e2fsck checks a disk and returns what it complained of, "" if it is clean.
func e2fsck(t testing.TB, file string) string {
	t.Helper()
	out, err := exec.Command(tool(t, "e2fsck"), "-fn", file).CombinedOutput()
	if err != nil {
		return fmt.Sprintf("%v\n%s", err, out)
	}
	return ""
}

// wantClean fails the test unless e2fsck and our own checker find the disk clean.
func wantClean(t testing.TB, m *memDisk) {
	t.Helper()
	file := filepath.Join(scratch(t), "disk")
	m.save(t, file)
	if out := e2fsck(t, file); out != "" {
		t.Fatalf("e2fsck: %s", out)
	}
	var ours []string
	n, err := Check(m, func(p string) { ours = append(ours, p) })
	if err != nil || n != 0 {
		t.Fatalf("Check: %d problems, %v\n%s", n, err, strings.Join(ours, "\n"))
	}
	m.mu.Lock()
	m.seen = true
	m.mu.Unlock()
}

func mkfsMem(t testing.TB, size int64, bs int) *memDisk {
	t.Helper()
	m := newMemDisk(size)
	if err := Mkfs(m, MkfsOptions{BlockSize: bs, Zeroed: true}); err != nil {
		t.Fatal(err)
	}
	return m
}

func mount(t testing.TB, m BlockDevice) *FS {
	t.Helper()
	return mountWith(t, m, Options{})
}

// mountWith is how tests mount a sound disk (TestMountsAreWatched sees to that): when
// the test ends a disk that was unmounted must be clean.
func mountWith(t testing.TB, dev BlockDevice, o Options) *FS {
	t.Helper()
	fs, err := Mount(dev, o)
	if err != nil {
		t.Fatal(err)
	}
	if u, ok := dev.(under); ok {
		m := u.inMemory()
		t.Cleanup(func() {
			m.mu.Lock()
			seen := m.seen
			m.mu.Unlock()
			if fs.j != nil && fs.j.ended() == errUnmounted && !seen && !m.damaged && !t.Failed() {
				m.fail = nil
				wantClean(t, m)
			}
		})
	}
	return fs
}

// TestMountsAreWatched: no test mounts past mountWith but those that say here why.
func TestMountsAreWatched(t *testing.T) {
	allowed := map[string]string{
		"crash_test.go":   "checks each state itself",
		"damage_test.go":  "damaged disks",
		"device_test.go":  "mountWith",
		"fuzz_test.go":    "damaged disks",
		"linux_test.go":   "disks that are refused",
		"load_test.go":    "disks that fail: each is checked there",
		"hostile_test.go": "damaged disks",
		"mutant_test.go":  "damaged disks, and wantClean for the others",
	}
	files, err := filepath.Glob("*_test.go")
	must(t, err)
	if len(files) < 10 {
		t.Fatalf("only %d files", len(files))
	}
	for _, name := range files {
		b, err := os.ReadFile(name)
		must(t, err)
		if regexp.MustCompile(`[^A-Za-z.]Mount\(`).Match(b) && allowed[name] == "" {
			t.Errorf("%s mounts a disk that nobody looks at afterwards: use mount or mountWith", name)
		}
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// mke2fs makes a disk with the reference program.
func mke2fs(t testing.TB, size string, args ...string) *memDisk {
	t.Helper()
	file := filepath.Join(scratch(t), "disk")
	args = append([]string{"-q", "-F", "-t", "ext4"}, args...)
	if out, err := exec.Command(tool(t, "mke2fs"), append(args, file, size)...).CombinedOutput(); err != nil {
		t.Fatalf("mke2fs: %v\n%s", err, out)
	}
	return loadDisk(t, file)
}
