package nats

import (
	"context"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"hardtack/msg"
)

// The window: how much of one direction may be on its way or waiting for the
// receiver's program. So a link's memory is at most 4 MiB and a frame at either
// end.
const (
	windowFrames = 512
	windowBytes  = 4 << 20
)

const (
	resendFirst = 250 * time.Millisecond // without an ack for so long, frames are sent again
	resendMost  = 2 * time.Second        // that time doubles up to this
	resendPause = 10 * time.Millisecond  // the least time between two repetitions
	linger      = 5 * time.Second        // how long a closed link goes on sending
	closeWait   = time.Second            // how long Close waits for the peer's ack
)

// link implements msg.Link.
//
// Of the sending direction, frames with numbers in (done, sent] are kept: those
// up to acked only with their length, the others with their bytes. Of the
// receiving direction, those in (taken, arrived] wait in queue.
type link struct {
	node  *Node
	local peerID
	addr  string // the listener's, for people

	sendMu sync.Mutex // held while frames are numbered and published, to keep them in order

	mu        sync.Mutex
	peer      peerID        // zero until the peer has accepted; guarded by mu
	met       bool          // the node looks after peer
	accepted  chan struct{} // closed when peer is known or err is set
	sent      uint64        // all guarded by mu from here
	acked     uint64
	done      uint64
	kept      [][]byte // frames done+1…sent; a nil one has arrived
	sizes     []int    // their lengths
	unread    int      // bytes in frames done+1…sent
	end       uint64   // the number of our end, 0 before Close
	resendAt  time.Time
	resendGap time.Duration
	resentAt  time.Time

	arrived  uint64
	taken    uint64
	queue    [][]byte
	queued   int // bytes in it
	peerEnd  uint64
	toldAck  uint64 // what the peer was last told
	toldDone uint64
	owesAck  bool
	toldMiss time.Time

	usedAt time.Time // when a frame was last sent or came

	err    error         // why Recv and Send fail, after the queue; io.EOF if the peer has closed or is dead
	closed bool          // by Close
	wake   chan struct{} // closed and replaced at each change that Send, Recv or Close wait for
}

func newLink(n *Node, local peerID, addr string) *link {
	return &link{
		node: n, local: local, addr: addr,
		accepted: make(chan struct{}), wake: make(chan struct{}), resendGap: resendFirst,
	}
}

// changed wakes those who wait. Needs mu.
func (l *link) changed() {
	close(l.wake)
	l.wake = make(chan struct{})
}

// accept makes the peer known, once. Needs mu.
func (l *link) accept(peer peerID) {
	if l.peer == (peerID{}) && l.err == nil {
		l.peer = peer
		close(l.accepted)
		l.changed()
	}
}

// fail ends the link. Needs mu.
func (l *link) fail(err error) {
	if l.err != nil {
		return
	}
	l.err = err
	if l.peer == (peerID{}) {
		close(l.accepted)
	}
	l.kept, l.sizes, l.unread = nil, nil, 0
	l.done, l.acked = l.sent, l.sent
	l.changed()
}

func (l *link) failNow(err error) {
	l.mu.Lock()
	l.fail(err)
	l.mu.Unlock()
}

// Send implements msg.Link.
func (l *link) Send(ctx context.Context, frame []byte, files []*os.File) error {
	switch {
	case len(files) > 0:
		return msg.ErrNoCaps
	case len(frame) > msg.MaxFrame:
		return fmt.Errorf("%w: a frame of %d bytes", msg.ErrTooLarge, len(frame))
	}
	if err := l.room(ctx, len(frame)); err != nil {
		return err
	}
	l.sent++
	idle := l.use()
	p := packet{kind: kindData, seq: l.sent, ack: l.arrived, done: l.taken, payload: frame}
	l.told()
	if l.acked == l.sent-1 {
		l.resendAt = time.Now().Add(l.resendGap)
	}
	b := p.append(make([]byte, 0, headerSize+len(frame)))
	l.kept = append(l.kept, b)
	l.sizes = append(l.sizes, len(frame))
	l.unread += len(frame)
	peer := l.peer
	l.mu.Unlock()
	l.node.publish(l, peer, b)
	l.sendMu.Unlock()
	if idle {
		l.node.used()
	}
	return nil
}

// use notes that the link is used, and reports whether it was idle before. Needs
// mu.
func (l *link) use() (idle bool) {
	now := time.Now()
	idle = now.Sub(l.usedAt) > usedFor
	l.usedAt = now
	return idle
}

func (l *link) usedOfLate(now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return now.Sub(l.usedAt) <= usedFor
}

// room waits until a frame of n bytes fits into the window, and returns with
// sendMu and mu held, or with an error and without them. It does not wait with
// sendMu held: what is in the window may have to be sent again first.
func (l *link) room(ctx context.Context, n int) error {
	for {
		l.sendMu.Lock()
		l.mu.Lock()
		switch {
		case l.err != nil:
			err := l.err
			if err == io.EOF {
				err = msg.ErrPeerClosed
			}
			l.mu.Unlock()
			l.sendMu.Unlock()
			return err
		case l.closed:
			l.mu.Unlock()
			l.sendMu.Unlock()
			return msg.ErrClosed
		case l.sent-l.done < windowFrames && l.unread+n <= windowBytes:
			return nil
		}
		wake := l.wake
		l.mu.Unlock()
		l.sendMu.Unlock()
		select {
		case <-wake:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// told notes that a packet with the present ack and done goes out. Needs mu.
func (l *link) told() {
	l.toldAck, l.toldDone, l.owesAck = l.arrived, l.taken, false
}

// Recv implements msg.Link.
func (l *link) Recv(ctx context.Context) ([]byte, []*os.File, error) {
	l.mu.Lock()
	for len(l.queue) == 0 {
		if l.peerEnd != 0 && l.taken+1 == l.peerEnd {
			l.mu.Unlock()
			return nil, nil, io.EOF
		}
		if l.closed || l.err != nil {
			err := l.err
			if l.closed {
				err = msg.ErrClosed
			}
			l.mu.Unlock()
			return nil, nil, err
		}
		wake := l.wake
		l.mu.Unlock()
		select {
		case <-wake:
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		}
		l.mu.Lock()
	}
	frame := l.queue[0]
	l.queue[0] = nil
	l.queue = l.queue[1:]
	l.queued -= len(frame)
	l.taken++
	// The sender must learn of room before it runs out; other news can wait.
	owes := !l.owesAck
	l.owesAck = true
	urgent := l.taken-l.toldDone >= windowFrames/4 || l.queued < windowBytes/2 && l.queued+len(frame) >= windowBytes/2
	l.mu.Unlock()
	if urgent {
		l.sendAck(kindAck)
	} else if owes {
		l.node.oweAck(l)
	}
	return frame, nil, nil
}

// sendAck tells the peer what has arrived.
func (l *link) sendAck(k kind) {
	l.mu.Lock()
	if l.err != nil || l.peer == (peerID{}) {
		l.mu.Unlock()
		return
	}
	p := packet{kind: k, ack: l.arrived, done: l.taken}
	l.told()
	peer := l.peer
	l.mu.Unlock()
	l.node.publish(l, peer, p.append(make([]byte, 0, headerSize)))
}

// payOwed is sendAck if no other packet has told it in the meantime.
func (l *link) payOwed() {
	l.mu.Lock()
	owes := l.owesAck
	l.mu.Unlock()
	if owes {
		l.sendAck(kindAck)
	}
}

// receive takes a packet from the subscription's callback. The payload is not
// used by anybody else.
func (l *link) receive(p packet) {
	l.mu.Lock()
	if l.err != nil {
		l.mu.Unlock()
		return
	}
	switch p.kind {
	case kindAccept:
		peer, err := decodePeerID(p.payload)
		if err == nil {
			l.accept(peer)
		}
		l.mu.Unlock()
		return
	case kindRefuse:
		words := string(p.payload[:min(len(p.payload), 200)])
		if l.peer == (peerID{}) {
			l.fail(fmt.Errorf("nats: %s refused: %q", l.addr, words))
		} else {
			l.fail(io.EOF) // the process lives, the link does not
		}
		l.mu.Unlock()
		return
	case kindOpen, kindPing, kindPong:
		l.mu.Unlock()
		return
	}
	if p.ack > l.sent {
		l.breach("it has had frame %d of %d", p.ack, l.sent)
		return
	}
	l.takeAck(p.ack, p.done)
	var d due
	if p.kind == kindData || p.kind == kindEnd {
		switch {
		case p.seq == l.arrived+1 && l.peerEnd != 0:
			l.breach("frame %d after the end", p.seq)
			return
		case p.seq == l.arrived+1 && (len(l.queue) >= windowFrames+1 || l.queued+len(p.payload) > windowBytes+msg.MaxFrame):
			l.breach("it does not keep to the window")
			return
		}
		d = l.take(p)
	}
	l.mu.Unlock()
	switch {
	case d.missed:
		l.sendAck(kindMissed)
	case d.ack:
		l.node.oweAck(l)
	}
	if d.idle {
		l.node.used()
	}
	if p.kind == kindMissed {
		l.node.again(l)
	}
}

// due is what a frame that came makes necessary.
type due struct {
	ack    bool // an ack, soon
	missed bool // word that a frame is missing
	idle   bool // the link had not been used
}

// take takes a frame of data, or the end; called with mu held.
func (l *link) take(p packet) (d due) {
	switch {
	case p.seq > l.arrived+1:
		if d.missed = time.Since(l.toldMiss) > resendPause; d.missed {
			l.toldMiss = time.Now()
		}
		return d
	case p.seq == l.arrived+1:
		l.arrived++
		d.idle = l.use()
		if p.kind == kindEnd {
			l.peerEnd = p.seq
		} else {
			l.queue = append(l.queue, p.payload)
			l.queued += len(p.payload)
		}
		defer l.changed()
	}
	// The ack of a frame that came before may have been lost.
	d.ack = !l.owesAck
	l.owesAck = true
	return d
}

// breach ends the link because the peer broke the protocol. Needs mu, and
// releases it.
func (l *link) breach(format string, args ...any) {
	l.fail(&msg.PeerError{Reason: fmt.Sprintf(format, args...)})
	l.mu.Unlock()
}

// takeAck forgets what the peer has had. Needs mu.
func (l *link) takeAck(ack, done uint64) {
	if ack > l.acked {
		for i := l.acked + 1; i <= ack; i++ {
			if at := i - l.done - 1; i > l.done {
				l.kept[at] = nil
			}
		}
		l.acked = ack
		l.resendGap = resendFirst
		l.resendAt = time.Now().Add(l.resendGap)
	}
	if done > l.done {
		n := int(done - l.done)
		for _, size := range l.sizes[:n] {
			l.unread -= size
		}
		l.kept, l.sizes = l.kept[n:], l.sizes[n:]
		l.done = done
	}
	l.changed()
}

// resend publishes what has not arrived again, if it is time, or if the peer
// asked for it (now).
func (l *link) resend(now bool) {
	l.sendMu.Lock()
	defer l.sendMu.Unlock()
	l.mu.Lock()
	at := time.Now()
	if l.err != nil || l.peer == (peerID{}) || l.acked == l.sent ||
		!now && at.Before(l.resendAt) || at.Sub(l.resentAt) < resendPause {
		l.mu.Unlock()
		return
	}
	if !now {
		l.resendGap = min(2*l.resendGap, resendMost)
	}
	l.resentAt, l.resendAt = at, at.Add(l.resendGap)
	frames := append([][]byte(nil), l.kept[l.acked-l.done:]...)
	peer := l.peer
	l.mu.Unlock()
	for _, b := range frames {
		l.node.publish(l, peer, b)
	}
}

// Close implements msg.Link: it tells the peer, and waits a while for it to
// have had everything; the node goes on trying for linger after that.
func (l *link) Close() error {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return nil
	}
	l.closed = true
	l.changed() // a Send that waits gives up, and sendMu
	l.mu.Unlock()

	l.sendMu.Lock()
	l.mu.Lock()
	alive := l.err == nil && l.peer != (peerID{})
	if alive {
		l.sent++
		p := packet{kind: kindEnd, seq: l.sent, ack: l.arrived, done: l.taken}
		l.told()
		b := p.append(nil)
		l.kept, l.sizes, l.end = append(l.kept, b), append(l.sizes, 0), l.sent
		l.resendAt = time.Now().Add(l.resendGap)
		peer := l.peer
		l.mu.Unlock()
		l.node.publish(l, peer, b)
	} else {
		l.mu.Unlock()
	}
	l.sendMu.Unlock()
	if !alive {
		l.node.remove(l)
		return nil
	}
	time.AfterFunc(linger, func() {
		l.failNow(msg.ErrClosed)
		l.node.remove(l)
	})
	ctx, cancel := context.WithTimeout(context.Background(), closeWait)
	defer cancel()
	if l.flush(ctx) {
		l.failNow(msg.ErrClosed)
		l.node.remove(l)
	}
	return nil
}

// flush waits until the peer has had everything, or is dead, and says whether
// there is nothing more to do.
func (l *link) flush(ctx context.Context) bool {
	l.mu.Lock()
	for l.err == nil && l.acked < l.sent {
		wake := l.wake
		l.mu.Unlock()
		select {
		case <-wake:
		case <-ctx.Done():
			return false
		}
		l.mu.Lock()
	}
	l.mu.Unlock()
	return true
}

// CanPass implements msg.Link: descriptors do not leave a machine.
func (l *link) CanPass() bool { return false }

// Shared implements msg.Link: there is none.
func (l *link) Shared() msg.Shared { return nil }

// Peer implements msg.Link.
func (l *link) Peer() msg.Peer {
	return msg.Peer{UID: -1, GID: -1, Scheme: Scheme, Addr: l.addr}
}
