package msg_test

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"hardtack/msg"
)

// late fails the test if f, which has a deadline, does not come back.
func late(t *testing.T, what string, f func(ctx context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- f(ctx) }()
	select {
	case err := <-done:
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %v", what, err)
		}
	case <-time.After(20 * time.Second):
		t.Errorf("%s waits past its deadline", what)
	}
}

func sendNumber(ctx context.Context, c *msg.Conn) error {
	s, err := c.Begin(ctx)
	if err != nil {
		return err
	}
	binary.LittleEndian.PutUint64(s[:], 1)
	c.Commit(msg.NumShort, 8)
	return nil
}

// A sender without a deadline who waits for a peer that receives nothing does not hold
// others past theirs.
func TestDeadlineBehindOthers(t *testing.T) {
	ctx := timeLimit(t)
	for _, scheme := range []string{"unix", "inproc"} {
		a, b, err := msg.Pair(ctx, msg.TestIface, &msg.Options{Schemes: []string{scheme}})
		if err != nil {
			t.Fatal(err)
		}
		a.Share()
		ended := make(chan error, 1)
		go func() {
			var err error
			for err == nil {
				err = sendNumber(context.Background(), a)
			}
			ended <- err
		}()
		for !full(a) {
			time.Sleep(time.Millisecond)
		}
		late(t, scheme+": sending", func(ctx context.Context) error { return sendNumber(ctx, a) })
		k := msg.NewCaller(a, nil)
		late(t, scheme+": a call", func(ctx context.Context) error {
			p := k.Start(msg.NumAnswer)
			defer p.Done()
			body, err := a.BeginLong(ctx, msg.CallBytes)
			if err != nil {
				return err
			}
			binary.LittleEndian.PutUint32(body, p.ID())
			return a.CommitLong(ctx, msg.NumAsk)
		})
		a.Close()
		if err := <-ended; !errors.Is(err, msg.ErrClosed) {
			t.Error(scheme, err)
		}
		b.Close()
	}
}

// full says that no more messages are sent.
func full(c *msg.Conn) bool {
	n := c.Stats().Sent
	time.Sleep(20 * time.Millisecond)
	return n > 50 && c.Stats().Sent == n
}

// rawServer listens in dir as name, without msg: each of who dials is given to serve.
func rawServer(t *testing.T, dir, name string, serve func(c *net.UnixConn)) {
	t.Helper()
	l, err := net.ListenUnix("unixpacket", &net.UnixAddr{Name: filepath.Join(dir, name+".sock"), Net: "unixpacket"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.AcceptUnix()
			if err != nil {
				return
			}
			t.Cleanup(func() { c.Close() })
			go serve(c)
		}
	}()
}

// What no waiting can mend is said at once, and not that nobody has the name.
func TestConnectDoesNotWait(t *testing.T) {
	dir := t.TempDir()
	rawServer(t, dir, "version", func(c *net.UnixConn) {
		refusal := make([]byte, 44)
		refusal[0], refusal[1] = 3, 9
		c.Write(refusal)
	})
	rawServer(t, dir, "garbage", func(c *net.UnixConn) { c.Write([]byte("garbage")) })
	l, err := net.Listen("unix", filepath.Join(dir, "stream.sock"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	o := &msg.Options{Resolver: msg.Directory(dir), Wait: 2 * time.Second}
	for name, is := range map[string]func(error) bool{
		"version": func(err error) bool { var v *msg.VersionError; return errors.As(err, &v) && v.Peers == 9 },
		"garbage": func(err error) bool { var p *msg.PeerError; return errors.As(err, &p) },
		"stream":  func(error) bool { return true },
	} {
		_, err := msg.Connect(timeLimit(t), name, msg.TestIface, o)
		if err == nil || !is(err) || errors.Is(err, msg.ErrNoName) {
			t.Errorf("%s: %v", name, err)
		}
	}
	o.Resolver = elsewhere{}
	if _, err := msg.Connect(timeLimit(t), "far", msg.TestIface, o); err == nil || errors.Is(err, msg.ErrNoName) {
		t.Errorf("an address of no driver: %v", err)
	}
}

// elsewhere has all services at an address that no driver knows.
type elsewhere struct{ msg.Directory }

func (elsewhere) Resolve(context.Context, string, bool) (msg.Endpoint, error) {
	return msg.Endpoint{Addrs: []string{"carrier-pigeon:7"}}, nil
}

// A peer that asks again and again to be reached elsewhere has one goroutine at work.
func TestManyMoves(t *testing.T) {
	const moves = 400
	dir := t.TempDir()
	told := make(chan struct{})
	var come atomic.Bool
	rawServer(t, dir, "restless", func(c *net.UnixConn) {
		if come.Swap(true) {
			return // whoever comes again gets no welcome
		}
		welcome := make([]byte, 44)
		welcome[0], welcome[1], welcome[20] = 2, 1, 1
		copy(welcome[4:], msg.TestIface.Fingerprint[:])
		buf := make([]byte, 1000)
		c.Read(buf) // the memory
		c.Read(buf) // the greeting
		c.Write(welcome)
		for range moves {
			c.Write(append([]byte{7}, "unix:"+filepath.Join(dir, "restless.sock")...))
		}
		close(told)
		c.Read(buf)
	})
	before := runtime.NumGoroutine()
	c, err := msg.Connect(timeLimit(t), "restless", msg.TestIface, &msg.Options{Resolver: msg.Directory(dir), Grace: 30 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	<-told
	time.Sleep(200 * time.Millisecond)
	if n := runtime.NumGoroutine() - before; n > moves/4 {
		t.Errorf("%d goroutines for %d requests to be reached elsewhere", n, moves)
	}
}

// A nil Context is refused by every method, also when there is nothing to wait for.
func TestNilContext(t *testing.T) {
	ctx := timeLimit(t)
	a, b, err := msg.Pair(ctx, msg.TestIface, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	defer b.Close()
	if err := sendNumber(ctx, b); err != nil { // so that Next need not wait
		t.Fatal(err)
	}
	var none context.Context
	for name, f := range map[string]func(){
		"Begin":   func() { a.Begin(none) },
		"Next":    func() { a.Next(none) },
		"Rebind":  func() { a.Rebind(none, "") },
		"Connect": func() { msg.Connect(none, "x", msg.TestIface, nil) },
		"Export":  func() { msg.Export(none, "x", msg.TestIface, nil) },
		"Dial":    func() { msg.Dial(none, "unix:x", msg.TestIface, nil) },
		"Pair":    func() { msg.Pair(none, msg.TestIface, nil) },
	} {
		func() {
			defer func() {
				if text, _ := recover().(string); !strings.Contains(text, "nil Context: use context.Background()") {
					t.Errorf("%s: %q", name, text)
				}
			}()
			f()
		}()
	}
}
