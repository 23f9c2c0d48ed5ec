package block

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"hardtack/abi/linux"
	"hardtack/kernel/mem"
	"hardtack/kernel/wait"
)

// Timeout is how long a command may take before the device is asked what is
// wrong, as on Linux. New takes it.
var Timeout = 30 * time.Second

// Log hears of what went wrong with disks.
var Log = func(format string, args ...any) { fmt.Printf("kernel: "+format+"\n", args...) }

// watchdog looks at the device's commands now and then while it has any.
type watchdog struct {
	d       *Disk         // immutable
	timeout time.Duration // immutable
	armed   atomic.Bool
	timer   *time.Timer // immutable

	mu sync.Mutex // one recovery at a time
}

func (w *watchdog) init(d *Disk) {
	w.d, w.timeout = d, Timeout
	w.timer = time.AfterFunc(time.Hour, w.look)
	w.timer.Stop()
}

// arm sees to it that the watchdog looks soon.
func (d *Disk) arm() {
	if w := &d.watch; !w.armed.Load() && w.armed.CompareAndSwap(false, true) {
		w.timer.Reset(w.timeout / 4)
	}
}

// look runs in a goroutine of its own.
func (w *watchdog) look() {
	w.armed.Store(false)
	w.mu.Lock()
	defer w.mu.Unlock()
	busy := false
	limit := wait.Now() - int64(w.timeout)
	for i := range w.d.queues {
		q := &w.d.queues[i]
		late, aborted, any, stuck := q.oldest(limit)
		busy = busy || any
		if stuck {
			Log("%s: the device takes no commands", w.d.Name)
			w.d.reset()
			break
		}
		if late == nil {
			continue
		}
		Log("%s: no answer to a %v at sector %d within %v", w.d.Name, late.Op, late.Sector, w.timeout)
		if aborted || !w.d.dev.Abort(q.index, &late.Command) {
			w.d.reset()
			break
		}
	}
	if busy {
		w.d.arm()
	}
}

// lost is called when the device has said that it is gone: it is asked once more.
func (w *watchdog) lost() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.d.Dead() {
		w.d.reset()
	}
}

// stuckLooks is how often a device may be seen that has nothing to do and takes
// nothing.
const stuckLooks = 4

// oldest returns the command that the device has had for longest, if that is
// since before limit, and starts its time anew. any says that there is something
// to look after, stuck that the device does not take it.
func (q *queue) oldest(limit int64) (late *command, aborted, any, stuck bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for i := range q.commands {
		c := &q.commands[i]
		if c.since == 0 {
			continue
		}
		any = true
		if c.since <= limit && (late == nil || c.since < late.since) {
			late = c
		}
	}
	if late != nil {
		aborted = late.aborted
		late.aborted, late.since = true, wait.Now()
	}
	if q.stuck++; any || len(q.refused) == 0 {
		q.stuck = 0
	}
	return late, aborted, any || len(q.refused) > 0 || q.waiting.first != nil, q.stuck >= stuckLooks
}

// reset resets the device and gives it its commands again.
func (d *Disk) reset() {
	for i := range d.queues {
		q := &d.queues[i]
		q.mu.Lock()
		q.frozen = true
		q.mu.Unlock()
	}
	err := d.dev.Reset()
	if err != nil {
		Log("%s: the device is lost: %v", d.Name, err)
	} else {
		Log("%s: the device was reset", d.Name)
	}
	for i := range d.queues {
		d.queues[i].recover(err != nil)
	}
}

// recover takes back what the device had: to be tried again, or, of a dead
// device, to fail.
func (q *queue) recover(dead bool) {
	var done list
	q.mu.Lock()
	now := wait.Now()
	q.frozen, q.dead, q.stuck = false, dead, 0
	for i := range q.commands {
		c := &q.commands[i]
		if c.since == 0 {
			continue
		}
		c.since = 0
		q.inflight--
		c.Err = linux.ETIMEDOUT
		if dead {
			abandon(c)
			q.fail(c, now, &done)
			continue
		}
		q.settle(c, now, &done)
	}
	if dead {
		for _, c := range q.refused {
			q.fail(c, now, &done)
		}
		q.refused = q.refused[:0]
		for r := q.waiting.pop(); r != nil; r = q.waiting.pop() {
			r.Err = linux.EIO
			q.part(r).count(r, now)
			done.push(r)
		}
	} else {
		q.dispatch()
	}
	q.mu.Unlock()
	for r := done.pop(); r != nil; r = done.pop() {
		q.d.finished(r)
	}
}

// fail ends a command's requests.
func (q *queue) fail(c *command, now int64, done *list) {
	for r := c.served.pop(); r != nil; r = c.served.pop() {
		r.Err = linux.EIO
		q.part(r).count(r, now)
		done.push(r)
	}
	q.free = append(q.free, c.Index)
}

// abandon keeps the memory of a command for ever: a device that could not be
// stopped may still read or write it.
func abandon(c *command) {
	for _, s := range c.Data {
		for p := s.Phys &^ (mem.PageSize - 1); p < s.Phys+uint64(s.Len); p += mem.PageSize {
			if f := mem.FrameOf(p); f.Refs() > 0 {
				f.Get()
			}
		}
	}
}
