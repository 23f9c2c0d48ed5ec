package msg

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"hardtack/msg/internal/barrier"
	"hardtack/msg/internal/ring"
)

// A model of links for the session protocol: a frame arrives when the test says
// so, a link breaks for either end where the test wants it, and time stands
// still until all wait. Links come with common memory, sim:ring, and without,
// sim:carry.

// simNet is the driver; one for each run.
type simNet struct {
	mu     sync.Mutex
	links  []*simLink // both ends of each; guarded by mu
	refuse int        // dials that will fail; guarded by mu
	accept chan Link
	done   chan struct{}

	logged sync.Mutex
	log    []string // what happened; guarded by logged
}

func newSimNet() *simNet { return &simNet{accept: make(chan Link, 1<<12), done: make(chan struct{})} }

func (d *simNet) Scheme() string { return "sim" }
func (d *simNet) Addr() string   { return "sim:ring" }

func (d *simNet) Listen(context.Context, string, string) (Listener, error) { return d, nil }

func (d *simNet) Accept(ctx context.Context) (Link, error) {
	select {
	case l := <-d.accept:
		return l, nil
	case <-d.done:
		return nil, ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (d *simNet) Close() error { close(d.done); return nil }

var errCut = errors.New("the test cut the link")

func (d *simNet) Dial(_ context.Context, addr string) (Link, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.refuse > 0 {
		d.refuse--
		return nil, errCut
	}
	var ends [2]*simLink
	for i := range ends {
		ends[i] = &simLink{n: len(d.links) + i, net: d, addr: addr, in: make(chan simFrame, 1<<12), closed: make(chan struct{}), cut: make(chan struct{})}
	}
	ends[0].peer, ends[1].peer = ends[1], ends[0]
	if addr == "sim:ring" {
		ends[0].shared, ends[1].shared = newLocal(1)
	}
	d.links = append(d.links, ends[0], ends[1])
	d.accept <- ends[1]
	return ends[0], nil
}

func (d *simNet) say(l *simLink, what string) {
	d.logged.Lock()
	defer d.logged.Unlock()
	d.log = append(d.log, fmt.Sprintf("%s end %d of link %d %s", time.Now().Format("05.000"), l.n%2, l.n/2, what))
}

// The resolver's part.
func (d *simNet) Place(context.Context, string, string) (string, error) { return "", nil }
func (d *simNet) Publish(context.Context, string, Endpoint) (func() error, error) {
	return func() error { return nil }, nil
}
func (d *simNet) Resolve(context.Context, string, bool) (Endpoint, error) {
	return Endpoint{}, ErrNoName
}

type simFrame struct {
	b   []byte
	end bool
}

// simLink is one end of a link.
type simLink struct {
	addr   string
	n      int // of the end: twice that of the link, and 1 if it accepted
	net    *simNet
	peer   *simLink
	shared *local
	in     chan simFrame // let through
	closed chan struct{}
	cut    chan struct{} // closed when the link is broken for this end
	mu     sync.Mutex
	held   []simFrame // sent by the peer and not let through; guarded by mu
	isCut  bool       // guarded by mu
	shut   bool       // closed; guarded by mu
}

func (l *simLink) hold(f simFrame) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held = append(l.held, f)
}

// let lets up to n frames through to this end.
func (l *simLink) let(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for ; n > 0 && len(l.held) > 0; n-- {
		l.in <- l.held[0]
		l.held = l.held[1:]
	}
}

// break_ breaks the link for this end: it gets nothing more, nor does its peer.
func (l *simLink) break_() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.isCut {
		l.isCut = true
		close(l.cut)
	}
}

func (l *simLink) Send(_ context.Context, frame []byte, _ []*os.File) error {
	l.mu.Lock()
	cut, shut := l.isCut, l.shut
	l.mu.Unlock()
	switch {
	case shut:
		return ErrClosed
	case cut:
		return errCut
	}
	l.peer.hold(simFrame{b: append([]byte(nil), frame...)})
	return nil
}

func (l *simLink) Recv(ctx context.Context) ([]byte, []*os.File, error) {
	select {
	case <-l.cut: // first, since the test has no other order
		return nil, nil, errCut
	case <-l.closed:
		return nil, nil, ErrClosed
	default:
	}
	select {
	case f := <-l.in:
		if f.end {
			l.net.say(l, "has ended")
			return nil, nil, io.EOF
		}
		l.net.say(l, fmt.Sprintf("brings frame %d", f.b[0]))
		return f.b, nil, nil
	case <-l.cut:
		return nil, nil, errCut
	case <-l.closed:
		return nil, nil, ErrClosed
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	}
}

func (l *simLink) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.shut {
		l.shut = true
		l.net.say(l, "is closed here")
		close(l.closed)
		if !l.isCut {
			l.peer.hold(simFrame{end: true})
		}
	}
	return nil
}

func (l *simLink) CanPass() bool { return false }
func (l *simLink) Peer() Peer    { return Peer{Scheme: "sim", Addr: l.addr} }
func (l *simLink) Shared() Shared {
	if l.shared == nil {
		return nil
	}
	return l.shared
}

// simEnd is an end of the connection with its two owners, which do what the
// test orders and wait in between.
type simEnd struct {
	c       *Conn
	send    chan int      // lengths of messages
	recv    chan struct{} // each the permission to receive one
	ordered int           // messages
	allowed int
	got     int // written by the receiving owner, read when all wait
	errs    chan error
}

func newSimEnd(ctx context.Context, c *Conn) *simEnd {
	e := &simEnd{c: c, send: make(chan int, 1<<14), recv: make(chan struct{}, 1<<14), errs: make(chan error, 4)}
	go func() {
		n := 0
		for size := range e.send {
			b, err := c.BeginLong(ctx, size)
			if err == nil {
				fill(b, byte(n))
				binary.LittleEndian.PutUint64(b, uint64(n))
				err = c.CommitLong(ctx, numLong)
			}
			if err != nil {
				e.errs <- fmt.Errorf("sending %d: %w", n, err)
				return
			}
			n++
		}
	}()
	go func() {
		for range e.recv {
			_, b, err := c.Next(ctx)
			if err != nil {
				e.errs <- fmt.Errorf("receiving %d: %w", e.got, err)
				return
			}
			want := make([]byte, len(b))
			fill(want, byte(e.got))
			binary.LittleEndian.PutUint64(want, uint64(e.got))
			if string(want) != string(b) {
				e.errs <- fmt.Errorf("message %d is wrong: it begins with %d", e.got, binary.LittleEndian.Uint64(b))
				return
			}
			e.got++
		}
	}()
	return e
}

func (e *simEnd) order(sizes ...int) {
	for _, n := range sizes {
		e.send <- n
		e.ordered++
	}
}

func (e *simEnd) allow(n int) {
	for range n {
		e.recv <- struct{}{}
		e.allowed++
	}
}

// What a step does. Its argument is the second byte.
const (
	simSendShort = iota
	simSendFragments
	simSendBulk
	simRecv
	simLet
	simLetAll
	simRebind
	simAskRebind
	simCut
	simRefuse
	simSleep
	simSteps
)

// simRun makes a connection and does steps with it, two bytes each, and then
// lets everything through. It returns what went wrong.
func simRun(steps []byte) (err error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	net := newSimNet()
	Register(net)
	defer func() {
		if err != nil {
			err = fmt.Errorf("%w\n%s", err, strings.Join(net.log, "\n"))
		}
	}()
	o := &Options{Resolver: net, Schemes: []string{"sim"}, Spin: -1, Grace: time.Minute}
	s, err := Export(ctx, "service", TestIface, o)
	if err != nil {
		return err
	}
	defer s.Close()
	let := func(n int) {
		net.mu.Lock()
		links := net.links
		net.mu.Unlock()
		for _, l := range links {
			l.let(n)
		}
		synctest.Wait()
	}
	dialled := make(chan *Conn, 1)
	go func() {
		c, err := Dial(ctx, "sim:ring", TestIface, o)
		if err != nil {
			panic(err)
		}
		dialled <- c
	}()
	synctest.Wait()
	let(1)
	let(1)
	near := <-dialled
	far, err := s.Accept(ctx)
	if err != nil {
		return err
	}
	ends := [2]*simEnd{newSimEnd(ctx, near), newSimEnd(ctx, far)}
	defer func() {
		for _, e := range ends {
			close(e.send)
			close(e.recv)
			e.c.Close()
		}
		for range 20 { // greetings under way run into their limit
			let(1 << 20)
			time.Sleep(time.Second)
		}
	}()
	failed := func() error {
		for _, e := range ends {
			select {
			case err := <-e.errs:
				return err
			default:
			}
		}
		return nil
	}
	for i := 0; i+1 < len(steps); i += 2 {
		what, arg := steps[i]%simSteps, int(steps[i+1])
		e := ends[arg%2]
		net.mu.Lock()
		l := net.links[max(0, len(net.links)-1-arg/8%6)]
		net.mu.Unlock()
		switch what {
		case simSendShort:
			for k := range 1 + arg/8 {
				e.order(8 + (arg+k)%48)
			}
		case simSendFragments:
			e.order(57+arg, 57+3*arg/2)
		case simSendBulk:
			e.order(512+37*arg, 300<<10*(arg/255)+600)
		case simRecv:
			e.allow(1 + arg/4)
		case simLet:
			l.let(1 + arg%3)
		case simLetAll:
			let(1 << 20)
		case simRebind:
			addr := []string{"sim:ring", "sim:carry", ""}[arg%3]
			go func() {
				limit, stop := context.WithTimeout(ctx, 100*time.Millisecond)
				defer stop()
				near.Rebind(limit, addr)
			}()
		case simAskRebind:
			go far.Rebind(ctx, []string{"sim:ring", "sim:carry"}[arg%2])
		case simCut:
			l.break_()
			if arg%2 == 0 {
				l.peer.break_()
			}
		case simRefuse:
			net.mu.Lock()
			net.refuse = arg % 3
			net.mu.Unlock()
		case simSleep:
			time.Sleep(time.Duration(arg*arg) * 5 * time.Microsecond)
		}
		synctest.Wait()
		if err := failed(); err != nil {
			return fmt.Errorf("step %d: %w", i/2, err)
		}
	}
	// Now all must arrive: who lost a link tells the other in the end.
	for i, e := range ends {
		e.allow(max(0, ends[1-i].ordered-e.allowed))
	}
	for range 500 {
		net.mu.Lock()
		links := net.links
		net.mu.Unlock()
		for _, l := range links {
			if l.isCut {
				l.peer.break_()
			}
		}
		let(1 << 20)
		if err := failed(); err != nil {
			return fmt.Errorf("at the end: %w", err)
		}
		if ends[0].got == ends[1].ordered && ends[1].got == ends[0].ordered {
			return nil
		}
		time.Sleep(20 * time.Millisecond)
	}
	return fmt.Errorf("stalled: %d of %d and %d of %d messages have come", ends[0].got, ends[1].ordered, ends[1].got, ends[0].ordered)
}

// TestSessionModel runs random steps against the protocol: whatever links do,
// every message arrives once and in order, and no goroutine is left over.
func TestSessionModel(t *testing.T) {
	barrier.Works()
	rapid.Check(t, func(rt *rapid.T) {
		steps := rapid.SliceOfN(rapid.Byte(), 2, 160).Draw(rt, "steps")
		var err error
		synctest.Test(t, func(*testing.T) { err = simRun(steps) })
		if err != nil {
			rt.Fatal(err)
		}
	})
}

// A receiver that waits in the middle of a message does not give its slots
// back: if the connection is bound again they are sent again.
func TestPartKept(t *testing.T) {
	a, b := pairFor(t, inprocOnly)
	tx := a.send.tx
	tx.Publish(numLong, ring.More, SlotBytes)
	if _, _, err := b.Next(noTime); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if room, err := tx.Refill(); err != nil || room != tx.Slots()-1 {
		t.Fatalf("%d of %d slots are free, %v", room, tx.Slots(), err)
	}
	tx.Publish(numLong, ring.Cont, 3)
	if _, body, err := b.Next(ctxFor(t)); err != nil || len(body) != SlotBytes+3 {
		t.Fatal(len(body), err)
	}
}

// An end that moves in the middle of a message of several slots takes what has
// come of it along.
func TestEndInPart(t *testing.T) {
	ctx := ctxFor(t)
	x, y := pairFor(t, &Options{})
	want := make([]byte, 3*SlotBytes)
	fill(want, 7)
	put := func(i int, f uint8) {
		copy(x.send.tx.Body()[:], want[i*SlotBytes:])
		x.send.tx.Publish(numLong, f, SlotBytes)
	}
	put(0, ring.More)
	put(1, ring.More|ring.Cont)
	if _, _, err := y.Next(noTime); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	end, err := y.End()
	if err != nil {
		t.Fatal(err)
	}
	z, err := Adopt(end, TestIface, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	put(2, ring.Cont)
	x.finish(true)
	if _, body, err := z.Next(ctx); err != nil || string(body) != string(want) {
		t.Fatal(len(body), err)
	}
}
