package pipe

import (
	"sync"

	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/uio"
)

// await waits until the pipe has data or, with write, room; end says that there
// will be no data: no writers are left. Called with mu held.
func (p *Pipe) await(c *caller.Ctx, nonblock, write bool) (end bool, e linux.Errno) {
	for interrupted := false; ; {
		ev := readable
		if write {
			if p.readers == 0 {
				return false, linux.EPIPE
			}
			if p.room(linux.PIPE_BUF+1) > 0 {
				return false, 0
			}
			ev = writable
		} else {
			if p.head != p.tail && !p.busy {
				return false, 0
			}
			if p.writers == 0 && !p.busy {
				return true, 0
			}
		}
		if nonblock {
			return false, linux.EAGAIN
		}
		if interrupted {
			return false, linux.ERESTARTSYS
		}
		interrupted = p.sleep(c, ev, false)
	}
}

// SpliceTo moves up to n bytes out of the pipe: give is shown them in place and
// returns how many it took. It may block: other readers wait meanwhile, and can be
// killed; writers go on. 0 bytes and no error are the end of the stream.
func (p *Pipe) SpliceTo(c *caller.Ctx, n int, nonblock bool, give func(b []byte) (int, linux.Errno)) (done int, e linux.Errno) {
	p.mu.Lock()
	if end, e := p.await(c, nonblock, false); end || e != 0 {
		p.mu.Unlock()
		return 0, e
	}
	wasFull := p.full()
	p.busy = true
	for more := true; more && done < n && p.head != p.tail && e == 0; {
		b := p.front(p.head, min(p.tail, p.head+uint64(n-done)))
		var k int
		p.mu.Unlock()
		k, e = give(b)
		p.mu.Lock()
		done += k
		p.head += uint64(k)
		more = k == len(b)
	}
	p.busy = false
	p.trim()
	tell := wasFull && !p.full()
	p.mu.Unlock()
	if tell {
		p.queue.Notify(writable)
	}
	p.queue.Notify(readable) // whoever waited for the front
	if done > 0 {
		e = 0
	}
	return done, e
}

// front returns the bytes from position at to before end that are in one frame;
// called with mu held.
func (p *Pipe) front(at, end uint64) []byte {
	off := at % page
	m := min(end-at, page-off)
	return p.frames[at/page&uint64(len(p.frames)-1)].Bytes()[off : off+m]
}

// AwaitRoom waits until something can be written and returns how much.
func (p *Pipe) AwaitRoom(c *caller.Ctx, nonblock bool) (int, linux.Errno) {
	p.mu.Lock()
	_, e := p.await(c, nonblock, true)
	n := int(p.free())
	p.mu.Unlock()
	if e == linux.EPIPE {
		caller.SignalSelf(c, sigPipe)
	}
	return n, e
}

// pairMu is held while two pipes are locked.
var pairMu sync.Mutex

// Tee copies up to n bytes from the front of p to q, or moves them with move.
func Tee(c *caller.Ctx, p, q *Pipe, n int, nonblock, move bool) (done int, e linux.Errno) {
	for {
		if _, e := q.AwaitRoom(c, nonblock); e != 0 {
			return 0, e
		}
		p.mu.Lock()
		end, e := p.await(c, nonblock, false)
		p.mu.Unlock()
		if end || e != 0 {
			return 0, e
		}
		if done, e = tee(p, q, n, move); done > 0 || e != 0 {
			return done, e
		}
	}
}

// tee is Tee for what is there now.
func tee(p, q *Pipe, n int, move bool) (done int, e linux.Errno) {
	pairMu.Lock()
	p.mu.Lock()
	q.mu.Lock()
	wasFull := p.full()
	if q.readers == 0 {
		e = linux.EPIPE
	}
	at := p.head
	for end := min(p.tail, p.head+uint64(n)); at < end && e == 0 && !p.busy; {
		b := p.front(at, end)
		room := min(len(b), int(q.free()))
		if room == 0 || len(q.packets) >= len(q.frames) {
			break
		}
		var v uio.Vec
		v.InitBytes(b[:room])
		var k int
		k, e = q.put(&v, room, false)
		at += uint64(k)
	}
	done = int(at - p.head)
	if move {
		p.head = at
		p.trim()
	}
	tell := wasFull && !p.full()
	q.mu.Unlock()
	p.mu.Unlock()
	pairMu.Unlock()
	if tell {
		p.queue.Notify(writable)
	}
	if done > 0 {
		q.queue.Notify(readable)
		e = 0
	}
	return done, e
}
