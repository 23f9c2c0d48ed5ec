package pagecache

import (
	"sync"
	"sync/atomic"
	"time"

	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/clocks"
	"hardtack/kernel/base/mem"
	"hardtack/kernel/base/settings"
	"hardtack/kernel/base/wait"
)

// dirtyList is the files with dirty pages, in the order in which they became so.
type dirtyList struct {
	mu          sync.Mutex
	first, last *File // guarded by mu
}

// Share is a part of the memory that pages could take: so many bytes, or if that is 0,
// so many hundredths.
type Share struct{ Bytes, Percent settings.Setting }

func (s *Share) pages() int64 {
	if n := s.Bytes.Get(); n != 0 {
		return (n + mem.PageSize - 1) / mem.PageSize
	}
	return dirtyable() * s.Percent.Get() / 100
}

// Background is how many dirty pages make the writer begin at once (vm.dirty_background_*),
// Limit how many there may be: who dirties more writes (vm.dirty_bytes, vm.dirty_ratio).
var (
	Background = Share{Percent: settings.Default(10)}
	Limit      = Share{Percent: settings.Default(20)}
)

// expireAfter is when a page has been dirty for too long.
func expireAfter() int64 { return settings.DirtyExpire.Get() * int64(10*time.Millisecond) }

// interval is how often the writer looks. It looks now and then though it is told not
// to, for it keeps memory free too.
func interval() time.Duration {
	if n := settings.DirtyWriteback.Get(); n > 0 {
		return time.Duration(n) * 10 * time.Millisecond
	}
	return time.Hour
}

// Tick makes the writer heed a change of the interval.
func Tick() {
	if tick := ticker.Load(); tick != nil {
		tick.Reset(interval())
	}
}

// ticker is the writer's, once it runs.
var ticker atomic.Pointer[time.Ticker]

// dirtyable is the memory that dirty pages could be: what is free, and the cache.
func dirtyable() int64 { return int64(mem.Spare()) + cache.pages.Load() }

func background() int64 { return min(Background.pages(), max(limit()/2, 1)) }
func limit() int64      { return max(Limit.pages(), 1) }

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
	startOnce.Do(start)
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

// claim returns a file that has been dirty since before a time and that nobody else
// has claimed; nil if there is none. release ends that.
func (d *dirtyList) claim(when int64) *File {
	d.mu.Lock()
	defer d.mu.Unlock()
	for f := d.first; f != nil; f = f.next {
		if !f.claimed && f.since.Load() < when {
			f.claimed = true
			return f
		}
	}
	return nil
}

func (d *dirtyList) release(f *File) {
	d.mu.Lock()
	f.claimed = false
	d.mu.Unlock()
}

// of returns the files of an owner.
func (d *dirtyList) of(owner any) (list []*File) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for f := d.first; f != nil; f = f.next {
		if f.owner == owner {
			list = append(list, f)
		}
	}
	return list
}

// WriteAll writes back what is dirty of an owner's files, and returns the first error.
func WriteAll(owner any) (e linux.Errno) {
	for _, f := range cache.dirty.of(owner) {
		if err := f.WriteBack(0, ^uint64(0)); e == 0 {
			e = err
		}
	}
	return e
}

var (
	startOnce sync.Once
	wakeUp    = make(chan struct{}, 1)
)

func start() {
	initSpare()
	go writer()
}

func wakeWriter() {
	startOnce.Do(start)
	select {
	case wakeUp <- struct{}{}:
	default:
	}
}

// writer is the background goroutine: it writes what has been dirty for long, or
// anything where there is much, and keeps some memory free.
func writer() {
	tick := time.NewTicker(interval())
	ticker.Store(tick)
	for {
		select {
		case <-tick.C:
			forget()
		case <-wakeUp:
		}
		active.Store(true)
		makeRoom()
		// What is much is brought down to half of that, so that the next time
		// is not at once; several small files are on their way together.
		down := int64(1 << 62)
		if cache.nDirty.Load() > background() {
			down = background() / 2
		}
		var others sync.WaitGroup
		if down != 1<<62 {
			for range writers - 1 {
				others.Go(func() { writeOld(down) })
			}
		}
		writeOld(down)
		others.Wait()
		active.Store(false)
	}
}

// active is set while the background goroutine writes.
var active atomic.Bool

// writers write at once where there is much.
const writers = 4

// writeOld writes files that have been dirty for long, and any until no more than down
// pages are.
func writeOld(down int64) {
	for {
		when := clocks.Monotonic()
		if cache.nDirty.Load() <= down && mem.Spare() >= lowWater() {
			when -= expireAfter()
		}
		f := cache.dirty.claim(when)
		if f == nil {
			return
		}
		f.WriteBack(0, ^uint64(0))
		cache.dirty.release(f)
		cache.dirty.remove(f) // its pages may have been cut, not written
	}
}

// Whoever dirties pages is counted by process, in one of tallies by its number: half of
// it is forgotten every interval. A process may have the more dirty pages around the
// less of them were its own lately, so that one which writes all the time is stopped
// before it stops the others.
const tallies = 256

var tally struct {
	of  [tallies]atomic.Int64
	all atomic.Int64
}

func forget() {
	sum := int64(0)
	for i := range tally.of {
		n := tally.of[i].Load() / 2
		tally.of[i].Store(n)
		sum += n
	}
	tally.all.Store(sum)
}

// share is the part of the limit that is the process's: all of it where it made
// few pages dirty, half where it made all.
func share(pid int32, limit int64) int64 {
	mine, all := tally.of[uint32(pid)%tallies].Load(), tally.all.Load()
	if all <= 0 {
		return limit
	}
	return limit - limit*min(mine, all)/(2*all)
}

// writeAtLeast pages are written by whoever has dirtied too many, of a file that has
// worthWriting; small files are left to the background, which writes several at once.
const (
	writeAtLeast = 1024
	worthWriting = 64
)

// Balance is called after a write that made fresh pages dirty, without a lock: it
// counts them, and where there are too many the caller writes some of the file's
// before it goes on.
func (f *File) Balance(c *caller.Ctx, fresh int) {
	if fresh == 0 {
		return
	}
	wait.NoteWritten(uint64(fresh) * mem.PageSize)
	tally.of[uint32(c.PID)%tallies].Add(int64(fresh))
	tally.all.Add(int64(fresh))
	n := cache.nDirty.Load()
	most := limit()
	if n <= most/2 {
		return
	}
	if !active.Load() {
		wakeWriter()
	}
	if n <= share(c.PID, most) {
		return
	}
	if f.dirty.Load() >= worthWriting {
		f.writeSome(max(2*fresh, writeAtLeast))
	}
	// What another file has may be much more: wait for the writer then.
	for try := 0; try < 100 && cache.nDirty.Load() > limit() && !c.Interrupted(); try++ {
		wakeWriter()
		time.Sleep(time.Millisecond)
	}
}
