package block

import (
	"sync"

	"hardtack/abi/linux"
	"hardtack/kernel/base/wait"
	"hardtack/kernel/disk/blockdev"
)

const (
	// maxSegments of a command are kept in line; maxDepth commands a queue, and
	// a total over all queues: 512 × 64 × 16 bytes are half a megabyte.
	maxSegments = 64
	maxDepth    = 128
	totalDepth  = 512
	// lookahead is how many waiting requests are looked at for a neighbour.
	lookahead = 8
	// batchSize commands are given to the device at a time.
	batchSize = 16
)

// command is a Command with the requests that it serves.
type command struct {
	blockdev.Command
	served  list
	since   int64 // when the device got it; 0: the device does not have it
	waited  int64 // nanoseconds of since then, as the watchdog counts them
	aborted bool
	data    [maxSegments]blockdev.Segment
}

// queue is one of a disk's queues.
type queue struct {
	d     *Disk // immutable
	index int   // immutable

	mu       sync.Mutex
	waiting  list                // guarded by mu; requests that no command serves
	commands []command           // immutable; the elements are guarded by mu
	free     []int32             // guarded by mu; commands that serve nothing
	refused  []*command          // guarded by mu; made, not taken by the device; in order
	stuck    int64               // guarded by mu; nanoseconds for which the watchdog saw refused commands and none under way
	inflight int                 // guarded by mu; commands that the device has
	frozen   bool                // guarded by mu; the device is being reset
	dead     bool                // guarded by mu
	batch    [batchSize]*command // guarded by mu; scratch
	out      [batchSize]*blockdev.Command
	stats    []figures // guarded by mu; by part
}

func (q *queue) init(d *Disk, index, depth int) {
	q.d, q.index = d, index
	q.commands = make([]command, depth)
	q.free = make([]int32, depth)
	q.refused = make([]*command, 0, depth)
	for i := range q.commands {
		q.commands[i].Index = int32(i)
		q.free[i] = int32(depth - 1 - i)
	}
}

// add takes requests, a list by next, and dispatches.
func (q *queue) add(r *Request) {
	q.mu.Lock()
	if q.dead {
		q.mu.Unlock()
		for r != nil {
			next := r.next
			r.Err = linux.EIO
			q.d.finished(r)
			r = next
		}
		return
	}
	for r != nil {
		next := r.next
		q.waiting.push(r)
		r = next
	}
	q.dispatch()
	q.mu.Unlock()
}

// dispatch gives the device what it takes; mu is held.
func (q *queue) dispatch() {
	for !q.frozen && (len(q.refused) > 0 || q.waiting.first != nil) {
		n := copy(q.batch[:], q.refused)
		q.refused = q.refused[:copy(q.refused, q.refused[n:])]
		for n < batchSize && len(q.refused) == 0 {
			c := q.form()
			if c == nil {
				break
			}
			q.batch[n] = c
			n++
		}
		if n == 0 {
			return
		}
		now := wait.Now()
		for i, c := range q.batch[:n] {
			c.since, c.waited = now, 0
			q.out[i] = &c.Command
		}
		took := q.d.dev.Submit(q.index, q.out[:n])
		q.inflight += took
		q.d.arm()
		if took < n {
			for _, c := range q.batch[took:n] {
				c.since = 0
			}
			q.putBack(q.batch[took:n])
			return
		}
	}
}

// putBack makes commands the first that the device gets next.
func (q *queue) putBack(cs []*command) {
	old := len(q.refused)
	q.refused = q.refused[:old+len(cs)]
	copy(q.refused[len(cs):], q.refused[:old])
	copy(q.refused, cs)
}

// form makes a command of the first waiting request and its neighbours; nil
// when there is none, or no command is free.
func (q *queue) form() *command {
	if q.waiting.first == nil || len(q.free) == 0 {
		return nil
	}
	c := &q.commands[q.free[len(q.free)-1]]
	q.free = q.free[:len(q.free)-1]
	r := q.waiting.pop()
	c.Op, c.FUA, c.NoUnmap, c.Sector, c.Sectors = r.Op, r.FUA && q.d.limits.FUA, r.NoUnmap, r.Sector, r.Sectors
	c.Data, c.Err, c.aborted = c.data[:copy(c.data[:], r.Data)], 0, false
	c.served.push(r)
	if r.alone || r.Op > blockdev.Write {
		return c
	}
	for q.waiting.first != nil && q.mergeOne(c) {
	}
	return c
}

// mergeOne looks for a waiting request that can join c.
func (q *queue) mergeOne(c *command) bool {
	var before *Request
	r := q.waiting.first
	for range lookahead {
		if r == nil {
			return false
		}
		if back, ok := q.mergeable(c, r); ok {
			if before == nil {
				q.waiting.pop()
			} else {
				if before.next = r.next; r.next == nil {
					q.waiting.last = before
				}
				r.next = nil
			}
			if back {
				c.Data = appendSegments(c.data[:len(c.Data)], r.Data, q.d.limits.MaxSegment)
			} else {
				n := copy(c.data[len(r.Data):], c.Data)
				copy(c.data[:], r.Data)
				c.Data = c.data[:n+len(r.Data)]
				c.Sector = r.Sector
			}
			c.Sectors += r.Sectors
			c.served.push(r)
			q.part(r).merges[r.Op]++
			return true
		}
		before, r = r, r.next
	}
	return false
}

// mergeable says whether r can be a part of c, behind it or in front.
func (q *queue) mergeable(c *command, r *Request) (back, ok bool) {
	l := &q.d.limits
	if r.Op != c.Op || r.alone || r.FUA != c.served.first.FUA ||
		len(c.Data)+len(r.Data) > min(l.MaxSegments, maxSegments) || c.Sectors+r.Sectors > l.MaxSectors {
		return false, false
	}
	switch {
	case r.Sector == c.Sector+uint64(c.Sectors):
		return true, !l.PageLists || fits(c.Data[len(c.Data)-1], r.Data[0])
	case r.Sector+uint64(r.Sectors) == c.Sector:
		return false, !l.PageLists || fits(r.Data[len(r.Data)-1], c.Data[0])
	}
	return false, false
}

// fits says whether b may follow a in a list of pages.
func fits(a, b blockdev.Segment) bool {
	const mask = 4096 - 1
	return (a.Phys+uint64(a.Len))&mask == 0 && b.Phys&mask == 0
}

// appendSegments adds segments, the first to the last where they are one piece.
func appendSegments(to, add []blockdev.Segment, limit uint32) []blockdev.Segment {
	for _, s := range add {
		if n := len(to); n > 0 {
			if last := &to[n-1]; last.Phys+uint64(last.Len) == s.Phys && (limit == 0 || last.Len+s.Len <= limit) && last.Len+s.Len > last.Len {
				last.Len += s.Len
				continue
			}
		}
		to = append(to, s)
	}
	return to
}

// completed is what the device calls: commands are done.
func (q *queue) completed(batch []*blockdev.Command) {
	var done list
	lost := false
	q.mu.Lock()
	now := wait.Now()
	for _, x := range batch {
		c := &q.commands[x.Index]
		if c.since == 0 {
			continue // not one that the device has
		}
		c.since = 0
		q.inflight--
		lost = lost || c.Err == linux.ENODEV
		q.settle(c, now, &done)
	}
	if lost {
		q.frozen = true
		go q.d.watch.lost()
	} else {
		q.dispatch()
	}
	q.mu.Unlock()
	for r := done.pop(); r != nil; r = done.pop() {
		q.d.finished(r)
	}
}

// settle takes a command apart: its requests are done, or tried again. mu is held.
func (q *queue) settle(c *command, now int64, done *list) {
	several := c.served.first != c.served.last
	for r := c.served.pop(); r != nil; r = c.served.pop() {
		r.tries++
		again := c.Err == linux.ETIMEDOUT || c.Err == linux.EIO && r.Op != blockdev.Flush
		if again && (several || r.tries < maxTries) {
			r.alone = true
			q.waiting.push(r)
			continue
		}
		if r.Err = c.Err; r.Err == linux.ENODEV || r.Err == linux.ETIMEDOUT {
			r.Err = linux.EIO
		}
		q.part(r).count(r, now)
		done.push(r)
	}
	q.free = append(q.free, c.Index)
}
