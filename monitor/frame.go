package monitor

import (
	"context"
	"slices"

	"hardtack/idl/monitor"
)

// Sizes of frames: the longest one, and how many pieces may wait for a peer.
const (
	MaxFrame  = 1514
	maxPieces = 512
)

// Net is what a kernel does with what comes from the others' networks.
type Net interface {
	// Receive takes an Ethernet frame of another kernel, which may be anything. The bytes are
	// the monitor's again when it returns. Frames of different kernels may come at once.
	Receive(from int, frame []byte)
	// Ended says that a cluster has ended.
	Ended(index int)
}

// SetNet names who takes frames. Those that came before are lost.
func (m *Monitor) SetNet(n Net) {
	m.mu.Lock()
	m.net = n
	m.mu.Unlock()
}

func (m *Monitor) network() Net {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.net
}

// SendFrame copies a frame's parts for another kernel, and never waits: it reports false
// where there is no room. A frame for a kernel that is not there is lost.
func (m *Monitor) SendFrame(to int, parts [][]byte) bool {
	m.mu.Lock()
	p := m.peers[to]
	m.mu.Unlock()
	if p == nil {
		return true
	}
	b := slices.Concat(parts...)
	if len(b) > MaxFrame {
		return true
	}
	var pieces []monitor.Msg
	for len(b) > chunk {
		pieces = append(pieces, &monitor.Frame{More: 1, Bytes: b[:chunk]})
		b = b[chunk:]
	}
	return p.post(maxPieces, append(pieces, &monitor.Frame{Bytes: b})...)
}

// Others are the indices of the kernels that have joined this one.
func (m *Monitor) Others() (all []int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range m.peers {
		all = append(all, i)
	}
	return all
}

// post queues messages that no channel sends, unless that many wait.
func (p *peer) post(most int, what ...monitor.Msg) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.over:
		return true
	case len(p.frames) >= most:
		return false
	}
	p.frames = append(p.frames, what...)
	p.look()
	return true
}

// frame takes the first of the queue; p.mu is held.
func (p *peer) frame() monitor.Msg {
	what := p.frames[0]
	p.frames[0] = nil
	if p.frames = p.frames[1:]; len(p.frames) == 0 {
		p.frames = nil
	}
	return what
}

// tell tells the other kernels and this one that a cluster has ended.
func (m *Monitor) tell(index int) {
	m.mu.Lock()
	n := m.net
	for i, p := range m.peers {
		if i != index {
			p.post(2*maxPieces, &monitor.Ended{Index: uint32(index)})
		}
	}
	m.mu.Unlock()
	if n != nil {
		n.Ended(index)
	}
}

func (h handler) Frame(_ context.Context, in monitor.Frame) {
	n := h.m.network()
	if n == nil || h.p == nil {
		return
	}
	if in.More != 0 || len(h.p.partly) > 0 {
		// A frame that is too long is not kept: its end is received as a frame, and is none.
		if len(h.p.partly)+len(in.Bytes) > MaxFrame {
			h.p.partly = h.p.partly[:0]
			return
		}
		h.p.partly = append(h.p.partly, in.Bytes...)
		if in.More == 0 {
			n.Receive(h.p.index, h.p.partly)
			h.p.partly = h.p.partly[:0]
		}
		return
	}
	n.Receive(h.p.index, in.Bytes)
}

func (h handler) Ended(_ context.Context, in monitor.Ended) {
	// Another than the first cluster may not end the connections of its neighbours.
	if n := h.m.network(); n != nil && h.p != nil && h.p.index == 0 && in.Index > 0 && in.Index < maxClusters {
		n.Ended(int(in.Index))
	}
}
