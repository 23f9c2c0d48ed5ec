package monitor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"hardtack/idl/monitor"
	"hardtack/msg"
)

// Open opens a channel to whoever listens by a name in another cluster, with rings of so many
// pages if it can. It waits for that kernel, and the one that passes the request on, not for
// the process.
func (m *Monitor) Open(index int, name string, who monitor.Who, pages int) (*Channel, error) {
	m.mu.Lock()
	p, call := m.peers[index], m.call[index]
	if call == nil && index > 0 { // the first cluster passes it on, unless this is it
		p, call = m.peers[0], m.call[0]
	}
	m.mu.Unlock()
	if call == nil {
		return nil, fmt.Errorf("%w: cluster %d", msg.ErrNoName, index)
	}
	in := monitor.OpenCall{Name: name, To: uint32(index), From: who}
	if p.index == 0 {
		in.Pages = uint8(min(pages, MaxRingPages))
		return p.open(call, in)
	}
	in.Frames = m.lend(pages, nil, p)
	c, err := p.open(call, in)
	if err != nil || len(c.has) == 0 {
		m.drop(in.Frames, 0)
		return c, err
	}
	c.rings = &Rings{Frames: c.has, Opener: true, lent: true, m: m}
	return c, nil
}

// open makes this kernel's end of a channel and calls the other kernel.
func (p *peer) open(call *monitor.Client, in monitor.OpenCall) (*Channel, error) {
	p.mu.Lock()
	c, err := p.add()
	p.mu.Unlock()
	if err != nil {
		return nil, err
	}
	in.Number = c.mine
	settled := make(chan struct{}, 1)
	c.Notify(func() {
		select {
		case settled <- struct{}{}:
		default:
		}
	})
	out, err := call.Open(context.Background(), in)
	if err != nil {
		p.mu.Lock()
		p.forget(c)
		p.mu.Unlock()
		return nil, err
	}
	p.mu.Lock()
	c.theirs, c.At, c.open, c.far = out.Theirs, out.At, true, int(in.To)
	p.queue(c)
	for out.Later != 0 && c.opened == nil && c.ended == nil {
		p.mu.Unlock()
		<-settled
		p.mu.Lock()
	}
	c.notify = nil
	if out.Later != 0 {
		if c.opened == nil {
			err = ErrDied
		} else {
			err, c.At, out.Rings = openError(c.opened.Why), c.opened.At, c.opened.Frames
		}
	}
	p.mu.Unlock()
	if err == nil && p.index == 0 && len(out.Rings) > 0 {
		err = p.take(c, out.Rings, int(in.Pages))
	}
	if err != nil {
		c.Close()
		return nil, err
	}
	c.has = out.Rings
	return c, nil
}

// take maps rings that the first cluster gives to an end.
func (p *peer) take(c *Channel, frames []uint32, pages int) error {
	if len(frames) != 2*pages || !p.m.host.MapFrames(frames) {
		p.giveBack(frames)
		return monitor.ErrBusy
	}
	c.rings = &Rings{Frames: frames, Opener: true, m: p.m}
	return nil
}

// whysNot are the errors of an open that was passed on, from 1.
var whysNot = []error{monitor.ErrNoName, monitor.ErrBusy, monitor.ErrNoCluster}

func openError(why uint8) error {
	switch {
	case why == 0:
		return nil
	case int(why) <= len(whysNot):
		return whysNot[why-1]
	}
	return monitor.ErrBusy
}

func openWhy(err error) uint8 {
	for i, e := range whysNot {
		if errors.Is(err, e) {
			return uint8(i + 1)
		}
	}
	return uint8(len(whysNot)) // it has ended
}

// Open is another kernel's.
func (h handler) Open(_ context.Context, in monitor.OpenCall) (out monitor.OpenReply, err error) {
	p := h.p
	switch {
	case p == nil || in.Pages > MaxRingPages:
		return out, monitor.ErrBusy
	case p.index == 0:
		return p.opened(&in, p.mapped(in.Frames), int(in.By))
	case in.To != 0:
		return p.passOn(&in)
	}
	var r *Rings
	if frames := p.m.lend(int(in.Pages), nil, p); frames != nil {
		r = &Rings{Frames: frames, lent: true, m: p.m}
	}
	if out, err = p.opened(&in, r, p.index); err != nil && r != nil {
		p.m.drop(r.Frames, p.index)
	}
	return out, err
}

// mapped maps the rings that the first cluster offers; nil if it cannot.
func (p *peer) mapped(frames []uint32) *Rings {
	if len(frames) == 0 {
		return nil
	}
	if len(frames)%2 != 0 || !p.m.host.MapFrames(frames) {
		p.giveBack(frames)
		return nil
	}
	return &Rings{Frames: frames, m: p.m}
}

// opened puts a channel into the queue of whoever listens.
func (p *peer) opened(in *monitor.OpenCall, r *Rings, far int) (out monitor.OpenReply, err error) {
	defer func() {
		if err != nil && r != nil {
			r.Put()
		}
	}()
	p.m.mu.Lock()
	l := p.m.names[in.Name]
	if l == nil {
		p.m.mu.Unlock()
		return out, monitor.ErrNoName
	}
	defer l.notify() // after the unlock below
	defer p.m.mu.Unlock()
	if len(l.queue) >= maxQueue {
		return out, monitor.ErrBusy
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	c, err := p.add()
	if err != nil {
		return out, err
	}
	c.theirs, c.At, c.open, c.far, c.rings = in.Number, in.From, true, far, r
	l.queue = append(l.queue, c)
	out = monitor.OpenReply{Theirs: c.mine, At: l.who}
	if r != nil {
		out.Rings = r.Frames
	}
	return out, nil
}

// passOn opens a channel to a third cluster for a process of p's, and joins the two.
func (p *peer) passOn(in *monitor.OpenCall) (out monitor.OpenReply, err error) {
	m := p.m
	m.mu.Lock()
	q, call := m.peers[int(in.To)], m.call[int(in.To)]
	m.mu.Unlock()
	if call == nil || q == p {
		return out, monitor.ErrNoCluster
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	a, err := p.add()
	if err != nil {
		return out, err
	}
	a.theirs, a.open = in.Number, true
	go func() {
		frames := m.lend(int(in.Pages), p, q)
		b, err := q.open(call, monitor.OpenCall{Name: in.Name, To: in.To, By: uint32(p.index), From: in.From, Frames: frames})
		answer := &monitor.Opened{Number: a.theirs}
		if err != nil {
			answer.Why = openWhy(err)
		} else {
			answer.At, answer.Frames = b.At, b.has
		}
		if len(answer.Frames) == 0 {
			m.drop(frames, p.index)
		}
		p.mu.Lock()
		a.answer = answer
		p.queue(a)
		p.mu.Unlock()
		if err != nil {
			a.Close()
			return
		}
		relay(a, b)
	}()
	return monitor.OpenReply{Theirs: a.mine, Later: 1}, nil
}

// Opened is what became of an open that the first cluster has passed on.
func (h handler) Opened(_ context.Context, in monitor.Opened) {
	h.p.of(in.Number, func(c *Channel) {
		if h.p.index == 0 && c.opened == nil {
			c.opened = &in
			c.tell()
		}
	})
}

// relay carries what two channels have for each other, until either ends.
func relay(a, b *Channel) {
	wake := make(chan struct{}, 1)
	kick := func() {
		select {
		case wake <- struct{}{}:
		default:
		}
	}
	for _, c := range []*Channel{a, b} {
		c.Notify(kick)
		c.OnRung(kick)
		defer c.Close()
	}
	there, back := passage{from: a, to: b, again: kick}, passage{from: b, to: a, again: kick}
	for {
		if there.pass() || back.pass() {
			return
		}
		<-wake
	}
}

// passage is one direction of a relay.
type passage struct {
	from, to *Channel
	again    func() // has pass called
	later    *time.Timer
	buf      [4096]byte
	left     []byte // read, and not written yet
}

// passRing passes a ring on. While the last one is not taken there, one that comes is left where it
// is, so that who rings interrupts no kernel, and is looked at again a little later.
func (x *passage) passRing() {
	switch rung, _ := x.from.Rung(); {
	case !rung:
	case x.to.Unheard():
		if x.later == nil {
			x.later = time.AfterFunc(time.Millisecond, x.again)
		}
		x.later.Reset(time.Millisecond)
	default:
		x.from.TakeRung()
		x.to.Ring()
	}
}

// pass carries what it can, and reports whether the end has come.
func (x *passage) pass() (over bool) {
	x.passRing()
	for {
		for len(x.left) > 0 {
			n, err := x.to.Write(x.left)
			if x.left = x.left[n:]; err != nil {
				return true
			}
			if n == 0 {
				return false
			}
		}
		n, err := x.from.Read(x.buf[:])
		if err != nil {
			return true
		}
		if n == 0 {
			return false
		}
		x.left = x.buf[:n]
	}
}
