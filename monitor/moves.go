package monitor

import (
	"context"
	"errors"
	"slices"

	"hardtack/idl/monitor"
	"hardtack/monitor/broker"
	"hardtack/msg"
)

// The first cluster's broker asks the kernels of the others, and nobody else does. To give a
// processor up takes longer than a monitor may wait. So a kernel does it on a goroutine of its
// own, and calls back.

// whys are the errors of answers, from 1.
var whys = []error{broker.ErrKept, broker.ErrAbsent, broker.ErrFull, broker.ErrStale, broker.ErrFailed}

func why(err error) uint8 {
	if err == nil {
		return 0
	}
	i := slices.IndexFunc(whys, func(e error) bool { return errors.Is(err, e) })
	if i < 0 {
		i = len(whys) - 1
	}
	return uint8(i + 1)
}

// do has the host do what a call asks for, and sends the answer.
func (h handler) do(turn uint32, what func(ctx context.Context) ([]uint32, error)) error {
	if h.p == nil || h.p.index != 0 {
		return monitor.ErrRefused
	}
	go func() {
		ctx := context.Background()
		pieces, err := what(ctx)
		if c, e := h.m.Peer(h.p.index); e == nil {
			c.Answer(ctx, monitor.AnswerCall{Turn: turn, Why: why(err), Pieces: pieces[:min(len(pieces), broker.MaxPieces)]}) // it ends with the peer
		}
	}()
	return nil
}

func (h handler) ReleaseCPU(_ context.Context, in monitor.ReleaseCPUCall) (out monitor.ReleaseCPUReply, err error) {
	return out, h.do(in.Turn, func(ctx context.Context) ([]uint32, error) { return nil, h.m.host.ReleaseCPU(ctx, in.Turn, in.Apic) })
}

func (h handler) AdoptCPU(_ context.Context, in monitor.AdoptCPUCall) (out monitor.AdoptCPUReply, err error) {
	return out, h.do(in.Turn, func(ctx context.Context) ([]uint32, error) { return nil, h.m.host.AdoptCPU(ctx, in.Turn, in.Apic) })
}

func (h handler) OfferMemory(_ context.Context, in monitor.OfferMemoryCall) (out monitor.OfferMemoryReply, err error) {
	return out, h.do(in.Turn, func(ctx context.Context) ([]uint32, error) {
		return h.m.host.OfferMemory(ctx, in.Turn, int(min(in.Most, broker.MaxPieces)))
	})
}

func (h handler) ReleaseMemory(_ context.Context, in monitor.ReleaseMemoryCall) (out monitor.ReleaseMemoryReply, err error) {
	return out, h.do(in.Turn, func(ctx context.Context) ([]uint32, error) { return h.m.host.ReleaseMemory(ctx, in.Turn, in.Pieces) })
}

func (h handler) AdoptMemory(_ context.Context, in monitor.AdoptMemoryCall) (out monitor.AdoptMemoryReply, err error) {
	return out, h.do(in.Turn, func(ctx context.Context) ([]uint32, error) { return nil, h.m.host.AdoptMemory(ctx, in.Turn, in.Pieces) })
}

// question is a call whose answer somebody waits for.
type question struct {
	peer   *peer
	answer chan monitor.AnswerCall // with room for one
}

// Answer gives an answer to who has asked that cluster, if he still waits.
func (h handler) Answer(_ context.Context, in monitor.AnswerCall) (out monitor.AnswerReply, err error) {
	h.m.mu.Lock()
	defer h.m.mu.Unlock()
	if q := h.m.asked[in.Turn]; q != nil && q.peer == h.p {
		delete(h.m.asked, in.Turn)
		q.answer <- in
	}
	return out, nil
}

// Remote is another cluster's kernel, in whichever life it is, as the broker sees it.
type Remote struct {
	Monitor *Monitor
	Index   int
}

// ask makes a call and waits for the answer.
func (r Remote) ask(ctx context.Context, turn uint32, call func(c *monitor.Client) error) ([]uint32, error) {
	m := r.Monitor
	m.mu.Lock()
	c, p := m.call[r.Index], m.peers[r.Index]
	q := &question{p, make(chan monitor.AnswerCall, 1)}
	m.asked[turn] = q
	m.mu.Unlock()
	defer func() {
		m.mu.Lock()
		delete(m.asked, turn)
		m.mu.Unlock()
	}()
	if c == nil {
		return nil, &broker.Unsure{Err: ErrDied}
	}
	if err := call(c); err != nil {
		var refusal *msg.CallError
		if errors.As(err, &refusal) {
			return nil, err
		}
		return nil, &broker.Unsure{Err: err}
	}
	select {
	case a := <-q.answer:
		switch {
		case a.Why == 0:
			return a.Pieces, nil
		case int(a.Why) <= len(whys):
			return nil, whys[a.Why-1]
		}
		return nil, broker.ErrFailed
	case <-ctx.Done():
		return nil, &broker.Unsure{Err: ctx.Err()}
	case <-p.done:
		return nil, &broker.Unsure{Err: ErrDied}
	}
}

// ReleaseCPU implements broker.Kernel.
func (r Remote) ReleaseCPU(ctx context.Context, turn, apic uint32) error {
	_, err := r.ask(ctx, turn, func(c *monitor.Client) error {
		_, err := c.ReleaseCPU(ctx, monitor.ReleaseCPUCall{Turn: turn, Apic: apic})
		return err
	})
	return err
}

// AdoptCPU implements broker.Kernel.
func (r Remote) AdoptCPU(ctx context.Context, turn, apic uint32) error {
	_, err := r.ask(ctx, turn, func(c *monitor.Client) error {
		_, err := c.AdoptCPU(ctx, monitor.AdoptCPUCall{Turn: turn, Apic: apic})
		return err
	})
	return err
}

// OfferMemory implements broker.Kernel.
func (r Remote) OfferMemory(ctx context.Context, turn uint32, most int) ([]uint32, error) {
	return r.ask(ctx, turn, func(c *monitor.Client) error {
		_, err := c.OfferMemory(ctx, monitor.OfferMemoryCall{Turn: turn, Most: uint32(most)})
		return err
	})
}

// ReleaseMemory implements broker.Kernel.
func (r Remote) ReleaseMemory(ctx context.Context, turn uint32, pieces []uint32) ([]uint32, error) {
	return r.ask(ctx, turn, func(c *monitor.Client) error {
		_, err := c.ReleaseMemory(ctx, monitor.ReleaseMemoryCall{Turn: turn, Pieces: pieces})
		return err
	})
}

// AdoptMemory implements broker.Kernel.
func (r Remote) AdoptMemory(ctx context.Context, turn uint32, pieces []uint32) error {
	_, err := r.ask(ctx, turn, func(c *monitor.Client) error {
		_, err := c.AdoptMemory(ctx, monitor.AdoptMemoryCall{Turn: turn, Pieces: pieces})
		return err
	})
	return err
}
