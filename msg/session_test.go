package msg_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"sync"
	"testing"
	"time"

	"hardtack/msg"
)

const limit = 2 * time.Minute

func timeLimit(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	t.Cleanup(cancel)
	return ctx
}

// stream sends numbered messages of many lengths until n are sent.
func stream(ctx context.Context, c *msg.Conn, n int) error { return streamFrom(ctx, c, 0, n) }

func streamFrom(ctx context.Context, c *msg.Conn, first, n int) error {
	for i := first; i < first+n; i++ {
		size := 8 + (i*i)%150
		if i%50 == 0 {
			size = 700 + i%5000
		}
		b, err := c.BeginLong(ctx, size)
		if err != nil {
			return fmt.Errorf("sending %d: %w", i, err)
		}
		clear(b)
		binary.LittleEndian.PutUint64(b, uint64(i))
		if err := c.CommitLong(ctx, msg.NumLong); err != nil {
			return err
		}
	}
	return nil
}

// expect receives what stream sends.
func expect(ctx context.Context, c *msg.Conn, n int) error { return expectFrom(ctx, c, 0, n) }

func expectFrom(ctx context.Context, c *msg.Conn, first, n int) error {
	for i := first; i < first+n; i++ {
		_, b, err := c.Next(ctx)
		if err != nil {
			return fmt.Errorf("receiving %d: %w", i, err)
		}
		if got := binary.LittleEndian.Uint64(b); got != uint64(i) {
			return fmt.Errorf("message %d instead of %d", got, i)
		}
	}
	return nil
}

// both streams in both directions at once.
func both(ctx context.Context, a, b *msg.Conn, n int) error {
	errs := make(chan error, 4)
	go func() { errs <- stream(ctx, a, n) }()
	go func() { errs <- stream(ctx, b, n) }()
	go func() { errs <- expect(ctx, a, n) }()
	go func() { errs <- expect(ctx, b, n) }()
	var all error
	for range 4 {
		all = errors.Join(all, <-errs)
	}
	return all
}

// A connection that is bound again again and again under full load in both
// directions loses, doubles and reorders nothing. HARDTACK_STRESS makes it long.
func TestRebind(t *testing.T) {
	binds := 60
	if os.Getenv("HARDTACK_STRESS") != "" || os.Getenv("HARDTACK_REBIND") != "" {
		binds = 3000
	}
	for _, schemes := range [][]string{{"unix"}, {"unix", "inproc"}} {
		t.Run(fmt.Sprint(schemes), func(t *testing.T) {
			ctx, cancel := context.WithTimeout(context.Background(), 10*limit)
			defer cancel()
			client, server := byName(t, msg.Options{Schemes: schemes})
			stop := make(chan struct{})
			done := make(chan error, 1)
			go func() { done <- bothUntil(ctx, client, server, stop) }()
			for i := range binds {
				time.Sleep(time.Duration(rand.IntN(3000)) * time.Microsecond)
				addr := ""
				if len(schemes) > 1 {
					addr = addrs(t)[i%2]
				}
				if err := client.Rebind(ctx, addr); err != nil {
					t.Error(i, err)
					cancel()
					break
				}
			}
			close(stop)
			if err := <-done; err != nil {
				t.Fatal(err)
			}
		})
	}
}

// bothUntil streams in both directions at once until told to stop, and then
// receives the rest.
func bothUntil(ctx context.Context, a, b *msg.Conn, stop chan struct{}) error {
	errs := make(chan error, 4)
	for _, ends := range [][2]*msg.Conn{{a, b}, {b, a}} {
		last := make(chan int, 1)
		go func() {
			n := 0
			for ; ; n += 100 {
				select {
				case <-stop:
					last <- n
					errs <- streamFrom(ctx, ends[0], n, 1)
					return
				default:
				}
				if err := streamFrom(ctx, ends[0], n, 100); err != nil {
					errs <- err
					return
				}
			}
		}()
		go func() {
			for i := 0; ; i++ {
				if err := expectFrom(ctx, ends[1], i, 1); err != nil {
					errs <- err
					return
				}
				if len(last) > 0 {
					errs <- expectFrom(ctx, ends[1], i+1, <-last-i)
					return
				}
			}
		}()
	}
	var all error
	for range 4 {
		err := <-errs
		if all = errors.Join(all, err); err != nil { // who waits for the rest waits in vain
			a.Close()
			b.Close()
		}
	}
	return all
}

// Descriptors and channel ends pass over a connection, and an end works where
// it arrives.
func TestCaps(t *testing.T) {
	ctx := timeLimit(t)
	a, b := byName(t, msg.Options{})
	for i := range 100 {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		body, err := a.BeginLong(ctx, 1)
		if err != nil {
			t.Fatal(err)
		}
		body[0] = msg.CapFile
		if err := a.CommitLong(ctx, msg.NumPass, msg.Cap{File: w}); err != nil {
			t.Fatal(err)
		}
		w.Close()
		if _, _, err := b.Next(ctx); err != nil {
			t.Fatal(err)
		}
		caps := b.Caps()
		if len(caps) != 1 || caps[0].File == nil {
			t.Fatalf("%v", caps)
		}
		fmt.Fprintf(caps[0].File, "hello %d", i)
		caps[0].Close()
		text, err := io.ReadAll(r)
		if err != nil || string(text) != fmt.Sprintf("hello %d", i) {
			t.Fatalf("%q, %v", text, err)
		}
		r.Close()
	}
	// An end, with messages in it already.
	x, y, err := msg.Pair(ctx, msg.TestIface, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	for i := range uint64(5) {
		if err := msg.SendShort(ctx, x, i); err != nil {
			t.Fatal(err)
		}
	}
	end, err := y.End()
	if err != nil {
		t.Fatal(err)
	}
	body, err := a.BeginLong(ctx, 1)
	if err != nil {
		t.Fatal(err)
	}
	body[0] = msg.CapEnd
	if err := a.CommitLong(ctx, msg.NumPass, msg.Cap{End: end}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := b.Next(ctx); err != nil {
		t.Fatal(err)
	}
	z, err := msg.Adopt(b.Caps()[0].End, msg.TestIface, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	if err := expect(ctx, z, 5); err != nil {
		t.Fatal(err)
	}
	if err := both(ctx, x, z, 3000); err != nil {
		t.Fatal(err)
	}
	if _, err := y.Begin(ctx); !errors.Is(err, msg.ErrClosed) {
		t.Fatal(err)
	}
}

// An end moves with bulk memory in flight in both directions, descriptors that
// wait, and a message of which only a part has come; several times in a row.
func TestEndLoaded(t *testing.T) {
	ctx := timeLimit(t)
	a, b := byName(t, msg.Options{})
	x, y, err := msg.Pair(ctx, msg.TestIface, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	sizes := func(i int) int { return []int{20, 700, 20000, 40000, 300, 512}[i%6] }
	send := func(c *msg.Conn, from, n int) {
		t.Helper()
		for i := from; i < from+n; i++ {
			b, err := c.BeginLong(ctx, sizes(i))
			if err != nil {
				t.Fatal(err)
			}
			for k := range b {
				b[k] = byte(i + k)
			}
			if err := c.CommitLong(ctx, msg.NumLong); err != nil {
				t.Fatal(err)
			}
		}
	}
	recv := func(c *msg.Conn, from, n int) {
		t.Helper()
		for i := from; i < from+n; i++ {
			_, b, err := c.Next(ctx)
			if err != nil || len(b) != sizes(i) {
				t.Fatalf("message %d of %d bytes, %v", i, len(b), err)
			}
			for k := range b {
				if b[k] != byte(i+k) {
					t.Fatalf("byte %d of message %d is %d", k, i, b[k])
				}
			}
		}
	}
	for round := range 5 {
		there, back := 24*round, 12*round
		send(x, there, 6) // some are received here, some after the move
		send(y, back, 6)
		recv(y, there, 3)
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		if body, err := x.BeginLong(ctx, 1); err != nil {
			t.Fatal(err)
		} else {
			body[0] = msg.CapFile
		}
		if err := x.CommitLong(ctx, msg.NumPass, msg.Cap{File: w}); err != nil {
			t.Fatal(err)
		}
		w.Close()
		if round%2 == 1 { // what was announced has arrived, or is still on its way
			time.Sleep(5 * time.Millisecond)
		}
		end, err := y.End()
		if err != nil {
			t.Fatal(err)
		}
		send(x, there+6, 6)
		if body, err := a.BeginLong(ctx, 1); err != nil {
			t.Fatal(err)
		} else {
			body[0] = msg.CapEnd
		}
		if err := a.CommitLong(ctx, msg.NumPass, msg.Cap{End: end}); err != nil {
			t.Fatal(err)
		}
		if _, _, err := b.Next(ctx); err != nil {
			t.Fatal(err)
		}
		if y, err = msg.Adopt(b.Caps()[0].End, msg.TestIface, nil); err != nil {
			t.Fatal(err)
		}
		recv(y, there+3, 3)
		if num, _, err := y.Next(ctx); err != nil || num != msg.NumPass {
			t.Fatal(num, err)
		}
		caps := y.Caps()
		if len(caps) != 1 || caps[0].File == nil {
			t.Fatal(caps)
		}
		caps[0].File.WriteString("moved")
		caps[0].Close()
		if text, err := io.ReadAll(r); err != nil || string(text) != "moved" {
			t.Fatalf("%q, %v", text, err)
		}
		r.Close()
		recv(y, there+6, 6)
		send(y, back+6, 6)
		recv(x, back, 12)
		send(x, there+12, 12)
		recv(y, there+12, 12)
	}
	y.Close()
	if _, _, err := x.Next(ctx); !errors.Is(err, msg.ErrPeerClosed) {
		t.Fatal(err)
	}
}

// Many calls in flight on one connection get their own answers.
func TestCaller(t *testing.T) {
	ctx := timeLimit(t)
	a, b := byName(t, msg.Options{})
	go func() {
		b.Share()
		for {
			_, body, err := b.Next(ctx)
			if err != nil {
				return
			}
			ask := append([]byte(nil), body...)
			go func() { // answers come in any order
				out, err := b.BeginLong(ctx, len(ask)+1)
				if err != nil {
					return
				}
				out[copy(out, ask)] = 7
				b.CommitLong(ctx, msg.NumAnswer)
			}()
		}
	}()
	k := msg.NewCaller(a, nil)
	var work sync.WaitGroup
	for g := range 16 {
		work.Go(func() {
			for i := range 300 {
				p := k.Start(msg.NumAnswer)
				out, err := a.BeginLong(ctx, msg.CallBytes+8+i%700)
				if err != nil {
					t.Error(err)
					return
				}
				clear(out)
				binary.LittleEndian.PutUint32(out, p.ID())
				binary.LittleEndian.PutUint64(out[4:], uint64(g*1000+i))
				if err := a.CommitLong(ctx, msg.NumAsk); err != nil {
					t.Error(err)
					return
				}
				body, err := p.Wait(ctx)
				if err != nil || len(body) != 9+i%700 || binary.LittleEndian.Uint64(body) != uint64(g*1000+i) {
					t.Errorf("%d bytes, %v", len(body), err)
				}
				p.Done()
			}
		})
	}
	work.Wait()
}

// The channel form in both directions at once, more than the channels hold.
func TestChannels(t *testing.T) {
	ctx := timeLimit(t)
	a, b := byName(t, msg.Options{Buffer: 4})
	form := func(c *msg.Conn) *msg.Channels[uint64] {
		return msg.NewChannels(c, func(ctx context.Context, v uint64) error {
			slot, err := c.Begin(ctx)
			if err != nil {
				return err
			}
			binary.LittleEndian.PutUint64(slot[:], v)
			c.Commit(msg.NumShort, 8)
			return nil
		}, func(_ uint16, body []byte) (uint64, error) { return binary.LittleEndian.Uint64(body), nil })
	}
	x, y := form(a), form(b)
	const n = 5000
	go func() { // echo
		for v := range y.Recv {
			y.Send <- v + 1
		}
		close(y.Send)
	}()
	all := make(chan struct{})
	go func() {
		for i := range uint64(n) {
			x.Send <- i
		}
		close(all)
	}()
	for i := range uint64(n) {
		select {
		case v, ok := <-x.Recv:
			if !ok || v != i+1 {
				t.Fatalf("%d %v instead of %d; %v", v, ok, i+1, a.Err())
			}
		case err := <-x.Errs:
			t.Fatal(err)
		case <-ctx.Done():
			t.Fatalf("nothing after %d", i)
		}
	}
	<-all
	close(x.Send)
	for range x.Recv {
	}
	for err := range x.Errs {
		t.Fatal(err)
	}
}

// A session cannot be taken over without its token, nor an interface by another.
func TestStrangers(t *testing.T) {
	ctx := timeLimit(t)
	dir := msg.Directory(t.TempDir())
	s, err := msg.Export(ctx, "service", msg.TestIface, &msg.Options{Resolver: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	other := *msg.TestIface
	other.Name, other.Fingerprint[5] = "other", 9
	_, err = msg.Connect(ctx, "service", &other, &msg.Options{Resolver: dir})
	var mismatch *msg.MismatchError
	if !errors.As(err, &mismatch) || mismatch.OurName != "other" || mismatch.PeerName != "test" {
		t.Fatal(err)
	}
	if _, err := msg.Export(ctx, "service", msg.TestIface, &msg.Options{Resolver: dir}); !errors.Is(err, msg.ErrTaken) {
		t.Fatal(err)
	}
	short, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	if _, err := msg.Connect(short, "nobody", msg.TestIface, &msg.Options{Resolver: dir}); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}
}

// New binds between two streams keep count.
func TestRebindBetween(t *testing.T) {
	ctx := timeLimit(t)
	client, server := byName(t, msg.Options{Schemes: []string{"unix", "inproc"}})
	for i := range 10 {
		if err := both(ctx, client, server, 300); err != nil {
			t.Fatal(i, err)
		}
		if err := client.Rebind(ctx, addrs(t)[i%2]); err != nil {
			t.Fatal(i, err)
		}
	}
}
