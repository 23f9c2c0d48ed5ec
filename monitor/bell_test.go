package monitor

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"hardtack/idl/monitor"
)

// Doorbells ring back, and say how long the other side took; not when the peer has ended.
func TestBell(t *testing.T) {
	a, _, _, _ := pair(t)
	for range 100 {
		d, err := a.Bell(1)
		if err != nil || d.Round <= 0 || d.Ring > d.Round {
			t.Fatalf("%+v, %v", d, err)
		}
	}
	a.mu.Lock()
	for _, l := range a.links {
		l.Die()
	}
	a.mu.Unlock()
	if _, err := a.Bell(1); err == nil {
		t.Error("a dead kernel rang back")
	}
	if _, err := a.Bell(7); err == nil {
		t.Error("a cluster that is not there rang back")
	}
}

// Handlers run one at a time in the doorbell's bottom half; what does not fit there is served
// all the same, errors come back, and one-way messages keep their order.
func TestInline(t *testing.T) {
	a, _, _, _ := pair(t)
	c := client(t, a, 1)
	ctx := context.Background()
	done := make(chan error, 20)
	for g := range cap(done) {
		go func() {
			var err error
			for n := range 200 {
				switch n % 2 {
				case 0:
					var out monitor.PingReply
					if out, err = c.Ping(ctx, monitor.PingCall{Number: uint64(n)}); err == nil && out.Same != uint64(n) {
						err = fmt.Errorf("%d instead of %d", out.Same, n)
					}
				case 1:
					_, err = c.Open(ctx, monitor.OpenCall{Name: fmt.Sprint("nobody-", g, "-listens-by-this-name"), Number: uint32(n)})
					if errors.Is(err, monitor.ErrNoName) {
						err = nil
					}
				}
				if err != nil {
					break
				}
			}
			done <- err
		}()
	}
	for range cap(done) {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}
