package console

import (
	"errors"
	"sync"
	"time"
)

// Port is a stream of bytes to and from the host.
type Port struct {
	name    string       // immutable
	receive func([]byte) // immutable

	mu    sync.Mutex
	room  sync.Cond // of mu; the device took something, or the port came or went
	tx    *buffers  // guarded by mu; nil until the device has announced the port
	free  []uint32  // guarded by mu; buffers that are not with the device
	early []byte    // guarded by mu; written before the port was there
	gone  bool      // guarded by mu
}

// earlyMax bounds what is kept for a port that is not there yet.
const earlyMax = 16 << 10

var (
	errGone = errors.New("console port is gone")
	errFull = errors.New("console port is not there yet")
	errSlow = errors.New("the host does not read its console port")
)

func newPort(name string, receive func([]byte)) *Port {
	p := &Port{name: name, receive: receive, free: make([]uint32, 0, queueSize)}
	p.room.L = &p.mu
	return p
}

// bind gives a port its transmit queue. It says whether the port wanted one.
func (p *Port) bind(tx *buffers) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.tx != nil || p.gone {
		return false
	}
	p.tx = tx
	for i := range tx.q.Size() {
		p.free = append(p.free, uint32(i))
	}
	tx.q.DisableInterrupts()
	return true
}

func (p *Port) unbind() {
	p.mu.Lock()
	p.gone = true
	p.mu.Unlock()
	p.room.Broadcast()
}

// flush sends what was written early.
func (p *Port) flush() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.early) > 0 && len(p.free) > 0 {
		p.early = p.early[p.send(p.early):]
	}
	if len(p.early) > 0 {
		p.wantRoom()
		return
	}
	p.early = nil
	p.room.Broadcast()
}

// Write sends bytes, in one piece; it waits while the host does not read them.
func (p *Port) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.tx == nil && !p.gone {
		if len(p.early)+len(b) > earlyMax {
			return 0, errFull
		}
		p.early = append(p.early, b...)
		return len(b), nil
	}
	done := 0
	for done < len(b) {
		switch {
		case p.gone:
			return done, errGone
		case len(p.early) > 0 || p.full():
			p.room.Wait()
		default:
			done += p.send(b[done:])
		}
	}
	return done, nil
}

// full reports whether all buffers are with the device, and if so has it
// interrupt for the next one it is done with.
func (p *Port) full() bool {
	p.collect()
	if len(p.free) == 0 {
		p.wantRoom()
	}
	return len(p.free) == 0
}

func (p *Port) wantRoom() {
	for p.tx.q.EnableInterrupts(0) {
		p.collect()
		if len(p.free) > 0 {
			break
		}
	}
}

// send gives the device one buffer and returns how many bytes it holds. There
// is a free one.
func (p *Port) send(b []byte) int {
	i := p.free[len(p.free)-1]
	p.free = p.free[:len(p.free)-1]
	n := copy(p.tx.bytes(i, bufferSize), b)
	p.tx.q.Add(i, p.tx.segment(i, n), nil)
	p.tx.q.Publish()
	return n
}

// collect takes back the buffers that the device is done with.
func (p *Port) collect() {
	for {
		i, _, ok := p.tx.q.Pop()
		if !ok {
			if p.tx.q.Err() != nil {
				p.gone = true
			}
			return
		}
		p.free = append(p.free, i)
	}
}

// sent is the bottom half of the transmit queue.
func (p *Port) sent() {
	p.mu.Lock()
	early := false
	if p.tx != nil {
		p.collect()
		early = len(p.early) > 0
	}
	p.mu.Unlock()
	if early {
		p.flush()
	}
	p.room.Broadcast()
}

// Drain waits until the device has taken everything that was written.
func (p *Port) Drain(timeout time.Duration) error {
	for deadline := time.Now().Add(timeout); ; time.Sleep(100 * time.Microsecond) {
		p.mu.Lock()
		if p.tx != nil {
			p.collect()
		}
		done := p.gone || len(p.early) == 0 && (p.tx == nil || len(p.free) == p.tx.q.Size())
		p.mu.Unlock()
		if done {
			return nil
		}
		if time.Now().After(deadline) {
			return errSlow
		}
	}
}
