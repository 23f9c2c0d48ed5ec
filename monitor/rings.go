package monitor

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"hardtack/idl/monitor"
)

// A channel may have rings: memory that the processes at both ends map, each page a frame of the
// first cluster. That kernel lends the frames to those that hold them, itself too if one of the
// processes is its own. Another kernel that was given frames says when it does not map them
// any more, or has not mapped them at all; of one that has ended, the processors have stopped.
// Only when nobody holds the frames they are free.

// Sizes of rings.
const (
	MaxRingPages = 4    // of either direction
	maxLent      = 1024 // frames that one cluster holds
)

// Memory is what rings need of a kernel. Frames are named by number.
type Memory interface {
	// LendFrames returns n zeroed frames of the first cluster, or nil.
	LendFrames(n int) []uint32
	// ReturnFrames ends that.
	ReturnFrames(frames []uint32)
	// MapFrames maps frames that the first cluster lends to this one, and checks that they can
	// be that. It reports false if it has mapped none.
	MapFrames(frames []uint32) bool
	// UnmapFrames waits until no process has mapped the frames, and unmaps them.
	UnmapFrames(frames []uint32)
}

// Rings are a channel's, at one end. They stay while they have users: the channel, and whoever
// called Channel.Rings.
type Rings struct {
	Frames []uint32 // those of the ring that the opener writes come first
	Opener bool     // this end is the opener's
	lent   bool     // this kernel has lent the frames
	m      *Monitor
	more   atomic.Int32 // users beside the first
}

// Put gives up a use.
func (r *Rings) Put() {
	switch m := r.m; {
	case r.more.Add(-1) >= 0:
	case r.lent:
		m.drop(r.Frames, 0)
	default:
		go func() {
			m.host.UnmapFrames(r.Frames)
			m.mu.Lock()
			p := m.peers[0]
			m.mu.Unlock()
			if p != nil {
				p.giveBack(r.Frames)
			}
		}()
	}
}

// Rings returns a channel's rings for use, nil if it has none or is closed.
func (c *Channel) Rings() *Rings {
	c.p.mu.Lock()
	defer c.p.mu.Unlock()
	if c.rings == nil || c.shut {
		return nil
	}
	c.rings.more.Add(1)
	return c.rings
}

// giveBack has the first cluster hear that this kernel does not map frames.
func (p *peer) giveBack(frames []uint32) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.over {
		p.unmapped = append(p.unmapped, frames)
		p.rouse()
	}
}

// Unmapped is another kernel's word that it has unmapped rings.
func (h handler) Unmapped(_ context.Context, in monitor.Unmapped) {
	if h.p != nil && h.p.index != 0 {
		h.m.drop(in.Frames, h.p.index)
	}
}

// loans are the frames that the first cluster lends.
type loans struct {
	mu   sync.Mutex
	all  map[uint32]*loan // by the first frame; guarded by mu
	lent map[int]int      // frames by holder; guarded by mu
}

// loan is the frames of a channel's rings.
type loan struct {
	frames  []uint32
	holders []int // clusters; guarded by loans.mu
}

// lend lends the frames of rings to two clusters, of which the first cluster itself is nil. It
// returns nil if it cannot.
func (m *Monitor) lend(pages int, to ...*peer) []uint32 {
	if pages <= 0 {
		return nil
	}
	frames := m.host.LendFrames(2 * min(pages, MaxRingPages))
	if frames == nil {
		return nil
	}
	l := &loan{frames: frames, holders: []int{-1}} // until all have it
	s := &m.loans
	s.mu.Lock()
	s.all[frames[0]] = l
	s.mu.Unlock()
	ok := true
	for _, p := range to {
		ok = ok && s.hold(l, p)
	}
	if !ok {
		for _, p := range to {
			m.drop(frames, indexOf(p))
		}
	}
	m.drop(frames, -1)
	if !ok {
		return nil
	}
	return frames
}

func indexOf(p *peer) int {
	if p == nil {
		return 0
	}
	return p.index
}

// hold notes that a cluster has a loan, unless it has ended or has too many.
func (s *loans) hold(l *loan, p *peer) bool {
	if p != nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.over {
			return false
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	i, n := indexOf(p), len(l.frames)
	if i > 0 && s.lent[i]+n > maxLent {
		return false
	}
	s.lent[i] += n
	l.holders = append(l.holders, i)
	return true
}

// drop notes that a cluster holds frames no more. The last one that does frees them.
func (m *Monitor) drop(frames []uint32, index int) {
	if len(frames) == 0 {
		return
	}
	s := &m.loans
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.all[frames[0]]; l != nil && slices.Equal(l.frames, frames) {
		m.release(l, index)
	}
}

// release is drop with the loans' lock held.
func (m *Monitor) release(l *loan, index int) {
	i := slices.Index(l.holders, index)
	if i < 0 {
		return
	}
	s := &m.loans
	l.holders = slices.Delete(l.holders, i, i+1)
	if index >= 0 {
		if s.lent[index] -= len(l.frames); s.lent[index] == 0 {
			delete(s.lent, index)
		}
	}
	if len(l.holders) == 0 {
		delete(s.all, l.frames[0])
		m.host.ReturnFrames(l.frames)
	}
}

// Revoke takes back what a cluster holds whose processors have stopped. It comes after Leave.
func (m *Monitor) Revoke(index int) {
	s := &m.loans
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.all {
		m.release(l, index)
	}
}

// Lent returns how many frames are lent.
func (m *Monitor) Lent() (n int) {
	s := &m.loans
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.all {
		n += len(l.frames)
	}
	return n
}

// LentToOthers returns how many of them the first cluster itself does not hold.
func (m *Monitor) LentToOthers() (n int) {
	s := &m.loans
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.all {
		if !slices.Contains(l.holders, 0) {
			n += len(l.frames)
		}
	}
	return n
}
