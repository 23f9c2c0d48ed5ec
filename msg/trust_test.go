package msg_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"hardtack/msg"
)

// pass sends a message with a file.
func pass(ctx context.Context, c *msg.Conn, f *os.File) error {
	body, err := c.BeginLong(ctx, 1)
	if err != nil {
		return err
	}
	body[0] = msg.CapFile
	return c.CommitLong(ctx, msg.NumPass, msg.Cap{File: f})
}

// A sender has no more than 64 descriptors open at a peer that does not receive; all of
// them arrive when it does.
func TestCapsUnderWay(t *testing.T) {
	ctx := timeLimit(t)
	a, b := byName(t, msg.Options{Pages: 8}) // 508 slots
	f, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	const all = 300
	sent := 0
	for ; sent < all; sent++ {
		short, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
		err := pass(short, a, f)
		cancel()
		if errors.Is(err, context.DeadlineExceeded) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if sent != 64 {
		t.Errorf("%d messages with a descriptor each were sent to a peer that does not receive", sent)
	}
	done := make(chan error, 1)
	go func() {
		for i := sent; i < all; i++ {
			if err := pass(ctx, a, f); err != nil {
				done <- fmt.Errorf("sending %d: %w", i, err)
				return
			}
		}
		done <- nil
	}()
	for i := range all {
		if _, _, err := b.Next(ctx); err != nil {
			t.Fatal(i, err)
		}
		caps := b.Caps()
		if len(caps) != 1 || caps[0].File == nil {
			t.Fatal(i, caps)
		}
		caps[0].Close()
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// Connections that end at once, by either side or before the greeting, leave nothing:
// no Conn, descriptor, mapping or goroutine.
func TestConnectAndClose(t *testing.T) {
	rounds := 300
	if os.Getenv("HARDTACK_STRESS") != "" {
		rounds = 10000
	}
	ctx, dir := timeLimit(t), t.TempDir()
	o := &msg.Options{Resolver: msg.Directory(dir)}
	s, err := msg.Export(ctx, "door", msg.TestIface, o)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	served := make(chan struct{})
	go func() {
		defer close(served)
		for {
			c, err := s.Accept(ctx)
			if err != nil {
				return
			}
			c.Close()
		}
	}()
	fds, maps := state(t)
	conns, routines := len(msg.Connections()), runtime.NumGoroutine()
	var work sync.WaitGroup
	for worker := range 8 {
		work.Go(func() {
			for i := range rounds / 8 {
				if (worker+i)%3 == 0 { // a peer that hangs up in the middle of it all
					c, err := net.Dial("unixpacket", filepath.Join(dir, "door.sock"))
					if err == nil {
						c.Write([]byte{0xf0, 1})
						c.Close()
					}
					continue
				}
				c, err := msg.Connect(ctx, "door", msg.TestIface, o)
				if err != nil {
					t.Error(err)
					return
				}
				if worker%2 == 0 {
					c.Next(ctx) // until the server closes
				}
				c.Close()
			}
		})
	}
	work.Wait()
	for end := time.Now().Add(time.Minute); ; {
		f, m := state(t)
		c, r := len(msg.Connections()), runtime.NumGoroutine()
		if f <= fds && m <= maps && c <= conns && r <= routines {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("descriptors %d, %d before; mappings %d, %d; connections %d, %d; goroutines %d, %d", f, fds, m, maps, c, conns, r, routines)
		}
	}
	s.Close()
	<-served
}
