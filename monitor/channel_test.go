package monitor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"hardtack/idl/monitor"
	"hardtack/msg"
)

// A buffer knows how large its array is, also where much of it has been taken.
func TestBufferSize(t *testing.T) {
	var q buffer
	q.put(make([]byte, 1000))
	before := q.size
	q.take(999)
	if before < 1000 || q.size != before || q.len() != 1 {
		t.Errorf("%d bytes in an array of %d, before of %d", q.len(), q.size, before)
	}
	q.put(make([]byte, 5000))
	if q.size < 5001 || q.size != cap(q.b) {
		t.Errorf("%d bytes in an array of %d, capacity %d", q.len(), q.size, cap(q.b))
	}
	if q.take(5001); q.size != 0 || q.len() != 0 {
		t.Errorf("an empty buffer has %d bytes in an array of %d", q.len(), q.size)
	}
}

// blocking makes a channel one that waits.
type blocking struct {
	c    *Channel
	kick chan struct{}
}

func block(c *Channel) *blocking {
	b := &blocking{c, make(chan struct{}, 1)}
	c.Notify(func() {
		select {
		case b.kick <- struct{}{}:
		default:
		}
	})
	return b
}

func (b *blocking) wait(t *testing.T) {
	select {
	case <-b.kick:
	case <-time.After(time.Minute):
		t.Error("nobody told of a change for a minute")
	}
}

func (b *blocking) Read(t *testing.T, p []byte) (int, error) {
	for !t.Failed() {
		if n, err := b.c.Read(p); n > 0 || err != nil {
			return n, err
		}
		b.wait(t)
	}
	return 0, io.ErrUnexpectedEOF
}

func (b *blocking) Write(t *testing.T, p []byte) error {
	for len(p) > 0 && !t.Failed() {
		n, err := b.c.Write(p)
		if err != nil {
			return err
		}
		if p = p[n:]; n == 0 {
			b.wait(t)
		}
	}
	return nil
}

// all reads until the end.
func (b *blocking) all(t *testing.T) (all []byte, err error) {
	for p := make([]byte, 5000); ; {
		n, err := b.Read(t, p)
		if all = append(all, p[:n]...); err != nil {
			return all, err
		}
	}
}

func noise(r *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

// channel makes a channel from a to b.
func channel(t *testing.T, a, b *Monitor, name string) (x, y *Channel) {
	t.Helper()
	came := make(chan struct{}, 1)
	l, err := b.Listen(name, monitor.Who{Process: 7, User: 8, Group: 9}, func() { came <- struct{}{} })
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if x, err = a.Open(1, name, monitor.Who{Process: 1, User: 2, Group: 3}, 0); err != nil {
		t.Fatal(err)
	}
	<-came
	if y = l.Accept(); y == nil {
		t.Fatal("no channel has come")
	}
	return x, y
}

// Many channels at a time carry bytes both ways, whole and in order, and what was written
// before the end arrives before it. Nothing is left of them.
func TestChannels(t *testing.T) {
	a, b, _, _ := pair(t)
	var work sync.WaitGroup
	for i := range 8 {
		x, y := channel(t, a, b, fmt.Sprintf("name%d", i))
		if x.At != (monitor.Who{Process: 7, User: 8, Group: 9}) || y.At != (monitor.Who{Process: 1, User: 2, Group: 3}) || x.Peer() != 1 || y.Peer() != 0 {
			t.Errorf("who is there: %+v, %+v", x.At, y.At)
		}
		r := rand.New(rand.NewPCG(uint64(i), 1))
		there, back := noise(r, r.IntN(300000)), noise(r, r.IntN(300000))
		p, q := block(x), block(y)
		work.Go(func() {
			// Each side reads all, then writes; or the other way round.
			if err := p.Write(t, there); err != nil {
				t.Error(err)
			}
			if got, err := p.all(t); !bytes.Equal(got, back) || err != io.EOF {
				t.Errorf("channel %d: %d bytes of %d came back, %v", i, len(got), len(back), err)
			}
			x.Close()
		})
		work.Go(func() {
			got := make([]byte, 0, len(there))
			for buf := make([]byte, 3000); len(got) < len(there); {
				n, err := q.Read(t, buf)
				if got = append(got, buf[:n]...); err != nil {
					t.Error(err)
					break
				}
			}
			if !bytes.Equal(got, there) {
				t.Errorf("channel %d: other bytes", i)
			}
			if err := q.Write(t, back); err != nil {
				t.Error(err)
			}
			y.Close()
		})
	}
	work.Wait()
	for _, m := range []*Monitor{a, b} {
		for _, p := range m.peers {
			for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
				p.mu.Lock()
				left := p.live
				p.mu.Unlock()
				if left == 0 {
					break
				}
				if time.Now().After(deadline) {
					t.Fatalf("%d channels are left", left)
				}
			}
		}
	}
}

// What is not read stops the writer; closing lets it go on, to the end.
func TestChannelWindow(t *testing.T) {
	a, b, _, _ := pair(t)
	x, y := channel(t, a, b, "window")
	total := 0
	for buf := make([]byte, 1000); ; {
		n, err := x.Write(buf)
		if err != nil {
			t.Fatal(err)
		}
		if total += n; n == 0 {
			time.Sleep(50 * time.Millisecond)
			if n, _ := x.Write(buf); n == 0 {
				break
			}
		}
	}
	if total > 2*Window {
		t.Errorf("%d bytes that nobody has read", total)
	}
	p := block(x)
	y.Close()
	if err := p.Write(t, make([]byte, 4*Window)); !errors.Is(err, ErrClosed) {
		t.Errorf("to who has closed: %v", err)
	}
	if n, err := x.Read(make([]byte, 1)); n != 0 || err != io.EOF {
		t.Errorf("from who has closed: %d, %v", n, err)
	}
	x.Close()
	if _, err := x.Read(make([]byte, 1)); err != ErrClosed {
		t.Errorf("after closing: %v", err)
	}
}

// Names are taken once, and only those that are there are found; a listener that accepts
// nobody has a short queue.
func TestChannelNames(t *testing.T) {
	a, b, _, _ := pair(t)
	l, err := b.Listen("name", monitor.Who{}, func() {})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Listen("name", monitor.Who{}, func() {}); err != ErrTaken {
		t.Errorf("a name that is taken: %v", err)
	}
	if _, err := b.Listen("", monitor.Who{}, func() {}); err == nil {
		t.Error("an empty name was taken")
	}
	if _, err := a.Open(1, "other", monitor.Who{}, 0); !errors.Is(err, monitor.ErrNoName) {
		t.Errorf("a name that is not there: %v", err)
	}
	if _, err := a.Open(3, "name", monitor.Who{}, 0); !errors.Is(err, msg.ErrNoName) {
		t.Errorf("a cluster that is not there: %v", err)
	}
	var first *Channel
	for i := range maxQueue {
		c, err := a.Open(1, "name", monitor.Who{}, 0)
		if err != nil {
			t.Fatal(i, err)
		}
		first = c
	}
	if _, err := a.Open(1, "name", monitor.Who{}, 0); !errors.Is(err, monitor.ErrBusy) {
		t.Errorf("a full queue: %v", err)
	}
	l.Close()
	if _, err := block(first).all(t); err != io.EOF {
		t.Errorf("a channel that nobody accepted: %v", err)
	}
	if _, err := b.Listen("name", monitor.Who{}, func() {}); err != nil {
		t.Errorf("a name that was given up: %v", err)
	}
}

// When a kernel ends, its channels do, after what had come.
func TestChannelDeath(t *testing.T) {
	a, b, _, _ := pair(t)
	x, y := channel(t, a, b, "death")
	if err := block(y).Write(t, []byte("last words")); err != nil {
		t.Fatal(err)
	}
	for in := false; !in; time.Sleep(time.Millisecond) {
		in, _, _ = x.Ready()
	}
	a.mu.Lock()
	links := a.links
	a.mu.Unlock()
	a.Leave(1, links...)
	if got, err := block(x).all(t); string(got) != "last words" || err != ErrDied {
		t.Errorf("read %q, %v", got, err)
	}
	if _, err := x.Write([]byte("x")); err != ErrDied {
		t.Errorf("wrote: %v", err)
	}
	x.Close()
}

// A kernel that does not keep to the rules of channels ends those at worst.
func TestHostileChannels(t *testing.T) {
	a, b, _, _ := pair(t)
	evil := a.conns[1]
	ctx := context.Background()
	send := func(m monitor.Msg) {
		t.Helper()
		if err := evil.Send(ctx, m); err != nil {
			t.Fatal(err)
		}
	}
	broken := func(what string, y *Channel) {
		t.Helper()
		b := block(y)
		for _, _, gone := y.Ready(); !gone && !t.Failed(); _, _, gone = y.Ready() {
			b.wait(t)
		}
		if _, err := block(y).all(t); err != ErrDied {
			t.Errorf("%s: %v", what, err)
		}
	}
	_, fine := channel(t, a, b, "fine")

	_, y := channel(t, a, b, "flood")
	for range Window/chunk + 2 {
		send(&monitor.Data{Number: y.mine, Bytes: make([]byte, chunk)})
	}
	broken("too many bytes", y)
	for _, n := range []uint32{1, Window, 1 << 31, ^uint32(0)} {
		_, y := channel(t, a, b, "credit")
		send(&monitor.Taken{Number: y.mine, Bytes: n})
		broken("credit for what was not sent", y)
	}
	for n := range uint32(100) {
		send(&monitor.Data{Number: n + 1<<20, Bytes: []byte("x")})
		send(&monitor.Taken{Number: n + 1<<20, Bytes: 1})
		send(&monitor.Closed{Number: n + 1<<20})
	}
	_, y = channel(t, a, b, "twice")
	for range 3 {
		send(&monitor.Closed{Number: y.mine})
	}
	if _, err := block(y).all(t); err != io.EOF {
		t.Errorf("closed three times: %v", err)
	}

	// More channels than there may be.
	l, err := b.Listen("many", monitor.Who{}, func() {})
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; ; i++ {
		if i > maxChannels {
			t.Fatal("there is no end of channels")
		}
		if _, err := client(t, a, 1).Open(ctx, monitor.OpenCall{Name: "many", Number: uint32(i)}); err != nil {
			if !errors.Is(err, monitor.ErrBusy) {
				t.Error(err)
			}
			break
		}
		l.Accept()
	}
	send(&monitor.Data{Number: fine.mine, Bytes: []byte("fine")})
	buf := make([]byte, 10)
	if n, err := block(fine).Read(t, buf); string(buf[:n]) != "fine" || err != nil {
		t.Errorf("the others' channel: %q, %v", buf[:n], err)
	}
}
