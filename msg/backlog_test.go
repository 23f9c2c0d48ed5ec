package msg_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"hardtack/msg"
)

// backlogged is a server that accepts nothing, and a way to connect to it.
func backlogged(t *testing.T) (s *msg.Server, dial func() (*msg.Conn, error)) {
	t.Helper()
	ctx, o := timeLimit(t), &msg.Options{Resolver: msg.Directory(t.TempDir())}
	s, err := msg.Export(ctx, "idle", msg.TestIface, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	addr := s.Addrs()[0]
	return s, func() (*msg.Conn, error) { return msg.Dial(ctx, addr, msg.TestIface, o) }
}

// Connections that end before Accept takes them leave nothing, however many.
func TestEndedBeforeAccept(t *testing.T) {
	_, dial := backlogged(t)
	fds, maps := state(t)
	for range 3 * msg.MaxBacklog {
		c, err := dial()
		if err != nil {
			t.Fatal(err)
		}
		c.Close()
	}
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		f, m := state(t)
		if f <= fds && m <= maps {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%d descriptors, %d before; %d mappings, %d before", f, fds, m, maps)
		}
		msg.Collect()
	}
}

// What a peer sent before it closed is there for an Accept that comes later.
func TestSentBeforeAccept(t *testing.T) {
	s, dial := backlogged(t)
	ctx := timeLimit(t)
	c, err := dial()
	if err != nil {
		t.Fatal(err)
	}
	if err := msg.SendShort(ctx, c, 42); err != nil {
		t.Fatal(err)
	}
	c.Close()
	got, err := s.Accept(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer got.Close()
	<-got.Done()
	if v, err := msg.RecvShort(ctx, got); err != nil || v != 42 {
		t.Fatal(v, err)
	}
	if _, err := msg.RecvShort(ctx, got); !errors.Is(err, msg.ErrPeerClosed) {
		t.Fatal(err)
	}
}

// A peer beyond those that may wait for Accept comes in when there is room, and is
// refused if there is none for long.
func TestBacklog(t *testing.T) {
	s, dial := backlogged(t)
	var conns []*msg.Conn
	for range msg.MaxBacklog {
		c, err := dial()
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		conns = append(conns, c)
	}
	if c, err := dial(); err == nil || !strings.Contains(err.Error(), "does not accept") {
		if err == nil {
			c.Close()
		}
		t.Errorf("one too many: %v", err)
	}
	come := make(chan error, 2)
	for range cap(come) {
		go func() {
			c, err := dial()
			if err == nil {
				defer c.Close()
			}
			come <- err
		}()
	}
	conns[0].Close() // makes room for one,
	if err := <-come; err != nil {
		t.Error("after one has closed:", err)
	}
	c, err := s.Accept(context.Background()) // and this for the other
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := <-come; err != nil {
		t.Error("after Accept:", err)
	}
}
