package msg

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"sync/atomic"

	"hardtack/msg/internal/barrier"
	"hardtack/msg/internal/ring"
)

// token names a session. Nobody can guess it.
type token [16]byte

func newToken() (t token) {
	rand.Read(t[:]) // never fails
	return t
}

// session is what outlives a link.
type session struct {
	token     token
	dialled   bool   // this end dials when the link is lost
	addr      string // where, or where the peer came from
	cur       *binding
	pending   *binding      // not yet taken up by both owners
	final     *binding      // the peer closed on its link, so the last that it sent is in its ring; or nil
	change    chan struct{} // closed at the next bind; nil if nobody waits
	moving    int           // binds that are being made
	settled   chan struct{} // closed when moving is 0 again
	gone      func()        // told when the connection is closed
	local     bool          // closed by this end
	pool      bulkRx        // the bulk pool that the sending owner uses
	lastPool  uint32        // number of the last pool made in this session
	calls     bool          // the peer knows messages about calls; immutable
	stop      func(error)   // ends what serves the connection; nil if nothing does
	mover     bool          // a goroutine handles requests of the peer to be reached elsewhere
	moveAsked bool          // there is one that it has not taken up:
	moveAddr  string        // to be reached here
}

// binding is a connection's use of one link.
type binding struct {
	link    Link
	shared  Shared
	tx      *ring.Tx
	rx      *ring.Rx
	car     *carrier
	bulk    bulkTx     // until the sending owner has taken it
	from    []*ring.Tx // what is to be copied into tx first, the oldest first
	fence   bool       // barriers of the peer do not reach this process
	hands   Handing    // shared, if both ends can hand the processor over, or nil
	pools   []bulkRx   // bulk pools that from refers to
	sending bool       // the sending owner has taken it up
	recving bool       // the receiving owner has
	last    byte       // frameBye or frameLeft, after which nothing comes; control's
	ended   *ending
	before  *ending // of the binding before; nil for the first
	bound   bool    // the peer, who dialled, has said that it is made, or never does; control's
	mute    bool    // it never does
	calls   bool    // the peer knows messages about calls
}

// ending is the end of a link.
type ending struct {
	done   chan struct{} // closed when control has ended
	broken bool          // it was lost, rather than ended by the peer; set before done
	before *ending       // of the link before, if the peer may not have known of this one; the same
}

// bind makes a binding over a link whose greetings were exchanged; theirs is
// the peer's.
func bind(link Link, theirs *greeting) (*binding, error) {
	b := &binding{link: link, ended: &ending{done: make(chan struct{})}}
	b.shared = link.Shared()
	if b.shared == nil {
		b.car, b.shared = newCarrier(link, theirs.delivered)
	}
	tx, rx := b.shared.Pages()
	var err error
	if b.tx, b.rx, err = ring.Open(tx, rx); err != nil {
		return nil, err
	}
	b.fence = theirs.flags&greetFence != 0 && b.car == nil
	if h, ok := b.shared.(Handing); ok && h.Hands() && theirs.flags&greetHands != 0 {
		b.hands = h
	}
	b.mute = theirs.flags&greetBound == 0
	b.calls = theirs.flags&greetCalls != 0
	b.bound = b.mute
	return b, nil
}

// newConn makes a connection over its first binding; start starts what serves it.
func newConn(iface *Interface, opts *Options, b *binding, s session) *Conn {
	c := &Conn{iface: iface, opts: opts, session: s, done: make(chan struct{}), binding: make(chan struct{}, 1)}
	c.limits = make([]limit, len(iface.Messages)+1)
	c.limits[0] = limit{1, 0}
	for i := range iface.Messages {
		m := &iface.Messages[i]
		c.limits[i+1] = limit{uint32(m.Min), uint32(m.Max)}
	}
	c.inbox = new(inbox)
	c.cur, c.calls = b, b.calls
	c.attn.Store(attnMade)
	b.sending, b.recving = true, true
	c.takeSend(b)
	c.takeRecv(b)
	c.send.ready, c.recv.ready = c.sendReady, c.recvReady
	c.send.asleep, c.recv.asleep = c.sendAsleep, c.recvAsleep
	return c
}

// start registers the connection and then serves it: what serves it may fail at once,
// and then takes it off the register.
func (c *Conn) start(b *binding) {
	enter(c)
	c.serve(b)
}

// serve starts the goroutines of a binding.
func (c *Conn) serve(b *binding) {
	if b.car != nil {
		b.car.start(c, b.rx)
	}
	if n, ok := b.link.(Notifier); ok {
		if n.Notify(func() { c.control(b, n) }) {
			return
		}
	}
	go c.control(b, nil)
}

func (c *Conn) takeSend(b *binding) {
	s := &c.send
	s.tx, s.shared, s.hands, s.bound, s.bulk = b.tx, b.shared, b.hands, b, b.bulk
	s.out, s.filesOut = nil, 0       // places in the old ring
	if b.fence || !barrier.Works() { // then rebind's barrier does not reach this owner
		c.attn.Or(attnFence)
	} else {
		c.attn.And(^uint32(attnFence))
	}
}

func (c *Conn) takeRecv(b *binding) {
	r := &c.recv
	b.rx.Fence = b.fence
	if r.rx != nil {
		r.rx.Rewind(len(r.frag) / SlotBytes) // should this owner come back
		b.rx.Start(r.rx.Seq)
	}
	r.rx, r.shared, r.hands, r.held, r.slow, r.frag = b.rx, b.shared, b.hands, false, false, r.frag[:0]
	if r.hands != nil {
		r.await = r.hands.Await
	}
}

// dialLink makes a link, with rings of choice where the driver can.
func dialLink(ctx context.Context, addr string, r Rings) (Link, error) {
	d, err := driver(scheme(addr))
	if err != nil {
		return nil, err
	}
	if s, ok := d.(Ringed); ok {
		return s.DialRings(ctx, addr, r)
	}
	return d.Dial(ctx, addr)
}

// greeting is what this end says on a link, in an old or new session.
func (c *Conn) greeting(kind byte, tok token, link Link) greeting {
	c.mu.Lock()
	defer c.mu.Unlock()
	g := newGreeting(kind, c.iface, tok, link)
	g.delivered = atomic.LoadUint64(&c.recv.rx.Told)
	return g
}

func newGreeting(kind byte, iface *Interface, tok token, link Link) greeting {
	g := greeting{kind: kind, fingerprint: iface.Fingerprint, name: iface.Name, token: tok}
	g.flags = greetBound | greetCalls
	s := link.Shared()
	if s != nil && !s.Barriers() {
		g.flags |= greetFence
	}
	if h, ok := s.(Handing); ok && h.Hands() {
		g.flags |= greetHands
	}
	return g
}

// greet says hello and checks the answer.
func greet(ctx context.Context, link Link, mine *greeting) (*greeting, error) {
	if err := link.Send(ctx, mine.frame(), nil); err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { link.Close() })
	frame, files, err := link.Recv(ctx)
	if !stop() {
		return nil, ctx.Err()
	}
	for _, f := range files {
		f.Close()
	}
	if err != nil {
		if errors.Is(err, io.EOF) {
			err = fmt.Errorf("%w: it hung up instead of a greeting", ErrPeerGone)
		}
		return nil, err
	}
	g, err := parseGreeting(frame)
	if err != nil {
		return nil, err
	}
	switch {
	case g.kind == frameRefuse && g.reason == refuseMismatch, g.kind == frameWelcome && g.fingerprint != mine.fingerprint:
		return nil, &MismatchError{OurName: mine.name, PeerName: g.name, Ours: mine.fingerprint, Peers: g.fingerprint}
	case g.kind == frameRefuse && g.reason == refuseSession:
		return nil, fmt.Errorf("%w: it does not know the session", ErrPeerGone)
	case g.kind == frameRefuse && g.reason == refuseVersion:
		return nil, &VersionError{Ours: ProtocolVersion, Peers: int(g.token[0])}
	case g.kind == frameRefuse && g.reason == refuseUser:
		return nil, fmt.Errorf("msg: the service does not serve this user: %w", os.ErrPermission)
	case g.kind == frameRefuse:
		return nil, errors.New("msg: the service does not accept connections now")
	case g.kind != frameWelcome:
		return nil, &PeerError{"no welcome"}
	case mine.token != token{} && g.token != mine.token:
		return nil, &PeerError{"a welcome to another session"}
	}
	return &g, nil
}
