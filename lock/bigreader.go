package lock

import (
	"slices"
	"sync/atomic"
)

// BigReader is a readers-writer lock for data that is read all the time and
// written seldom. Readers of different workers share no cache line that is written:
// each worker has a Reader of its own. Its Lock and Unlock exclude everybody, and
// visit every Reader. The zero value is unlocked.
//
// A worker is whoever takes one read lock at a time: a goroutine, a thread, a
// connection. The indicator belongs to the worker, not to the core it is on:
// goroutines change cores between RLock and RUnlock.
//
// State. writing is 1 while a writer has the lock or waits for readers to leave. A
// Reader's in is 1 while it reads or is about to. A reader sets in, then looks at
// writing; a writer sets writing, then looks at every in. One of the two sees the
// other; a reader that sees the writer goes back. readers is guarded by writers.
//
// Order. Both must not look before their own mark is visible: a store and a later
// load of another word are the one pair that amd64 may reorder (Intel SDM volume 3A,
// 8.2.3.4). The writer's mark is a locked instruction. The reader's is a plain store
// where the writer can have Linux put a barrier into every running thread of the
// process, between its mark and its look: membarrier(2), some microseconds. If the
// reader's store is before the barrier in its thread, the writer sees it; else the
// reader's load comes after it and sees the writer. Elsewhere the reader's mark is a
// locked instruction too. Marks are taken back by release stores.
//
// Writers come first: a reader waits while any writer has the lock or wants it.
// Writers among themselves are served in order.
//
// Corbet, Big reader locks, https://lwn.net/Articles/378911/.
type BigReader struct {
	Checker
	writing uint32
	_       [line - 4]byte
	writers CLH
	readers []*Reader
}

// Reader is one worker's right to read: a sync.Locker, to be used by one goroutine
// at a time.
type Reader struct {
	_    [line]byte
	in   uint32
	lock *BigReader
	_    [line]byte
}

// NewReader makes a Reader for another worker; Close ends it.
func (l *BigReader) NewReader() *Reader {
	registerBarrier()
	r := &Reader{lock: l}
	l.writers.Lock()
	l.readers = append(l.readers, r)
	l.writers.Unlock()
	return r
}

// Close removes the Reader, which must not be locked, from those that writers
// visit.
func (r *Reader) Close() {
	l := r.lock
	l.writers.Lock()
	defer l.writers.Unlock()
	if atomic.LoadUint32(&r.in) != 0 {
		panic("lock: Close of a Reader that is locked")
	}
	if i := slices.Index(l.readers, r); i >= 0 {
		l.readers = slices.Delete(l.readers, i, i+1)
	}
}

// Lock waits while there is a writer.
func (r *Reader) Lock() {
	r.lock.before()
	r.mark()
	if atomic.LoadUint32(&r.lock.writing) != 0 {
		r.wait()
	}
	r.lock.acquired()
}

// mark says that the Reader reads, or is about to.
func (r *Reader) mark() {
	if r.in != 0 { // the worker's own to write
		panic("lock: Lock of a Reader that is locked")
	}
	if asymmetric {
		StoreRelease32(&r.in, 1)
	} else {
		atomic.StoreUint32(&r.in, 1)
	}
}

// wait is Lock when there is a writer.
func (r *Reader) wait() {
	l := r.lock
	for {
		StoreRelease32(&r.in, 0)
		for i := uint32(0); atomic.LoadUint32(&l.writing) != 0; i++ {
			relax(i)
		}
		if r.mark(); atomic.LoadUint32(&l.writing) == 0 {
			return
		}
	}
}

// TryLock locks if there is no writer, and tells whether it did.
func (r *Reader) TryLock() bool {
	r.mark()
	if atomic.LoadUint32(&r.lock.writing) != 0 {
		StoreRelease32(&r.in, 0)
		return false
	}
	r.lock.acquired()
	return true
}

// Unlock ends reading. It panics if the Reader is not locked.
func (r *Reader) Unlock() {
	if r.in == 0 { // the worker's own to write
		notLocked()
	}
	r.lock.released()
	StoreRelease32(&r.in, 0)
}

func notLocked() { panic("lock: Unlock of a Reader that is not locked") }

// Lock waits for the writers before and for all readers.
func (l *BigReader) Lock() {
	l.before()
	l.writers.Lock()
	l.mark()
	for _, r := range l.readers {
		for i := uint32(0); atomic.LoadUint32(&r.in) != 0; i++ {
			relax(i)
		}
	}
	l.acquired()
}

// mark says that there is a writer; afterwards every reader has been seen or sees it.
func (l *BigReader) mark() {
	atomic.SwapUint32(&l.writing, 1)
	if asymmetric && len(l.readers) > 0 {
		barrier()
	}
}

// TryLock locks if there is neither a reader nor a writer, and tells whether it
// did.
func (l *BigReader) TryLock() bool {
	if !l.writers.TryLock() {
		return false
	}
	l.mark()
	for _, r := range l.readers {
		if atomic.LoadUint32(&r.in) != 0 {
			StoreRelease32(&l.writing, 0)
			l.writers.Unlock()
			return false
		}
	}
	l.acquired()
	return true
}

// Unlock lets readers and the next writer in. It panics if there is no writer.
func (l *BigReader) Unlock() {
	if atomic.LoadUint32(&l.writing) == 0 {
		panic("lock: Unlock of a BigReader that is not locked")
	}
	l.released()
	StoreRelease32(&l.writing, 0)
	l.writers.Unlock()
}
