package block

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"hardtack/abi/linux"
	"hardtack/kernel/base/hook"
	"hardtack/kernel/base/mem"
	"hardtack/kernel/base/wait"
	"hardtack/kernel/disk/blockdev"
)

// Timeout is how long a command may take before the device is asked what is
// wrong, as on Linux. New takes it.
var Timeout = 30 * time.Second

// SecondClock, where the machine has one, is nanoseconds by a clock that does not depend
// on wait.Now's (a battery-backed clock; it may be coarse, and may be set). A command is
// late when both say so: a machine that counts instructions skips the time in which it
// is idle, 30 seconds in no time, while its disk does not. New takes it; nil: there is none.
var SecondClock hook.Of[func() int64]

// Log hears of what went wrong with disks.
var Log = func(format string, args ...any) { fmt.Printf("kernel: "+format+"\n", args...) }

// watchdog looks at the device's commands now and then while it has any, and counts
// for each how long it has been there: from look to look, the lesser of two clocks'
// times.
type watchdog struct {
	d       *Disk         // immutable
	timeout time.Duration // immutable
	clock   func() int64  // immutable; SecondClock
	armed   atomic.Bool
	timer   *time.Timer // immutable

	mu           sync.Mutex // one recovery at a time
	watching     bool       // guarded by mu; the last look saw something, at:
	last, second int64      // guarded by mu; by wait.Now and by SecondClock
}

// passed is the time since the last look, 0 if that saw nothing to look after.
func (w *watchdog) passed() int64 {
	now := wait.Now()
	n := now - w.last
	w.last = now
	if w.clock != nil {
		second := w.clock()
		n = min(n, second-w.second)
		w.second = second
	}
	if !w.watching {
		return 0
	}
	return max(n, 0)
}

func (w *watchdog) init(d *Disk) {
	w.d, w.timeout, w.clock = d, Timeout, SecondClock.Call
	w.timer = time.AfterFunc(time.Hour, w.look)
	w.timer.Stop()
}

// arm makes sure that the watchdog looks soon.
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
	passed := w.passed()
	for i := range w.d.queues {
		q := &w.d.queues[i]
		late, any, stuck := q.oldest(passed, int64(w.timeout))
		busy = busy || any
		if stuck {
			Log("%s: the device takes no commands", w.d.Name)
			w.d.reset()
			break
		}
		if late.command == nil {
			continue
		}
		Log("%s: no answer to a %v at sector %d within %v", w.d.Name, late.op, late.sector, w.timeout)
		if late.aborted || !w.d.dev.Abort(q.index, late.command) {
			w.d.reset()
			break
		}
	}
	if w.watching = busy; busy {
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

// overdue is a command that the device had for too long when somebody looked. It may
// have ended since, and be another: the device knows, and to abort one in vain is only
// a second try.
type overdue struct {
	command *blockdev.Command // nil: none
	op      blockdev.Op
	sector  uint64
	aborted bool // before, in vain
}

// oldest counts the time that passed since the last look and returns the command that
// the device has had for longest, if that is limit or more, and starts its time again.
// any says that there is something to look after, stuck that the device has had nothing
// to do and taken nothing for so long.
func (q *queue) oldest(passed, limit int64) (late overdue, any, stuck bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := wait.Now()
	var most *command
	for i := range q.commands {
		c := &q.commands[i]
		if c.since == 0 {
			continue
		}
		any = true
		c.waited += min(passed, now-c.since)
		if c.waited >= limit && (most == nil || c.waited > most.waited) {
			most = c
		}
	}
	if c := most; c != nil {
		late = overdue{&c.Command, c.Op, c.Sector, c.aborted}
		c.aborted, c.waited = true, 0
	}
	if q.stuck += passed; any || len(q.refused) == 0 {
		q.stuck = 0
	}
	return late, any || len(q.refused) > 0 || q.waiting.first != nil, q.stuck >= limit
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
