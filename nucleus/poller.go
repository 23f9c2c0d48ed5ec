package nucleus

import (
	"sync/atomic"

	"hardtack/abi/linux"
	"hardtack/arch/amd64"
)

// The runtime's network poller sees three descriptors: an epoll instance, the
// event counter by which it interrupts its own wait, and ours, which is ready
// (edge-triggered) when interrupt work waits for a goroutine.
const (
	fdEvent = 10
	fdEpoll = 11
	fdIRQ   = 12
)

// poller is guarded by the lock of its wait queue; who is in it waits for events.
var poller struct {
	counter   uint64 // of fdEvent
	eventData uint64 // epoll user data of fdEvent and fdIRQ
	irqData   uint64
	eventOn   bool
	irqOn     bool
	irqReady  bool
}

const (
	epollIn  = 1
	epollAdd = 1
)

func sysEpollCtl(c *amd64.CPU, op, fd, event uint64) uint64 {
	if op != epollAdd {
		return 0
	}
	if !touch(c, uintptr(event), 12) {
		return errno(linux.EFAULT)
	}
	data := uint64(load32(uintptr(event)+4)) | uint64(load32(uintptr(event)+8))<<32
	q := &waits[pollQueue]
	q.lock.Acquire()
	r := uint64(0)
	switch fd {
	case fdEvent:
		poller.eventData, poller.eventOn = data, true
	case fdIRQ:
		poller.irqData, poller.irqOn = data, true
	default:
		r = errno(linux.EBADF)
	}
	q.lock.Release()
	return r
}

// collect writes the ready events to a buffer of at least two and returns
// their number. Called with the poller's lock.
func collect(buf uint64) uint64 {
	n := uint64(0)
	put := func(data uint64) {
		at := uintptr(buf + 12*n)
		store32(at, epollIn)
		store32(at+4, uint32(data))
		store32(at+8, uint32(data>>32))
		n++
	}
	if poller.eventOn && poller.counter > 0 {
		put(poller.eventData)
	}
	if poller.irqOn && poller.irqReady {
		poller.irqReady = false
		if irqs.pending.Load() != 0 || Wanted.Load() != 0 {
			put(poller.irqData)
		}
	}
	return n
}

func sysEpollWait(c *amd64.CPU, buf, max, timeout uint64) uint64 {
	if max < 2 || !touch(c, uintptr(buf), 24) {
		return errno(linux.EINVAL)
	}
	q := &waits[pollQueue]
	q.lock.Acquire()
	if n := collect(buf); n > 0 || int32(timeout) == 0 {
		q.lock.Release()
		return n
	}
	var deadline int64
	if ms := int32(timeout); ms > 0 {
		if deadline = now() + int64(ms)*1e6; pollUntil() != 0 {
			deadline = pollUntil() // what the milliseconds were rounded from
		}
	}
	threads[cpus[c.Index].current].events = buf
	block(c, pollQueue, deadline)
	q.lock.Release()
	return 0
}

// pollWake completes a blocked epoll_pwait if something became ready; it returns
// false when nobody polls. Called with the poller's lock.
func pollWake(c *amd64.CPU) bool {
	i := waits[pollQueue].head
	if i < 0 {
		return false
	}
	t := &threads[i]
	if n := collect(t.events); n > 0 {
		t.lock.Acquire()
		unblock(i, n)
		t.lock.Release()
		ready(c, i, true)
	}
	return true
}

// signalIRQ makes the poller see fdIRQ. If nobody polls, a thread in user mode is
// interrupted, whose goroutine does the work; else whoever runs sees to it before
// it enters user mode, polls or leaves its CPU idle.
func signalIRQ(c *amd64.CPU) {
	q := &waits[pollQueue]
	q.lock.Acquire()
	poller.irqReady = true
	polled := pollWake(c)
	q.lock.Release()
	if polled {
		return
	}
	me := cpuPointer(c)
	for i := range int(numCPU.Load()) {
		o := &cpus[i]
		if o == me || atomic.LoadUint32(&o.idle) != 0 {
			continue
		}
		o.Kicked.Or(1)
		if o.UserSpace.Load() != 0 {
			me.after.ipi |= 1 << i
			return
		}
	}
}

func sysWriteEvent(c *amd64.CPU, buf uint64) uint64 {
	if !touch(c, uintptr(buf), 8) {
		return errno(linux.EFAULT)
	}
	q := &waits[pollQueue]
	q.lock.Acquire()
	poller.counter += load64(uintptr(buf))
	pollWake(c)
	q.lock.Release()
	return 8
}

func sysReadEvent(c *amd64.CPU, buf uint64) uint64 {
	if !touch(c, uintptr(buf), 8) {
		return errno(linux.EFAULT)
	}
	q := &waits[pollQueue]
	q.lock.Acquire()
	n := poller.counter
	poller.counter = 0
	q.lock.Release()
	if n == 0 {
		return errno(linux.EAGAIN)
	}
	store64(uintptr(buf), n)
	return 8
}
