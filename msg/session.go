package msg

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"sync/atomic"
	"time"

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
	token    token
	dialled  bool   // this end dials when the link is lost
	addr     string // where, or where the peer came from
	cur      *binding
	pending  *binding      // not yet taken up by both owners
	final    *binding      // the peer closed on its link, so the last that it sent is in its ring; or nil
	change   chan struct{} // closed at the next bind; nil if nobody waits
	moving   int           // binds that are being made
	settled  chan struct{} // closed when moving is 0 again
	gone     func()        // told when the connection is closed
	local    bool          // closed by this end
	pool     bulkRx        // the bulk pool that the sending owner uses
	lastPool uint32        // number of the last pool made in this session
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
	pools   []bulkRx   // bulk pools that from refers to
	sending bool       // the sending owner has taken it up
	recving bool       // the receiving owner has
	last    byte       // frameBye or frameLeft, after which nothing comes; control's
	ended   *ending
	before  *ending // of the binding before; nil for the first
	bound   bool    // the peer, who dialled, has said that it is made, or never does; control's
	mute    bool    // it never does
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
	b.mute = theirs.flags&greetBound == 0
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
	c.cur = b
	b.sending, b.recving = true, true
	c.takeSend(b)
	c.takeRecv(b)
	c.send.ready, c.recv.ready = c.sendReady, c.recvReady
	c.send.asleep, c.recv.asleep = c.sendAsleep, c.recvAsleep
	return c
}

func (c *Conn) start(b *binding) {
	c.serve(b)
	enter(c)
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
	s.tx, s.shared, s.bound, s.bulk = b.tx, b.shared, b, b.bulk
	if b.fence || !barrier.Works() { // then rebind's barrier does not reach this owner
		c.attn.Or(attnFence)
	} else {
		c.attn.And(^uint32(attnFence))
	}
}

func (c *Conn) takeRecv(b *binding) {
	r := &c.recv
	if r.rx != nil {
		r.rx.Rewind(len(r.frag) / SlotBytes) // should this owner come back
		b.rx.Start(r.rx.Seq)
	}
	r.rx, r.shared, r.held, r.slow, r.frag = b.rx, b.shared, false, false, r.frag[:0]
}

// startMove says that a bind is being made: when the old link ends, that need
// not be the end of the connection. endMove says that it is made, or failed.
func (c *Conn) startMove() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.moving == 0 {
		c.settled = make(chan struct{})
	}
	c.moving++
}

func (c *Conn) endMove() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.moving--; c.moving == 0 {
		close(c.settled)
	}
}

// left reports whether the connection has moved away from b, after waiting for
// a move that is being made.
func (c *Conn) left(b *binding) bool {
	for {
		c.mu.Lock()
		left, moving, settled := c.cur != b, c.moving, c.settled
		c.mu.Unlock()
		if left || moving == 0 {
			return left
		}
		<-settled
	}
}

// rebind moves the session to a new link. peerHas is what the peer had been
// delivered when it greeted.
func (c *Conn) rebind(b *binding, peerHas uint64) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		b.link.Close()
		return c.err
	}
	old := c.cur
	// From here on an owner that publishes into its ring looks here next.
	c.attn.Or(attnSend | attnRecv)
	old.shared.Barrier()
	b.tx.SetSeq(peerHas)
	// An owner that has not moved to the old binding yet may have one more
	// message in its own ring; it will bring that itself.
	b.from, old.from, b.before = append(old.from, old.tx), nil, old.ended
	b.pools = append(old.pools, c.pool, old.bulk.pool())
	if err := c.fill(b); err != nil && err != errFull {
		b.link.Close()
		return err
	} else if err != nil {
		go c.fillLater(b)
	}
	b.tx.Refill()
	c.cur, c.pending = b, b
	c.serve(b)
	if c.change != nil {
		close(c.change)
		c.change = nil
	}
	// The old link ends when both have said so: descriptors may be under way.
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if old.car != nil {
		old.car.stop()
	}
	if c.dialled && !b.bound {
		b.link.Send(ctx, []byte{frameBound}, nil) // if that fails, control will know
	}
	if err := old.link.Send(ctx, []byte{frameLeft}, nil); err != nil && !errors.Is(err, io.EOF) {
		old.link.Close()
	}
	c.inbox.mu.Lock()
	c.inbox.tell()
	c.inbox.mu.Unlock()
	old.shared.Kick()
	c.send.shared.Kick()
	c.recv.shared.Kick()
	c.recv.rx.Rouse()
	b.shared.Wake()
	return nil
}

// errFull: what is unacknowledged does not fit into a new ring at once.
var errFull = errors.New("msg: the new ring is full")

// errTorn: a reference to bulk memory that is none. Its slot is being written
// anew, so the message was acknowledged; or the peer has written into our ring,
// and will miss it.
var errTorn = errors.New("msg: acknowledged meanwhile")

// fill copies into b what was in the rings before it.
func (c *Conn) fill(b *binding) error {
	for len(b.from) > 0 {
		if err := c.resend(b.from[0], b); err != nil {
			return err
		}
		b.from = b.from[1:]
	}
	return nil
}

// fillLater goes on with fill as the peer makes room.
func (c *Conn) fillLater(b *binding) {
	for wait := 20 * time.Microsecond; ; wait = min(2*wait, time.Millisecond) {
		time.Sleep(wait)
		c.mu.Lock()
		done := c.err != nil || c.cur != b
		if !done {
			err := c.fill(b)
			done = err == nil
			if err != nil && err != errFull {
				c.mu.Unlock()
				c.fail(err)
				return
			}
		}
		c.mu.Unlock()
		if done {
			return
		}
	}
}

// resend copies into b the messages of a ring that b has not had. A message
// whose last fragment is not there yet waits: its owner will look again.
func (c *Conn) resend(from *ring.Tx, b *binding) (err error) {
	wake := false
	defer func() {
		if wake && b.tx.TakeParked() {
			b.shared.Wake()
		}
	}()
	type slot struct {
		h    ring.Head
		body Slot
	}
	var whole []slot
	next := from.Unread(b.tx.Seq(), func(seq uint64, h ring.Head, body *Slot) {
		whole = append(whole, slot{h, *body})
		if err != nil || h.Flags&ring.More != 0 {
			return
		}
		if b.tx.Room < len(whole) {
			if _, err = b.tx.Refill(); err == nil && b.tx.Room < len(whole) {
				err = errFull
			}
			if err != nil {
				return
			}
		}
		b.tx.SetSeq(seq) // what lies between was acknowledged
		for i := range whole {
			s := &whole[i]
			*b.tx.Body() = s.body
			if s.h.Flags&ring.Bulk != 0 {
				if err = c.resendBulk(b, s.body[:min(s.h.N, SlotBytes)]); err == errTorn {
					err, whole = nil, whole[:0]
					b.tx.SetSeq(seq + 1)
					return
				} else if err != nil {
					return
				}
			}
			wake = b.tx.Publish(s.h.Num, s.h.Flags, s.h.N) || wake
		}
		whole = whole[:0]
	})
	// All may have been acknowledged since the peer said what it had.
	if err == nil && next > b.tx.Seq() {
		b.tx.SetSeq(next)
	}
	return err
}

// resendBulk copies the body that ref refers to.
func (c *Conn) resendBulk(b *binding, ref []byte) error {
	if len(ref) != bulkRefBytes {
		return errTorn
	}
	id := binary.LittleEndian.Uint32(ref)
	var body []byte
	for _, p := range append(b.pools, c.pool) { // the last of the number is the newest
		if p.id == id && p.mem != nil {
			body, _ = p.find(ref)
		}
	}
	if body == nil {
		return errTorn
	}
	if b.bulk.mem == nil {
		n := MinBulk
		for _, p := range append(b.pools, c.pool) {
			n = max(n, len(p.mem))
		}
		c.lastPool++
		r, err := b.announce(context.Background(), c.lastPool, n)
		if err == errLink { // until the next bind
			return errFull
		}
		if err != nil {
			return err
		}
		b.bulk.replace(c.lastPool, r)
	}
	if !b.bulk.fits(b.tx, len(body)) {
		if _, err := b.tx.Refill(); err != nil {
			return &PeerError{err.Error()}
		}
		if !b.bulk.fits(b.tx, len(body)) {
			return errFull
		}
	}
	copy(b.bulk.at(len(body)), body)
	b.bulk.put(b.tx, b.tx.Body(), len(body))
	return nil
}

// errLink: the link is lost.
var errLink = errors.New("msg: the link is lost")

// announce makes a bulk pool for sending and tells the peer. If the link is lost
// it ends the link and returns errLink.
func (b *binding) announce(ctx context.Context, id uint32, n int) (Region, error) {
	r, file, err := b.shared.NewBulk(n)
	if err != nil {
		return r, fmt.Errorf("msg: bulk pool of %d bytes: %w", n, err)
	}
	if b.car != nil {
		b.car.pool(id, r)
		return r, nil
	}
	var files []*os.File
	if file != nil {
		defer file.Close()
		files = []*os.File{file}
	}
	if err := b.link.Send(ctx, bulkFrame(id, n), files); err != nil {
		if cerr := ctx.Err(); cerr != nil {
			return r, cerr
		}
		if !errors.Is(err, io.EOF) { // otherwise control will hear of it
			b.link.Close()
		}
		return r, errLink
	}
	return r, nil
}

// awaitBind waits, after a link was lost, for the next bind of the owner who
// looks for wanted.
func (c *Conn) awaitBind(ctx context.Context, wanted uint32) error {
	c.mu.Lock()
	change := c.nextBind()
	now := c.attn.Load()&(attnClosed|wanted) != 0
	c.mu.Unlock()
	if now {
		return nil
	}
	select {
	case <-change:
	case <-c.done:
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// nextBind is closed at the next bind. Needs mu.
func (c *Conn) nextBind() <-chan struct{} {
	if c.change == nil {
		c.change = make(chan struct{})
	}
	return c.change
}

// attendSend does what is wanted of the sending owner.
func (c *Conn) attendSend() error {
	for wait := 20 * time.Microsecond; ; wait = min(2*wait, time.Millisecond) {
		err := c.trySend()
		if err != errFull {
			return err
		}
		time.Sleep(wait)
	}
}

// trySend takes up a pending binding, if there is room for what this owner has
// not sent yet.
func (c *Conn) trySend() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return c.err
	}
	b := c.pending
	if b == nil || b.sending {
		return nil
	}
	err := c.fill(b)
	if err == nil {
		err = c.resend(c.send.tx, b)
	}
	if err != nil {
		return err
	}
	b.sending, b.pools = true, nil
	c.attn.And(^uint32(attnSend))
	c.takeSend(b)
	if b.bulk.mem != nil {
		c.pool = b.bulk.pool()
	}
	c.settle(b)
	return nil
}

// attendRecv does what is wanted of the receiving owner. Messages that were
// received before the connection closed are handed out first, unless it was
// closed here.
func (c *Conn) attendRecv() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if b := c.nextRecv(); b != nil && !c.local {
		c.takeRecv(b)
		c.recv.resume, c.recv.slow = true, true
		if b == c.pending {
			b.recving = true
			c.attn.And(^uint32(attnRecv))
			c.settle(b)
		}
	}
	var wrong *PeerError
	if c.err == nil || !c.local && c.recv.rx.Ready() && !errors.As(c.err, &wrong) {
		return nil
	}
	return c.err
}

// nextRecv is the binding that the receiving owner is to take up, or nil. A peer
// that closed without making a bind that it had begun never wrote into the new
// ring: then that is the one before, once more. Needs mu.
func (c *Conn) nextRecv() *binding {
	switch b := c.pending; {
	case c.final != nil && c.final.rx != c.recv.rx:
		return c.final
	case c.final == nil && b != nil && !b.recving:
		return b
	}
	return nil
}

// closedOn is told that the peer closed on the link of b.
func (c *Conn) closedOn(b *binding) {
	c.mu.Lock()
	if c.err == nil {
		c.final = b
	}
	c.mu.Unlock()
	c.fail(ErrPeerClosed)
}

// settle forgets a pending binding that both owners have taken up.
func (c *Conn) settle(b *binding) {
	if b.sending && b.recving {
		c.pending = nil
	}
}

// lost is told by the control goroutine that a link broke that may come back.
func (c *Conn) lost(link Link, cause error) {
	c.mu.Lock()
	if c.err != nil || c.cur.link != link {
		c.mu.Unlock()
		return
	}
	change, dialled, addr := c.nextBind(), c.dialled, c.addr
	c.mu.Unlock()
	grace, cancel := context.WithTimeout(context.Background(), c.opts.Grace)
	defer cancel()
	if !dialled {
		select {
		case <-change:
		case <-c.done:
		case <-grace.Done():
			c.fail(fmt.Errorf("%w: %w", ErrPeerGone, cause))
		}
		return
	}
	for wait := 10 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		err := c.oneBind(grace, func() error { return c.rebindTo(grace, addr, link) })
		if err == nil || c.closed() != nil {
			return
		}
		select {
		case <-c.done:
			return
		case <-grace.Done():
			c.fail(fmt.Errorf("%w: %w; dialling again: %w", ErrPeerGone, cause, err))
			return
		case <-time.After(wait):
		}
	}
}

// moveTo follows the peer's wish to be reached elsewhere.
func (c *Conn) moveTo(addr string) {
	ctx, cancel := context.WithTimeout(context.Background(), c.opts.Grace)
	defer cancel()
	c.mu.Lock()
	dialled := c.dialled
	c.mu.Unlock()
	if dialled {
		c.Rebind(ctx, addr) // if it cannot be done, the old link stays
	}
}

// Rebind moves the connection to a new link, made by dialling addr, which may
// belong to another driver; "" is where it was. Messages under way arrive
// exactly once and in order. The end that accepted asks its peer to dial, and
// does not wait for that.
func (c *Conn) Rebind(ctx context.Context, addr string) error {
	return c.oneBind(ctx, func() error { return c.rebindTo(ctx, addr, nil) })
}

// oneBind does what must not be done by two at a time: making a bind.
func (c *Conn) oneBind(ctx context.Context, bind func() error) error {
	select {
	case c.binding <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-c.binding }()
	return bind()
}

// rebindTo is Rebind, one at a time. With a link given it does nothing if
// that is not the connection's any more.
func (c *Conn) rebindTo(ctx context.Context, addr string, from Link) error {
	c.mu.Lock()
	link, dialled, err := c.cur.link, c.dialled, c.err
	if from != nil && from != link {
		c.mu.Unlock()
		return nil
	}
	if addr == "" {
		addr = c.addr
	}
	tok := c.token
	c.mu.Unlock()
	switch {
	case err != nil:
		return err
	case addr == "":
		return errors.New("msg: this connection cannot be bound again: it has no address")
	case !dialled:
		return link.Send(ctx, append([]byte{frameMove}, addr...), nil)
	}
	next, err := dialLink(ctx, addr, c.rings())
	if err != nil {
		return err
	}
	c.startMove()
	defer c.endMove()
	mine := c.greeting(frameHello, tok, next)
	theirs, err := greet(ctx, next, &mine)
	if err != nil {
		next.Close()
		return err
	}
	b, err := bind(next, theirs)
	if err != nil {
		next.Close()
		return err
	}
	if err := c.rebind(b, theirs.delivered); err != nil {
		return err
	}
	c.mu.Lock()
	c.addr = addr
	c.mu.Unlock()
	return nil
}

// rings is how large rings must be to take over what the present ones hold.
func (c *Conn) rings() Rings {
	c.mu.Lock()
	defer c.mu.Unlock()
	tx, _ := c.cur.shared.Pages()
	r := c.opts.rings()
	r.Pages = max(r.Pages, len(tx)/ring.PageBytes)
	return r
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
	g.flags = greetBound
	if s := link.Shared(); s != nil && !s.Barriers() {
		g.flags |= greetFence
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
	case g.kind == frameRefuse:
		return nil, errors.New("msg: the service does not accept connections now")
	case g.kind != frameWelcome:
		return nil, &PeerError{"no welcome"}
	case mine.token != token{} && g.token != mine.token:
		return nil, &PeerError{"a welcome to another session"}
	}
	return &g, nil
}

// fail closes the connection with err, once.
func (c *Conn) fail(err error) {
	c.mu.Lock()
	if c.err != nil {
		c.mu.Unlock()
		return
	}
	c.err = err
	c.attn.Or(attnClosed)
	b, gone := c.cur, c.gone
	c.recv.rx.Rouse()
	c.mu.Unlock()
	close(c.done)
	leave(c)
	b.shared.Kick()
	if b.car != nil {
		b.car.stop()
	}
	if !errors.Is(err, ErrPeerClosed) { // then the link ends by itself, drained
		b.link.Close()
	}
	if gone != nil {
		gone()
	}
}

// Fail closes the connection because of err, which a decoder returned.
func (c *Conn) Fail(err error) error {
	c.fail(err)
	return err
}

// closed is why the connection is closed, or nil.
func (c *Conn) closed() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// Err is why the connection is closed, or nil if it is not.
func (c *Conn) Err() error { return c.closed() }

// Done is closed when the connection is.
func (c *Conn) Done() <-chan struct{} { return c.done }

// Close closes this end. The peer still receives everything that was sent
// before; what it sent and was not received here is lost. It may be called by
// anybody and more than once. Mapped memory is returned by the collector, once
// neither owner uses the connection any more.
func (c *Conn) Close() error {
	c.mu.Lock()
	if c.err != nil {
		c.local = true
		link := c.cur.link
		c.mu.Unlock()
		link.Close()
		c.inbox.drop()
		return nil
	}
	c.local = true
	c.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	bye := func() error { // on a link on which the peer finds what was sent
		c.mu.Lock()
		b := c.cur
		c.mu.Unlock()
		if b.car != nil {
			b.car.drain(c.opts.Grace)
		}
		b.link.Send(ctx, []byte{frameBye}, nil) // a peer that is gone needs none
		c.fail(ErrClosed)
		return nil
	}
	if c.oneBind(ctx, bye) != nil {
		bye()
	}
	c.inbox.drop()
	closedMapping()
	return nil
}

// closedMapping has the collector run when many connections were closed since
// it last did: it does not know how much mapped memory hangs on them.
func closedMapping() {
	if n := mappings.Add(1); n%256 == 0 {
		go runtime.GC()
	}
}

var mappings atomic.Int64
