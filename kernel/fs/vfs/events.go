package vfs

import (
	"sync"

	"hardtack/abi/linux"
	"hardtack/kernel/base/accounts"
	"hardtack/kernel/base/ledger"
	"hardtack/kernel/base/mem"
)

type event struct {
	wd           int32
	mask, cookie uint32
	name         string
}

// same reports whether two events in a row count as one.
func (e event) same(f event) bool {
	return e.wd == f.wd && e.mask == f.mask && e.name == f.name && e.mask&linux.IN_IGNORED == 0
}

// size is the length of struct inotify_event with the name, padded to 16.
func (e *event) size() int {
	if e.name == "" {
		return 16
	}
	return 16 + (len(e.name)+16)&^15
}

// eventBytes is the memory of events that nobody has read yet. Whoever gets no more loses
// events as when the queue is full, and is told so.
var eventBytes = sync.OnceValue(func() *accounts.Pool {
	return accounts.NewPool(int64(mem.Total()) * mem.PageSize / 32)
})

// eventQueue has the events that nobody has read, in chunks: what was read is free at
// once, and no queue keeps more memory than it is charged for. The zero queue is empty.
type eventQueue struct {
	first, last *eventChunk
	n           int // events
	at          int // where the oldest is in first
	end         int // where the next goes in last
}

// eventChunk has a KiB.
type eventChunk struct {
	next   *eventChunk
	events [25]event
}

var eventChunkBytes = ledger.Of[eventChunk]()

// cost is what the queue grows by when e is pushed.
func (q *eventQueue) cost(e *event) int64 {
	if q.last == nil || q.end == len(q.last.events) {
		return int64(e.size()) + eventChunkBytes
	}
	return int64(e.size())
}

func (q *eventQueue) push(e event) {
	switch {
	case q.last == nil:
		q.first = new(eventChunk)
		q.last, q.at, q.end = q.first, 0, 0
	case q.end == len(q.last.events):
		q.last.next = new(eventChunk)
		q.last, q.end = q.last.next, 0
	}
	q.last.events[q.end] = e
	q.end++
	q.n++
}

// oldest and newest are of a queue that is not empty.
func (q *eventQueue) oldest() *event { return &q.first.events[q.at] }
func (q *eventQueue) newest() *event { return &q.last.events[q.end-1] }

// pop takes the oldest event out, and returns what the queue shrinks by.
func (q *eventQueue) pop() int64 {
	e := q.oldest()
	cost := int64(e.size())
	*e = event{}
	q.at++
	q.n--
	if q.n == 0 {
		*q = eventQueue{}
		return cost + eventChunkBytes
	}
	if q.at == len(q.first.events) {
		q.first, q.at = q.first.next, 0
		cost += eventChunkBytes
	}
	return cost
}

// chunkBytes is the memory of the chunks.
func (q *eventQueue) chunkBytes() (n int64) {
	for c := q.first; c != nil; c = c.next {
		n += eventChunkBytes
	}
	return n
}

// all yields the events, the oldest first.
func (q *eventQueue) all(yield func(*event) bool) {
	at := q.at
	for c := q.first; c != nil; c, at = c.next, 0 {
		end := len(c.events)
		if c == q.last {
			end = q.end
		}
		for i := at; i < end; i++ {
			if !yield(&c.events[i]) {
				return
			}
		}
	}
}
