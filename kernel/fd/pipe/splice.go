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
			if !p.full() {
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
		b := p.at(p.head).bytes()
		b = b[:min(len(b), n-done)]
		var k int
		p.mu.Unlock()
		k, e = give(b)
		p.mu.Lock()
		done += k
		if p.at(p.head).used(k) {
			p.head++
		}
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

// SpliceFrom puts bytes of a file into the pipe, in slots of their own as Linux does with
// the file's pages; at is where they begin in the first page. It waits for room.
func (p *Pipe) SpliceFrom(c *caller.Ctx, v *uio.Vec, at int) (int, linux.Errno) {
	h := how{flags: sealed}
	h.part = func(*uio.Vec) int {
		n := page - at
		at = 0
		return n
	}
	p.mu.Lock()
	done, told, e := p.fill(c, v, &h)
	p.mu.Unlock()
	return p.filled(c, done, told, e)
}

// Map puts pages of the program's memory into the pipe (vmsplice): a slot for each, or
// each part. It waits for room, but not for room for all.
func (p *Pipe) Map(c *caller.Ctx, v *uio.Vec, nonblock bool) (int, linux.Errno) {
	p.mu.Lock()
	done, told, e := p.fill(c, v, &how{flags: sealed, nonblock: nonblock, once: true, part: (*uio.Vec).InPage})
	p.mu.Unlock()
	return p.filled(c, done, told, e)
}

// AwaitRoom waits until something can be written and returns how much.
func (p *Pipe) AwaitRoom(c *caller.Ctx, nonblock bool) (int, linux.Errno) {
	p.mu.Lock()
	_, e := p.await(c, nonblock, true)
	n := (len(p.ring) - int(p.tail-p.head)) * page
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
	for at := p.head; at != p.tail && done < n && e == 0 && !p.busy && !q.full(); at++ {
		from := p.at(at)
		b := from.bytes()
		h := how{flags: from.flags}
		if !move || len(b) > n-done {
			b = b[:min(len(b), n-done)]
			h.flags |= sealed
		}
		var v uio.Vec
		v.InitBytes(b)
		var k int
		k, e = q.put(&v, &h)
		if done += k; move && e == 0 && from.used(k) {
			p.head++
		}
	}
	if move {
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
