package ext4

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"hardtack/abi/linux"
)

// faultyDisk fails requests. A write that fails has reached the disk in part.
type faultyDisk struct {
	*memDisk
	mu    sync.Mutex
	rng   *rand.Rand
	count int // requests that could have failed
	// bad decides about a request: 'r' is a read, 'w' a write, 'f' a flush.
	bad func(kind byte, n int) bool
}

func (d *faultyDisk) fails(kind byte) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.bad == nil {
		return false
	}
	d.count++
	return d.bad(kind, d.count)
}

func (d *faultyDisk) ReadAt(batch []Transfer) error {
	if d.fails('r') {
		return fmt.Errorf("read: %w", linux.EIO)
	}
	return d.memDisk.ReadAt(batch)
}

func (d *faultyDisk) WriteAt(batch []Transfer, fua bool) error {
	if !d.fails('w') {
		return d.memDisk.WriteAt(batch, fua)
	}
	for _, t := range batch {
		if d.rng.IntN(2) == 0 {
			d.memDisk.WriteAt([]Transfer{t}, false)
		}
	}
	return fmt.Errorf("write: %w", linux.EIO)
}

func (d *faultyDisk) Flush() error {
	if d.fails('f') {
		return fmt.Errorf("flush: %w", linux.EIO)
	}
	return d.memDisk.Flush()
}

// keeper makes files and remembers those that an fsync said are durable.
type keeper struct {
	fs      *FS
	durable map[string][]byte
	errs    []error
}

func (k *keeper) note(err error) bool {
	if err != nil {
		k.errs = append(k.errs, err)
	}
	return err == nil
}

// round makes a file, replaces it by another, and leaves one that nobody waits for.
func (k *keeper) round(root *Inode, i int) {
	data := bytes.Repeat([]byte{byte(i + 1)}, 1000+i*700%9000)
	name, final := fmt.Sprint("new", i), fmt.Sprint("kept", i%7)
	in, err := k.fs.Create(root, name, benchFile)
	if !k.note(err) {
		return
	}
	defer k.fs.Put(in)
	if i%2 == 0 {
		_, err = k.fs.WriteAt(in, data, 0)
	} else {
		bs := k.fs.BlockSize()
		p := make([]byte, (len(data)+bs-1)/bs*bs)
		copy(p, data)
		n := int64(len(p) / bs)
		if err = k.fs.Reserve(n); err == nil {
			err = k.fs.WritePages(in, &Out{Pages: [][]byte{p}, Size: int64(len(data)), Reserved: n})
		}
	}
	if !k.note(err) || !k.note(k.fs.Fsync(in, false)) {
		return
	}
	if k.note(k.fs.Rename(root, name, root, final, 0)) {
		delete(k.durable, final) // the old one or this one, until the next fsync
		if k.note(k.fs.Fsync(in, false)) {
			k.durable[final] = data
		}
	}
	if ino, err := k.fs.Lookup(root, fmt.Sprint("old", i)); k.note(err) && ino != 0 {
		if old, err := k.fs.Get(ino); k.note(err) {
			_, err = k.fs.ReadAt(old, make([]byte, 3000), 100)
			k.note(err)
			k.note(k.fs.Unlink(root, fmt.Sprint("old", i), old))
			k.note(k.fs.Put(old))
		}
	}
	if in, err := k.fs.Create(root, fmt.Sprint("lost", i), benchFile); k.note(err) {
		_, err := k.fs.WriteAt(in, data, 5000)
		k.note(err)
		k.note(k.fs.Put(in))
	}
}

// check mounts the disk again, without faults, and looks for what must be there.
func (k *keeper) check(t *testing.T, m *memDisk, deep bool) {
	t.Helper()
	fs := mount(t, m)
	root, err := fs.Root()
	must(t, err)
	for name, data := range k.durable {
		in, err := fs.resolve("/" + name)
		if err != nil {
			t.Fatalf("%s was durable: %v", name, err)
		}
		got := make([]byte, len(data)+1)
		n, err := fs.ReadAt(in, got, 0)
		if err != nil || !bytes.Equal(got[:n], data) {
			t.Fatalf("%s was durable and has changed: %v", name, err)
		}
		must(t, fs.Put(in))
	}
	must(t, fs.Put(root))
	workoutSmall(t, fs)
	must(t, fs.Unmount())
	var ours []string
	if n, err := Check(m, func(p string) { ours = append(ours, p) }); n != 0 || err != nil {
		t.Fatalf("%d problems, %v: %s", n, err, ours)
	}
	if deep {
		file := filepath.Join(scratch(t), "disk")
		m.save(t, file)
		if out := e2fsck(t, file); out != "" {
			t.Fatal(out)
		}
	}
}

// workoutSmall shows that a file system can be used.
func workoutSmall(t *testing.T, fs *FS) {
	t.Helper()
	in := newFile(t, fs, "/after")
	_, err := fs.WriteAt(in, make([]byte, 10000), 0)
	must(t, err)
	must(t, fs.Fsync(in, false))
	must(t, fs.Put(in))
}

// One request fails, at each place of a workload: the caller gets EIO or EROFS, what
// was durable stays, and all is well again after the next mount.
func TestFaults(t *testing.T) {
	for _, kind := range []byte{'r', 'w', 'f'} {
		t.Run(string(kind), func(t *testing.T) {
			base := mkfsMem(t, 12<<20, 1024)
			fs := mount(t, base)
			for i := range 30 {
				in := newFile(t, fs, fmt.Sprint("/old", i))
				_, err := fs.WriteAt(in, make([]byte, 5000), int64(i%3)*10000)
				must(t, err)
				must(t, fs.Put(in))
			}
			must(t, fs.Unmount())
			step := 3
			switch kind {
			case 'r':
				step = 1
			case 'w':
				step = 5
			}
			hit := 0
			for n := 1; n < 90*step; n += step {
				d := &faultyDisk{memDisk: base.clone(), rng: rand.New(rand.NewPCG(uint64(n), 9))}
				fs := mountWith(t, d, Options{CacheBlocks: 64})
				fs.j.fullAt = 60 // checkpoints, too
				seen, failed := 0, 0
				d.bad = func(k byte, _ int) bool {
					if k != kind {
						return false
					}
					if seen++; seen == n {
						failed++
						return true
					}
					return false
				}
				k := &keeper{fs: fs, durable: map[string][]byte{}}
				root, err := fs.Root()
				if k.note(err) {
					for i := range 30 {
						k.round(root, i)
					}
				}
				if failed > 0 {
					hit++
				}
				if fs.Unmount() == nil && failed > 0 && kind == 'f' && len(k.errs) == 0 {
					t.Fatalf("flush %d failed and nobody was told", n)
				}
				for _, err := range k.errs {
					if e := Errno(err); e != linux.EIO && e != linux.EROFS {
						t.Fatalf("request %d: %v", n, err)
					}
				}
				k.check(t, d.memDisk, n%50 == 1)
			}
			if hit < 10 {
				t.Fatalf("only %d requests failed", hit)
			}
		})
	}
}

// A write of data that fails costs that write only; the file system stays writable,
// and the file has what it had.
func TestDataError(t *testing.T) {
	d := &faultyDisk{memDisk: mkfsMem(t, 16<<20, 4096), rng: rand.New(rand.NewPCG(1, 1))}
	fs := mount(t, d)
	in := newFile(t, fs, "/f")
	free := fs.free.Load()
	d.bad = func(kind byte, _ int) bool { return kind == 'w' }
	if _, err := fs.WriteAt(in, make([]byte, 100000), 0); Errno(err) != linux.EIO {
		t.Fatalf("a failed write: %v", err)
	}
	must(t, fs.Reserve(2))
	if err := fs.WritePages(in, &Out{Pages: [][]byte{make([]byte, 8192)}, Size: 8192, Reserved: 2}); Errno(err) != linux.EIO {
		t.Fatalf("failed pages: %v", err)
	}
	d.bad = nil
	if in.Size() != 0 || fs.ReadOnly() || fs.free.Load() != free {
		t.Fatalf("size %d, read-only %v, %d blocks free of %d", in.Size(), fs.ReadOnly(), fs.free.Load(), free)
	}
	must(t, fs.Put(in))
	workoutSmall(t, fs)
	must(t, fs.Unmount())
	wantClean(t, d.memDisk)
}

// A read that fails is tried again by the next caller.
func TestReadError(t *testing.T) {
	m := mkfsMem(t, 16<<20, 4096)
	fs := mount(t, m)
	in := newFile(t, fs, "/f")
	_, err := fs.WriteAt(in, bytes.Repeat([]byte{7}, 10000), 0)
	must(t, err)
	must(t, fs.Put(in))
	must(t, fs.Unmount())
	d := &faultyDisk{memDisk: m}
	fs = mount(t, d)
	d.bad = func(kind byte, _ int) bool { return kind == 'r' }
	if _, err := fs.resolve("/f"); Errno(err) != linux.EIO {
		t.Fatalf("a name: %v", err)
	}
	d.bad = nil
	in, err = fs.resolve("/f")
	must(t, err)
	d.bad = func(kind byte, _ int) bool { return kind == 'r' }
	p := make([]byte, 10000)
	if _, err := fs.ReadAt(in, p, 0); Errno(err) != linux.EIO {
		t.Fatalf("content: %v", err)
	}
	d.bad = nil
	if _, err := fs.ReadAt(in, p, 0); err != nil || p[9999] != 7 {
		t.Fatalf("content, again: %v", err)
	}
	if fs.ReadOnly() {
		t.Fatal("reading made it read-only")
	}
	must(t, fs.Put(in))
	must(t, fs.Unmount())
	wantClean(t, m)
}

// The disk disappears in the midst of work by many, and comes back for another mount.
func TestDiskGone(t *testing.T) {
	for seed := range uint64(8) {
		d := &faultyDisk{memDisk: mkfsMem(t, 16<<20, 1024), rng: rand.New(rand.NewPCG(seed, 5))}
		fs := mount(t, d)
		fs.j.fullAt = 100
		var dirs []*Inode
		for g := range 3 {
			dirs = append(dirs, create(t, fs, fmt.Sprint("/d", g), NewInode{Mode: linux.S_IFDIR | 0o755}))
		}
		at := 30 + int(seed)*40
		d.bad = func(_ byte, n int) bool { return n > at }
		keepers := make([]*keeper, len(dirs))
		var wg sync.WaitGroup
		for g, dir := range dirs {
			k := &keeper{fs: fs, durable: map[string][]byte{}}
			keepers[g] = k
			wg.Go(func() {
				for i := 0; len(k.errs) < 5; i++ {
					k.round(dir, i)
				}
				fs.Put(dir)
			})
		}
		wg.Wait()
		if !fs.ReadOnly() {
			t.Fatal("still writable without a disk")
		}
		if err := fs.Sync(); err == nil {
			t.Fatal("sync succeeded without a disk")
		}
		if err := fs.Unmount(); err == nil {
			t.Fatal("unmount succeeded without a disk")
		}
		all := &keeper{durable: map[string][]byte{}}
		for g, k := range keepers {
			for name, data := range k.durable {
				all.durable[fmt.Sprintf("d%d/%s", g, name)] = data
			}
			for _, err := range k.errs {
				if e := Errno(err); e != linux.EIO && e != linux.EROFS {
					t.Fatalf("an error of another kind: %v", err)
				}
			}
		}
		all.check(t, d.memDisk, seed%4 == 0)
	}
}

// Damage found while something is changed makes the file system read-only, and the
// disk says so until fsck has been there.
func TestDamageNoted(t *testing.T) {
	m := mkfsMem(t, 16<<20, 4096)
	fs := mount(t, m)
	in := newFile(t, fs, "/f")
	_, err := fs.WriteAt(in, make([]byte, 100), 0)
	must(t, err)
	must(t, fs.Fsync(in, false))
	p, err := fs.MapBlock(in, 0)
	must(t, err)
	g, at := fs.s.groupOf(p.Phys)
	b, err := fs.bitmapBuffer(g)
	must(t, err)
	clearBit(b.bytes(), at) // as if the block were free
	m.damaged = true
	if err := fs.Truncate(in, 0); Errno(err) != linux.EUCLEAN {
		t.Fatalf("freeing a free block: %v", err)
	}
	if !fs.ReadOnly() {
		t.Fatal("still writable")
	}
	if _, err := fs.WriteAt(in, make([]byte, 100), 0); Errno(err) != linux.EROFS {
		t.Fatalf("a change: %v", err)
	}
	if _, err := fs.ReadAt(in, make([]byte, 100), 0); err != nil {
		t.Fatalf("reading: %v", err)
	}
	fs.Unmount()
	fs = mount(t, m)
	raw := fs.superBytes(fs.superBuf.bytes())
	if le.Uint16(raw[sbState:])&stateError == 0 || le.Uint32(raw[sbErrorCount:]) == 0 {
		t.Fatal("the disk does not say that it has errors")
	}
	must(t, fs.Unmount())
	if n, err := Check(m, func(string) {}); n == 0 || err != nil {
		t.Fatalf("%d problems, %v", n, err)
	}
	file := filepath.Join(scratch(t), "disk")
	m.save(t, file)
	if out, _ := exec.Command(tool(t, "e2fsck"), "-n", file).CombinedOutput(); !strings.Contains(string(out), "with errors") {
		t.Fatalf("e2fsck takes the disk for clean: %s", out)
	}
}
