package syscall

import (
	"encoding/binary"

	"hardtack/abi/linux"
	"hardtack/kernel/base/uio"
	"hardtack/kernel/base/wait"
	"hardtack/kernel/process/proc"
)

// Small structures in user memory. All go through the thread's Scratch, so
// that nothing is allocated.

// readUser copies n bytes, at most len(Scratch), into the thread's scratch.
func readUser(t *proc.Thread, addr uio.Addr, n int) ([]byte, linux.Errno) {
	b := t.Scratch[:n]
	_, e := t.Mem.CopyIn(b, addr)
	return b, e
}

// writeWords copies 64-bit words to user memory.
func writeWords(t *proc.Thread, addr uio.Addr, words ...int64) linux.Errno {
	b := t.Scratch[:8*len(words)]
	for i, w := range words {
		binary.LittleEndian.PutUint64(b[8*i:], uint64(w))
	}
	_, e := t.Mem.CopyOut(addr, b)
	return e
}

// readTimespec copies a struct timespec in, unchecked.
func readTimespec(t *proc.Thread, addr uio.Addr) (linux.Timespec, linux.Errno) {
	b, e := readUser(t, addr, linux.SizeofTimespec)
	if e != 0 {
		return linux.Timespec{}, e
	}
	return linux.Timespec{
		Sec:  int64(binary.LittleEndian.Uint64(b)),
		Nsec: int64(binary.LittleEndian.Uint64(b[8:])),
	}, 0
}

// writeTimespec copies a struct timespec out.
func writeTimespec(t *proc.Thread, addr uio.Addr, ts linux.Timespec) linux.Errno {
	return writeWords(t, addr, ts.Sec, ts.Nsec)
}

// readSigset copies a signal set in, whose size the caller gave too; none at
// address 0.
func readSigset(t *proc.Thread, addr uio.Addr, size uint64) (m linux.SigSet, given bool, e linux.Errno) {
	if addr == 0 {
		return 0, false, 0
	}
	if size != 8 {
		return 0, false, linux.EINVAL
	}
	b, e := readUser(t, addr, 8)
	if e != 0 {
		return 0, false, e
	}
	return linux.SigSet(binary.LittleEndian.Uint64(b)), true, 0
}

// timeLimit is how long a call may wait.
type timeLimit struct {
	deadline int64 // as for wait.Sleeper.Sleep
	poll     bool  // not at all
}

var forever = timeLimit{}

// limitIn returns the limit of so many nanoseconds from now on.
func limitIn(ns int64) timeLimit {
	if ns <= 0 {
		return timeLimit{poll: true}
	}
	if d := wait.Now() + ns; d > 0 {
		return timeLimit{deadline: d}
	}
	return forever // beyond the end of time
}

// limitMillis is the timeout of poll and epoll_wait: negative waits for ever.
func limitMillis(ms int32) timeLimit {
	if ms < 0 {
		return forever
	}
	return limitIn(int64(ms) * 1_000_000)
}

// limitTimespec is a timeout in user memory: none at address 0.
func limitTimespec(t *proc.Thread, addr uio.Addr) (timeLimit, linux.Errno) {
	if addr == 0 {
		return forever, 0
	}
	ts, e := readTimespec(t, addr)
	if e != 0 {
		return forever, e
	}
	if !ts.Valid() {
		return forever, linux.EINVAL
	}
	return limitIn(ts.Nano()), 0
}

// left returns the nanoseconds until the limit.
func (l timeLimit) left() int64 {
	if l.poll {
		return 0
	}
	return max(l.deadline-wait.Now(), 0)
}
