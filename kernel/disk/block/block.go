// Package block is the layer between file systems and disk drivers: it queues,
// merges, retries, times out and counts requests, knows partitions, and makes
// the device files in /dev.
//
// A Request goes into the queue of the processor that submits it. The queue
// turns requests into commands, several neighbours into one where they wait,
// and gives the device as many as it takes. Nothing is allocated for a request.
//
// Order. Concurrent requests may complete in any order, as may the parts of one. Only a
// flush orders: it makes durable everything that had completed when it was submitted. One
// command serves all waiting flushes (flush.go). Callers do not let requests on the same
// sectors overlap in time, except reads with reads.
//
// Errors. A command that fails is retried, each request of a merged command alone; after
// maxTries the request fails. A failed flush is not retried: the device may have dropped
// what it could not write, and a successful second flush would hide that. A command that
// times out is aborted, or the device is reset and all commands are submitted again
// (recovery.go). A device that cannot be reset is dead: requests fail, and memory that it
// may still write is never used again.
//
// Lock order: what callers hold; recovery.mu; flusher.mu; queue.mu; the
// driver's. Cache: cache.mu is not held while page.mu is waited for; of several
// page.mu the lower index is first; page.mu is held over input and output.
package block

import (
	"hardtack/abi/linux"
	"hardtack/kernel/disk/blockdev"
)

// maxTries is how often a request is given to the device.
const maxTries = 4

// A Request is what the layer is asked to do. The fields down to Done are the
// caller's, who leaves them and the memory alone until Done is called. A request
// fits Disk.Limits.
type Request struct {
	Op      blockdev.Op
	FUA     bool // of a write: durable when it is done, whether or not the device has such writes
	NoUnmap bool // of WriteZeroes: the blocks stay allocated
	Sector  uint64
	Sectors uint32
	// Data is memory in frames of kernel/base/mem that the caller has references of.
	Data []blockdev.Segment
	// Done is called once, by whoever completes the request; it must not sleep.
	Done func(*Request)
	// Err is the result: 0 or EIO, EOPNOTSUPP, ENOSPC, EROFS.
	Err linux.Errno

	next    *Request // in a list; guarded by its owner
	started int64    // nanoseconds; since when it is with the layer
	part    int32    // whose figures it counts for
	tries   uint8
	alone   bool // not to be merged again
}

// list is requests in the order of their arrival.
type list struct{ first, last *Request }

func (l *list) push(r *Request) {
	r.next = nil
	if l.last == nil {
		l.first = r
	} else {
		l.last.next = r
	}
	l.last = r
}

func (l *list) pop() *Request {
	r := l.first
	if r == nil {
		return nil
	}
	if l.first = r.next; l.first == nil {
		l.last = nil
	}
	r.next = nil
	return r
}
