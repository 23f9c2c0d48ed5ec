package pagecache

import (
	"sync"
	"time"

	"hardtack/abi/linux"
	"hardtack/kernel/kern"
	"hardtack/kernel/mem"
)

// dirtyList is the files with dirty pages, those that have been longest first.
type dirtyList struct {
	mu          sync.Mutex
	first, last *File // guarded by mu
}

// Limits, as Linux's vm.dirty_* name them.
const (
	expireAfter = 30 * time.Second // dirty_expire_centisecs
	interval    = 5 * time.Second  // dirty_writeback_centisecs
)

// backgroundPages dirty pages make the writer begin at once, limitPages make those
// who dirty more write themselves.
func backgroundPages() int64 { return int64(mem.Total()) / 10 }
func limitPages() int64      { return int64(mem.Total()) / 5 }

func (d *dirtyList) add(f *File) {
	d.mu.Lock()
	if !f.listed {
		f.listed = true
		f.prev, f.next = d.last, nil
		if d.last != nil {
			d.last.next = f
		} else {
			d.first = f
		}
		d.last = f
	}
	d.mu.Unlock()
	startOnce.Do(func() { go writer() })
}

// remove takes a file off the list unless it has dirty pages again.
func (d *dirtyList) remove(f *File) {
	d.mu.Lock()
	if f.listed && f.dirty.Load() == 0 {
		f.listed = false
		if f.prev != nil {
			f.prev.next = f.next
		} else {
			d.first = f.next
		}
		if f.next != nil {
			f.next.prev = f.prev
		} else {
			d.last = f.prev
		}
		f.next, f.prev = nil, nil
	}
	d.mu.Unlock()
}

// oldest returns the file that has been dirty longest, if that is since before the
// time, and moves it to the end; nil if there is none.
func (d *dirtyList) oldest(before int64) *File {
	d.mu.Lock()
	defer d.mu.Unlock()
	for f := d.first; f != nil; f = f.next {
		if f.since.Load() < before {
			return f
		}
	}
	return nil
}

var (
	startOnce sync.Once
	wakeUp    = make(chan struct{}, 1)
)

func wakeWriter() {
	startOnce.Do(func() { go writer() })
	select {
	case wakeUp <- struct{}{}:
	default:
	}
}

// writer is the background goroutine: it writes what has been dirty for long, or
// anything where there is much, and keeps some memory free.
func writer() {
	tick := time.NewTicker(interval)
	for {
		select {
		case <-tick.C:
		case <-wakeUp:
		}
		makeRoom()
		began := kern.Monotonic()
		before := began - int64(expireAfter)
		for {
			if cache.nDirty.Load() > backgroundPages() {
				before = began
			}
			f := cache.dirty.oldest(before)
			if f == nil {
				break
			}
			f.WriteBack(0, ^uint64(0))
		}
	}
}

// makeRoom evicts until there is memory again.
func makeRoom() {
	want := lowWater()
	if mem.Spare() >= want {
		return
	}
	Reclaim(2*want - mem.Spare())
}

// WriteAll writes back what is dirty of an owner's files, and returns the first error.
func WriteAll(owner any) (e linux.Errno) {
	d := &cache.dirty
	d.mu.Lock()
	var list []*File
	for f := d.first; f != nil; f = f.next {
		if f.owner == owner {
			list = append(list, f)
		}
	}
	d.mu.Unlock()
	for _, f := range list {
		if err := f.WriteBack(0, ^uint64(0)); e == 0 {
			e = err
		}
	}
	return e
}
