package monitor

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"hardtack/msg"
)

// Link is one side of an area: a link of msg with common memory (msg.Link, msg.Shared).
// Frames, which are rare, pass as a stream of bytes, each with its length before it.
type Link struct {
	addr string
	a    *area
	side int
	ring func() // interrupts the peer

	gate   gate
	sendMu sync.Mutex
	done   atomic.Bool // closed here
	gone   atomic.Bool // the peer's kernel has ended
	frame  []byte      // of the last Recv
	wrong  atomic.Bool // the peer broke the rules
	peer   *peer       // that calls on it; set before Rung is called

	bells  atomic.Int32  // Bells that wait
	heard  chan struct{} // full when one is to look
	bellMu sync.Mutex    // one asks at a time
}

// NewLink makes a side of the area in mem; ring interrupts the other side's kernel, whose
// monitor then calls Rung. addr is for people and errors.
func NewLink(addr string, mem []byte, side int, ring func()) *Link {
	return &Link{addr: addr, a: openArea(mem), side: side, ring: ring, heard: make(chan struct{}, 1)}
}

func (l *Link) mine() *sideWords   { return &l.a.control.Side[l.side] }
func (l *Link) theirs() *sideWords { return &l.a.control.Side[1-l.side] }

// Rung has this side look again if the peer rang for it. late says how long ago the interrupt was.
func (l *Link) Rung(late func() time.Duration) {
	if l.peer != nil {
		l.peer.hearBells()
	}
	w := &l.a.control.Rung[l.side].Set
	if w.Load() == 0 {
		return
	}
	w.Store(0)
	if asked := l.theirs().Asked.Load(); asked != l.mine().Heard.Load() {
		l.mine().Took.Store(uint32(late()))
		l.mine().Heard.Store(asked)
		l.Wake()
	}
	if l.bells.Load() > 0 && l.theirs().Heard.Load() == l.mine().Asked.Load() {
		l.hear()
	}
	l.gate.kick()
}

// hear has Bell look.
func (l *Link) hear() {
	select {
	case l.heard <- struct{}{}:
	default:
	}
}

// Doorbell is what ringing for a peer takes.
type Doorbell struct {
	Ring  time.Duration // this side, to interrupt the other
	Wake  time.Duration // the other, from its interrupt until its bottom half looks
	Round time.Duration // until this side's bottom half has told who waits here of the peer's ring
}

// Bell rings for the peer, whose doorbell's bottom half rings back, and waits for that. It is
// to measure: no other goroutine of the peer's takes part.
func (l *Link) Bell() (d Doorbell, err error) {
	l.bellMu.Lock()
	defer l.bellMu.Unlock()
	l.bells.Add(1)
	defer l.bells.Add(-1)
	asked := l.mine().Asked.Add(1)
	start := time.Now()
	l.Wake()
	d.Ring = time.Since(start)
	for l.theirs().Heard.Load() != asked {
		if err := l.over(true); err != nil {
			return d, err
		}
		<-l.heard
	}
	d.Round, d.Wake = time.Since(start), time.Duration(l.theirs().Took.Load())
	return d, nil
}

// Die ends a link whose peer's kernel has ended.
func (l *Link) Die() {
	l.gone.Store(true)
	l.hear()
	l.gate.kick()
}

// Wake rings for the peer. Only the first ring that it has not heard yet interrupts it.
func (l *Link) Wake() {
	if l.a.control.Rung[1-l.side].Set.Swap(1) == 0 {
		l.ring()
	}
}

// errFrames is what a peer did that wrote nonsense into its words.
var errFrames = errors.New("monitor: the peer's count of bytes is wrong")

// fail ends the link for a broken rule.
func (l *Link) fail(err error) error {
	l.wrong.Store(true)
	l.Close()
	return &msg.PeerError{Reason: err.Error()}
}

// over says why the link is not in use any more, if so.
func (l *Link) over(sending bool) error {
	switch {
	case l.done.Load():
		return msg.ErrClosed
	case l.gone.Load(), sending && l.theirs().Closed.Load() != 0:
		return io.EOF
	}
	return nil
}

// await waits until ready, or the link's or the context's end.
func (l *Link) await(ctx context.Context, sending bool, ready func() bool) (err error) {
	stop := context.AfterFunc(ctx, l.gate.kick)
	defer stop()
	l.gate.park(func() bool {
		if ready() {
			return true
		}
		if err = l.over(sending); err == nil {
			err = ctx.Err()
		}
		return err != nil
	})
	return err
}

// Send implements msg.Link.
func (l *Link) Send(ctx context.Context, frame []byte, files []*os.File) error {
	if len(files) > 0 {
		return msg.ErrNoCaps
	}
	if len(frame) > msg.MaxFrame {
		return fmt.Errorf("monitor: a frame of %d bytes", len(frame))
	}
	l.sendMu.Lock()
	defer l.sendMu.Unlock()
	if err := l.write(ctx, binary.LittleEndian.AppendUint32(nil, uint32(len(frame)))); err != nil {
		return err
	}
	return l.write(ctx, frame)
}

// write puts bytes into the stream, as room comes.
func (l *Link) write(ctx context.Context, b []byte) error {
	ring := l.a.frames[l.side]
	for len(b) > 0 {
		if err := l.over(true); err != nil {
			return err
		}
		at := l.mine().Written.Load()
		used := at - l.theirs().Read.Load()
		if used > frameBytes {
			return l.fail(errFrames)
		}
		if used == frameBytes {
			full := func() bool { return at-l.theirs().Read.Load() != frameBytes }
			if err := l.await(ctx, true, full); err != nil {
				return err
			}
			continue
		}
		from := at % frameBytes
		n := copy(ring[from:], b[:min(len(b), int(frameBytes-used))])
		b = b[n:]
		l.mine().Written.Store(at + uint32(n))
		l.Wake()
	}
	return nil
}

// Recv implements msg.Link.
func (l *Link) Recv(ctx context.Context) ([]byte, []*os.File, error) {
	var head [4]byte
	if err := l.read(ctx, head[:]); err != nil {
		return nil, nil, err
	}
	n := binary.LittleEndian.Uint32(head[:])
	if n > msg.MaxFrame {
		return nil, nil, l.fail(fmt.Errorf("monitor: a frame of %d bytes", n))
	}
	if cap(l.frame) < int(n) {
		l.frame = make([]byte, n)
	}
	l.frame = l.frame[:n]
	if err := l.read(ctx, l.frame); err != nil {
		return nil, nil, err
	}
	return l.frame, nil, nil
}

// read takes bytes out of the stream, as they come. What a peer wrote before it closed
// is read before the end.
func (l *Link) read(ctx context.Context, b []byte) error {
	ring := l.a.frames[1-l.side]
	for len(b) > 0 {
		at := l.mine().Read.Load()
		closed := l.theirs().Closed.Load() != 0
		there := l.theirs().Written.Load() - at
		if there > frameBytes {
			return l.fail(errFrames)
		}
		if there == 0 {
			if closed {
				return io.EOF
			}
			some := func() bool { return l.theirs().Written.Load() != at || l.theirs().Closed.Load() != 0 }
			if err := l.await(ctx, false, some); err != nil {
				return err
			}
			continue
		}
		from := at % frameBytes
		n := copy(b, ring[from:min(frameBytes, from+there)])
		b = b[n:]
		l.mine().Read.Store(at + uint32(n))
		l.Wake()
	}
	return nil
}

// CanPass implements msg.Link: descriptors do not leave a kernel.
func (l *Link) CanPass() bool { return false }

// Peer implements msg.Link.
func (l *Link) Peer() msg.Peer { return msg.Peer{UID: -1, GID: -1, Scheme: Scheme, Addr: l.addr} }

// Shared implements msg.Link.
func (l *Link) Shared() msg.Shared { return l }

// Close implements msg.Link.
func (l *Link) Close() error {
	if !l.done.Swap(true) {
		l.mine().Closed.Store(1)
		l.Wake()
		l.hear()
		l.gate.kick()
	}
	return nil
}

// Pages implements msg.Shared.
func (l *Link) Pages() (tx, rx []byte) { return l.a.rings[l.side], l.a.rings[1-l.side] }

// Kick implements msg.Shared.
func (l *Link) Kick() { l.gate.kick() }

// Park implements msg.Shared.
func (l *Link) Park(ready func() bool) error {
	l.gate.park(ready)
	return nil
}

var fence atomic.Uint32

// Barrier implements msg.Shared. It does not reach the peer's threads, which so use one
// with every message (Barriers).
func (l *Link) Barrier() { fence.Add(1) }

// Barriers implements msg.Shared.
func (l *Link) Barriers() bool { return false }

// Futex implements msg.Shared.
func (l *Link) Futex() bool { return false }

// NewBulk implements msg.Shared: there are no pools between clusters.
func (l *Link) NewBulk(int) (msg.Region, *os.File, error) { return msg.Region{}, nil, errBulk }

// MapBulk implements msg.Shared.
func (l *Link) MapBulk(*os.File, int) (msg.Region, error) { return msg.Region{}, errBulk }

// MapSend implements msg.Shared.
func (l *Link) MapSend(*os.File, int) (msg.Region, error) { return msg.Region{}, errBulk }

var errBulk = errors.New("monitor: no messages of that size between clusters")
