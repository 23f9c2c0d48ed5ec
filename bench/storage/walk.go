package storagebench

import (
	"fmt"
	"runtime"
	"sync"
	"syscall"
	"time"

	osbench "hardtack/bench/os"
	"hardtack/kernel/fs/tmpfs"
	"hardtack/kernel/fs/vfs"
)

// Walks compares, on the host, the tree of names as it is, which is read without a
// lock, with the same tree where each directory has a read-write lock that a look-up
// takes shared. Both walk the same five names with one thread and with two, in turn.

// walkDepth is the names of a path, walkRounds the rounds of a measurement, walkTime
// how long each takes.
const (
	walkDepth  = 5
	walkRounds = 15
	walkTime   = 40 * time.Millisecond
)

// lockedDir is a directory of the tree with the lock that it does without.
type lockedDir struct {
	mu   sync.RWMutex
	dir  *vfs.Dentry
	name string // of the next
	_    [64]byte
}

// Walks adds nanoseconds of processor time a walk: rows walk/free1, walk/locked1, walk/free2, walk/locked2.
func (c *Config) Walks(f Figures) error {
	d := tmpfs.New(tmpfs.Options{}).Root
	way := make([]lockedDir, walkDepth)
	for i := range way {
		name := fmt.Sprintf("name-%d", i)
		next, e := d.AddChild(name, tmpfs.New(tmpfs.Options{}).Root.Inode)
		if e != 0 {
			return e
		}
		way[i].dir, way[i].name = d, name
		d = next
	}
	end := d
	free := func() bool {
		d := way[0].dir
		for i := range way {
			d = d.Child(way[i].name)
		}
		return d == end
	}
	locked := func() bool {
		d := way[0].dir
		for i := range way {
			way[i].mu.RLock()
			d = d.Child(way[i].name)
			way[i].mu.RUnlock()
		}
		return d == end
	}
	c.Log("walks on the host, with and without locks")
	for range walkRounds {
		for threads := 1; threads <= 2; threads++ {
			for name, walk := range map[string]func() bool{"free": free, "locked": locked} {
				ns, ok := measureWalks(walk, threads)
				if !ok {
					return fmt.Errorf("a walk ended elsewhere")
				}
				row := fmt.Sprintf("walk/%s%d", name, threads)
				if f[row] == nil {
					f[row] = osbench.Times{}
				}
				add(f[row], "median", osbench.OnHardtack, ns)
				add(f[row], "minimum", osbench.OnHardtack, ns)
			}
		}
	}
	return nil
}

// threadTime is the processor time of the calling thread.
func threadTime() time.Duration {
	const rusageThread = 1
	var u syscall.Rusage
	syscall.Getrusage(rusageThread, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// measureWalks returns nanoseconds of processor time a walk, of threads that all walk
// for walkTime.
func measureWalks(walk func() bool, threads int) (ns float64, ok bool) {
	var wg sync.WaitGroup
	per := make([]float64, threads)
	good := make([]bool, threads)
	for i := range threads {
		wg.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			start, used, n, right := time.Now(), threadTime(), 0, true
			for time.Since(start) < walkTime {
				for range 1000 {
					right = walk() && right
				}
				n += 1000
			}
			per[i], good[i] = float64(threadTime()-used)/float64(n), right
		})
	}
	wg.Wait()
	ok = true
	for i := range per {
		ns += per[i] / float64(threads)
		ok = ok && good[i]
	}
	return ns, ok
}
