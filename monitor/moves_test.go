package monitor

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"hardtack/idl/monitor"
	"hardtack/monitor/broker"
)

// giver is a kernel that gives some memory, and whose processor does not start.
type giver struct{}

func (giver) ReleaseCPU(context.Context, uint32, uint32) error { return broker.ErrKept }
func (giver) AdoptCPU(context.Context, uint32, uint32) error   { return broker.ErrAbsent }
func (giver) OfferMemory(context.Context, uint32, int) ([]uint32, error) {
	return []uint32{7, 8, 9}, nil
}
func (giver) AdoptMemory(_ context.Context, _ uint32, p []uint32) error { return nil }

func (giver) ReleaseMemory(_ context.Context, _ uint32, p []uint32) ([]uint32, error) {
	return p[:1], nil
}

// waiter is a kernel that takes its time.
type waiter struct{ end chan struct{} }

func (w waiter) ReleaseCPU(context.Context, uint32, uint32) error { return nil }
func (w waiter) AdoptCPU(context.Context, uint32, uint32) error {
	<-w.end
	return nil
}
func (w waiter) OfferMemory(context.Context, uint32, int) ([]uint32, error)        { return nil, nil }
func (w waiter) ReleaseMemory(context.Context, uint32, []uint32) ([]uint32, error) { return nil, nil }
func (w waiter) AdoptMemory(context.Context, uint32, []uint32) error               { return nil }

// What the broker asks passes between kernels with its answers and refusals; only the first
// cluster may ask.
func TestMoves(t *testing.T) {
	a, b, hosts, _ := pair(t)
	for _, h := range hosts {
		h.Kernel = giver{}
	}
	ctx := context.Background()
	var unsure *broker.Unsure
	r := Remote{a, 1}
	if err := r.ReleaseCPU(ctx, 1, 2); !errors.Is(err, broker.ErrKept) || errors.As(err, &unsure) {
		t.Error(err)
	}
	if err := r.AdoptCPU(ctx, 2, 2); !errors.Is(err, broker.ErrAbsent) || errors.As(err, &unsure) {
		t.Error(err)
	}
	offered, err := r.OfferMemory(ctx, 3, 3)
	if err != nil || !slices.Equal(offered, []uint32{7, 8, 9}) {
		t.Error(offered, err)
	}
	released, err := r.ReleaseMemory(ctx, 4, offered)
	if err != nil || !slices.Equal(released, []uint32{7}) {
		t.Error(released, err)
	}
	if err := r.AdoptMemory(ctx, 5, released); err != nil {
		t.Error(err)
	}
	// Cluster 1 asks the first one.
	if err := (Remote{b, 0}).AdoptCPU(ctx, 1, 2); !errors.Is(err, monitor.ErrRefused) {
		t.Error(err)
	}
	// A cluster answers for itself only.
	a.mu.Lock()
	other := &question{&peer{}, make(chan monitor.AnswerCall, 1)}
	a.asked[77] = other
	a.mu.Unlock()
	if _, err := client(t, b, 0).Answer(ctx, monitor.AnswerCall{Turn: 77}); err != nil || len(other.answer) != 0 {
		t.Error(err, len(other.answer))
	}
	// Nobody there.
	limit, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
	defer cancel()
	hang := make(chan struct{})
	defer close(hang)
	hosts[1].Kernel = waiter{hang}
	if err := r.AdoptCPU(limit, 6, 2); !errors.As(err, &unsure) || !errors.Is(err, context.DeadlineExceeded) {
		t.Error("no answer:", err)
	}
	if _, err := client(t, a, 1).Ping(ctx, monitor.PingCall{}); err != nil { // a kernel that takes its time answers others
		t.Error(err)
	}
	done := make(chan error, 1)
	go func() { done <- r.AdoptCPU(ctx, 7, 2) }()
	time.Sleep(10 * time.Millisecond)
	a.Leave(1, a.links...)
	if err := <-done; !errors.As(err, &unsure) {
		t.Error("the peer has ended:", err)
	}
	if err := (Remote{a, 5}).AdoptCPU(ctx, 1, 2); !errors.As(err, &unsure) {
		t.Error(err)
	}
}
