package ext4

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"hardtack/abi/linux"
)

// Many goroutines at once: every operation works, and the disk is clean.
func TestConcurrent(t *testing.T) {
	m := newMemDisk(48 << 20)
	must(t, Mkfs(m, MkfsOptions{BlockSize: 1024, Zeroed: true, BytesPerInode: 4096}))
	fs := mountWith(t, m, Options{CacheBlocks: 100})
	root, err := fs.Root()
	must(t, err)
	shared := create(t, fs, "/shared", NewInode{Mode: linux.S_IFDIR | 0o777})
	var wg sync.WaitGroup
	for g := range 6 {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(g), 1))
			mine, err := fs.Create(root, fmt.Sprint("dir", g), NewInode{Mode: linux.S_IFDIR | 0o755})
			if err != nil {
				t.Error(err)
				return
			}
			defer fs.Put(mine)
			for i := range 150 {
				if err := concurrentStep(fs, rng, g, i, mine, shared); err != nil {
					t.Errorf("worker %d, step %d: %v", g, i, err)
					return
				}
			}
		})
	}
	wg.Wait()
	must(t, fs.Put(shared))
	must(t, fs.Put(root))
	must(t, fs.Unmount())
	wantClean(t, m)
}

func concurrentStep(fs *FS, rng *rand.Rand, g, i int, mine, shared *Inode) error {
	name := fmt.Sprintf("%d-%d-%s", g, i, strings.Repeat("y", i%30))
	in, err := fs.Create(mine, name, NewInode{Mode: linux.S_IFREG | 0o644})
	if err != nil {
		return err
	}
	defer fs.Put(in)
	data := bytes.Repeat([]byte{byte(g + 1)}, 1+rng.IntN(5000))
	if _, err := fs.WriteAt(in, data, int64(rng.IntN(3000))); err != nil {
		return err
	}
	switch rng.IntN(5) {
	case 0:
		err = fs.Fsync(in, false)
	case 1:
		err = fs.Rename(mine, name, shared, name, 0)
	case 2:
		if err = fs.Rename(mine, name, shared, "contested", 0); err == nil {
			var ino uint32
			if ino, err = fs.Lookup(shared, "contested"); err == nil && ino == 0 {
				err = errors.New("the contested name is not there")
			}
		}
	case 3:
		err = fs.Unlink(mine, name, in)
	case 4:
		err = fs.Truncate(in, int64(rng.IntN(6000)))
	}
	return err
}

// A full disk gives ENOSPC, loses nothing else, and works again with room.
func TestFull(t *testing.T) {
	m := mkfsMem(t, 4<<20, 1024)
	fs := mount(t, m)
	root, err := fs.Root()
	must(t, err)
	kept := newFile(t, fs, "/kept")
	_, err = fs.WriteAt(kept, bytes.Repeat([]byte{9}, 5000), 0)
	must(t, err)
	for round := range 3 {
		var names []string
		full := 0
		for i := 0; full < 3; i++ {
			name := fmt.Sprint("fill", i)
			in, err := fs.Create(root, name, NewInode{Mode: linux.S_IFREG | 0o644})
			if Errno(err) == linux.ENOSPC {
				full++
				continue
			}
			must(t, err)
			names = append(names, name)
			if _, err := fs.WriteAt(in, make([]byte, 70000), 0); Errno(err) == linux.ENOSPC {
				full++
			} else {
				must(t, err)
			}
			must(t, fs.Put(in))
		}
		for _, name := range names {
			ino, err := fs.Lookup(root, name)
			must(t, err)
			in, err := fs.Get(ino)
			must(t, err)
			must(t, fs.Unlink(root, name, in))
			must(t, fs.Put(in))
		}
		if round == 1 {
			must(t, fs.Sync())
		}
	}
	got := make([]byte, 5000)
	_, err = fs.ReadAt(kept, got, 0)
	must(t, err)
	if !bytes.Equal(got, bytes.Repeat([]byte{9}, 5000)) {
		t.Fatal("another file changed")
	}
	must(t, fs.Put(kept))
	must(t, fs.Put(root))
	must(t, fs.Unmount())
	wantClean(t, m)
}

// The Nth request fails: an error, and after a new mount a disk that is right.
func TestErrors(t *testing.T) {
	base := mkfsMem(t, 12<<20, 1024)
	for n := 1; n < 400; n += 7 {
		m := base.clone()
		count := 0
		var mu sync.Mutex
		m.fail = func(write bool) error {
			mu.Lock()
			defer mu.Unlock()
			if count++; count >= n && write {
				return fmt.Errorf("request %d: %w", count, linux.EIO)
			}
			return nil
		}
		fs, err := Mount(m, Options{})
		if err == nil {
			err = func() error {
				root, err := fs.Root()
				if err != nil {
					return err
				}
				for i := range 100 {
					in, err := fs.Create(root, fmt.Sprint("f", i), NewInode{Mode: linux.S_IFREG | 0o644})
					if err != nil {
						return err
					}
					if _, err := fs.WriteAt(in, make([]byte, 3000), 0); err != nil {
						return err
					}
					if err := fs.Fsync(in, false); err != nil {
						return err
					}
					fs.Put(in)
				}
				return nil
			}()
			if err == nil {
				err = fs.Unmount()
			}
		}
		if e := Errno(err); err != nil && e != linux.EIO && e != linux.EROFS {
			t.Fatalf("request %d failed: %v", n, err)
		}
		m.fail = nil
		fs, err = Mount(m, Options{})
		if err != nil {
			t.Fatalf("after request %d failed: %v", n, err)
		}
		must(t, fs.Unmount())
		if p, err := Check(m, func(p string) { t.Log(p) }); p != 0 || err != nil {
			t.Fatalf("after request %d failed: %d problems, %v", n, p, err)
		}
	}
}

// slowDisk is a disk whose flush takes a while.
type slowDisk struct {
	*memDisk
	flushes atomic.Int64
}

func (d *slowDisk) wait() error {
	d.flushes.Add(1)
	time.Sleep(500 * time.Microsecond)
	return nil
}

func (d *slowDisk) Flush() error { return d.wait() }
func (d *slowDisk) WriteAt(batch []Transfer, fua bool) error {
	if fua {
		d.wait()
	}
	return d.memDisk.WriteAt(batch, fua)
}

// Fsyncs of independent files share commits: eight at once take far fewer flushes
// than eight in turn.
func TestGroupCommit(t *testing.T) {
	flushes := func(workers int) float64 {
		d := &slowDisk{memDisk: mkfsMem(t, 32<<20, 4096)}
		fs := mount(t, d)
		start := d.flushes.Load()
		const each = 40
		var wg sync.WaitGroup
		for g := range workers {
			in := newFile(t, fs, fmt.Sprint("/f", g))
			wg.Go(func() {
				defer fs.Put(in)
				for i := range each {
					if _, err := fs.WriteAt(in, make([]byte, 100), int64(i)*100); err != nil {
						t.Error(err)
					}
					if err := fs.Fsync(in, false); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		n := float64(d.flushes.Load()-start) / float64(workers*each)
		must(t, fs.Unmount())
		return n
	}
	one, eight := flushes(1), flushes(8)
	t.Logf("flushes a fsync: %.2f alone, %.2f with eight writers", one, eight)
	if eight > one*0.7 {
		t.Errorf("eight writers do not share commits: %.2f flushes a fsync, alone %.2f", eight, one)
	}
}

// BenchmarkCreateWriteSync is CMailbench's core: make, write 1 KiB, fsync, unlink.
func BenchmarkCreateWriteSync(b *testing.B) {
	for _, sync := range []bool{false, true} {
		b.Run(fmt.Sprintf("sync=%v", sync), func(b *testing.B) {
			m := newMemDisk(256 << 20)
			must(b, Mkfs(m, MkfsOptions{Zeroed: true}))
			fs := mount(b, m)
			root, err := fs.Root()
			must(b, err)
			data := make([]byte, 1024)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				in, err := fs.Create(root, fmt.Sprint("f", i%1000), NewInode{Mode: linux.S_IFREG | 0o644})
				must(b, err)
				if _, err := fs.WriteAt(in, data, 0); err != nil {
					b.Fatal(err)
				}
				if sync {
					must(b, fs.Fsync(in, false))
				}
				must(b, fs.Unlink(root, fmt.Sprint("f", i%1000), in))
				must(b, fs.Put(in))
			}
			must(b, fs.Unmount())
		})
	}
}
