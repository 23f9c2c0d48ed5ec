package proc

import (
	"sync/atomic"

	"hardtack/abi/linux"
	"hardtack/kernel/base/uio"
)

// Restartable sequences (rseq(2), Linux's kernel/rseq.c): the thread finds the number of its
// processor in its memory, and a critical section there that is interrupted by another thread
// of the processor, by a signal or by a move to another processor goes on at its abort
// handler. The nucleus sees when that may be (UserState.Sequences, Away): before the thread
// enters user mode it calls for moved.

// sequences is a thread's registered area; the goroutine's, but for due.
type sequences struct {
	addr      uio.Addr // 0: none
	signature uint32
	due       atomic.Bool // somebody wants the critical section restarted
}

// The layout of struct rseq and struct rseq_cs (include/uapi/linux/rseq.h).
const (
	sizeofRseq  = 32
	rseqSection = 8  // rseq_cs in struct rseq
	rseqFlags   = 16 // flags

	sizeofSection = 32
	sectionFlags  = 4
	sectionStart  = 8
	sectionSize   = 16
	sectionAbort  = 24
)

const (
	rseqUnregister = 1
	noCPU          = 1<<32 - 1 // RSEQ_CPU_ID_UNINITIALIZED
)

// Rseq is rseq(struct rseq *area, uint32_t size, int flags, uint32_t signature).
func (t *Thread) Rseq(addr uio.Addr, size uint32, flags int32, signature uint32) linux.Errno {
	s := &t.rseq
	switch {
	case flags&^rseqUnregister != 0:
		return linux.EINVAL
	case flags == rseqUnregister:
		if s.addr != addr || s.addr == 0 || size != sizeofRseq {
			return linux.EINVAL
		}
		if s.signature != signature {
			return linux.EPERM
		}
		b := t.Scratch[:8]
		le.PutUint64(b, noCPU<<32)
		if _, e := t.Space.CopyOut(addr, b); e != 0 {
			return e
		}
		t.forgetRseq()
		return 0
	case s.addr != 0:
		if s.addr != addr || size != sizeofRseq {
			return linux.EINVAL
		}
		if s.signature != signature {
			return linux.EPERM
		}
		return linux.EBUSY
	case addr%sizeofRseq != 0 || size != sizeofRseq:
		return linux.EINVAL
	case addr > linux.TaskSize-sizeofRseq:
		return linux.EFAULT
	}
	// An old section is none of this thread's.
	b := t.Scratch[:8]
	if _, e := t.Space.CopyIn(b, addr+rseqSection); e != 0 {
		return e
	}
	if le.Uint64(b) != 0 && !t.endSection(addr) {
		return linux.EFAULT
	}
	s.addr, s.signature = addr, signature
	t.User.Sequences.Store(1)
	// Where its x87 registers are it enters user mode without a look at Away.
	cpu := int(t.User.FPUCPU.Load()) - 1
	if cpu < 0 {
		_, cpu = CPUs.Call()
	}
	if !t.settle(cpu) {
		t.forceSegv(0)
	}
	return 0
}

// forgetRseq is for a thread that has no area any more.
func (t *Thread) forgetRseq() {
	if t.rseq.addr != 0 {
		t.rseq.addr, t.rseq.signature = 0, 0
		t.User.Sequences.Store(0)
		t.settle(0)
	}
}

// inheritRseq is for the first thread of a new process. Its memory is a copy: it has been
// told the processor that its parent was told.
func (t *Thread) inheritRseq(from *Thread) {
	if s := &from.rseq; s.addr != 0 {
		t.rseq.addr, t.rseq.signature = s.addr, s.signature
		t.User.Sequences.Store(1)
		t.User.Away.Or(from.User.Away.Load())
	}
}

func (t *Thread) endSection(area uio.Addr) bool {
	b := t.Scratch[:8]
	clear(b)
	_, e := t.Space.CopyOut(area+rseqSection, b)
	return e == 0
}

// restart makes a thread that is in a critical section go on at its abort handler. It reports
// false if that is not possible: the thread gets SIGSEGV.
func (t *Thread) restart() bool {
	s := &t.rseq
	s.due.Store(false)
	b := t.Scratch[:sizeofSection]
	if _, e := t.Space.CopyIn(b[:8], s.addr+rseqSection); e != 0 {
		return false
	}
	at := le.Uint64(b)
	if at == 0 {
		return true
	}
	if at >= linux.TaskSize {
		return false
	}
	if _, e := t.Space.CopyIn(b, uio.Addr(at)); e != 0 {
		return false
	}
	start, size, abort := le.Uint64(b[sectionStart:]), le.Uint64(b[sectionSize:]), le.Uint64(b[sectionAbort:])
	version, flags := le.Uint32(b), le.Uint32(b[sectionFlags:])
	if start >= linux.TaskSize || start+size >= linux.TaskSize || abort >= linux.TaskSize ||
		version > 0 || start+size < start || abort-start < size {
		return false
	}
	if _, e := t.Space.CopyIn(b[:4], uio.Addr(abort-4)); e != 0 || le.Uint32(b) != s.signature {
		return false
	}
	if t.User.RIP-start >= size {
		return t.endSection(s.addr)
	}
	// The flags that forbade a restart are gone since Linux 6.1.
	if flags != 0 {
		return false
	}
	if _, e := t.Space.CopyIn(b[:4], s.addr+rseqFlags); e != 0 || le.Uint32(b) != 0 {
		return false
	}
	if !t.endSection(s.addr) {
		return false
	}
	t.User.RIP = abort
	return true
}

// RestartSequences has the critical sections of all threads of the process restarted that are
// in one: of those on one processor, or on any if cpu is negative.
func (t *Thread) RestartSequences(cpu int) {
	for _, u := range t.Proc.Threads() {
		if u != t && u.User.Sequences.Load() != 0 && (cpu < 0 || u.LastCPU() == cpu) {
			u.rseq.due.Store(true)
			u.User.Kick() // also if it is about to enter user mode again
			u.leaveUserMode()
		}
	}
}
