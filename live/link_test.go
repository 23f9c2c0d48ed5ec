package live

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"hardtack/msg"
)

// The host may look in long after the start: a link is accepted when something has come.
func TestAcceptWaits(t *testing.T) {
	l := NewLink(io.Discard)
	d := NewDriver("live-test", l)
	s, err := d.Listen(t.Context(), "", "")
	if err != nil {
		t.Fatal(err)
	}
	got := make(chan msg.Link, 1)
	go func() {
		k, _ := s.Accept(t.Context())
		got <- k
	}()
	select {
	case <-got:
		t.Fatal("a link was accepted before anything came")
	case <-time.After(50 * time.Millisecond):
	}
	l.Feed([]byte{1})
	if k := <-got; k != msg.Link(l) {
		t.Fatalf("accepted %v", k)
	}
	// It was the only one: the next call waits for the end.
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Accept(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("a second link: %v", err)
	}
}

// A link that ends before anything came is given back, to be closed.
func TestAcceptEnds(t *testing.T) {
	l := NewLink(io.Discard)
	s, _ := NewDriver("live-test-2", l).Listen(t.Context(), "", "")
	l.Close()
	if k, err := s.Accept(t.Context()); err != nil || k == nil {
		t.Errorf("%v, %v", k, err)
	}
	s.Close()
	if _, err := s.Accept(t.Context()); !errors.Is(err, msg.ErrClosed) {
		t.Errorf("a closed listener: %v", err)
	}
}
