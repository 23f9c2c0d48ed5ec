package monitor

import "math/bits"

// Who has changed a channel's rings rings for the other end. The kernels have a bit for each channel
// in the memory that they share: whoever sets it interrupts the other kernel, unless the bit was set.
// Only who reads the ring there takes the bit away. So a process can interrupt another kernel no
// more often than a process of that kernel asks for it, and no message passes.
//
// A bit that is set before its channel is there, or after its end, is nobody's.

// Ring has the other end hear that the rings have changed.
func (c *Channel) Ring() {
	c.p.mu.Lock()
	if c.open && !c.gone.Load() {
		c.p.out.ringBell(c.theirs % maxChannels)
	}
	c.p.mu.Unlock()
}

// ringBell sets a bell of the other side's.
func (l *Link) ringBell(i uint32) {
	b := &l.a.control.Bells[1-l.side]
	if bit := uint64(1) << (i % 64); b.Rung[i/64].Or(bit)&bit == 0 && b.Set.Or(1<<(i/64)) == 0 {
		l.ring()
	}
}

// Unheard reports whether the other end has yet to take the last ring.
func (c *Channel) Unheard() bool {
	l := c.p.out
	return !c.gone.Load() && l.a.control.Bells[1-l.side].Rung[c.theirs%maxChannels/64].Load()>>(c.theirs%64)&1 != 0
}

// bells are those of the peer's channels here.
func (p *peer) bells() *bells { return &p.in.a.control.Bells[p.in.side] }

// Rung tells whether the other end has rung since the last TakeRung, and whether it is gone. The
// memory of the bells stays when the peer ends: it becomes that of a later life.
func (c *Channel) Rung() (rung, gone bool) {
	if c.gone.Load() {
		return false, true
	}
	return c.p.bells().Rung[c.mine%maxChannels/64].Load()>>(c.mine%64)&1 != 0, false
}

// TakeRung reports whether the other end has rung since the last call, and whether it is gone.
func (c *Channel) TakeRung() (rung, gone bool) {
	if rung, gone = c.Rung(); rung {
		c.p.mu.Lock()
		gone = c.gone.Load()
		rung = !gone && c.p.takeBell(c)
		c.p.mu.Unlock()
	}
	return rung, gone
}

// takeBell takes a channel's bit away; mu is held. That the bell was heard is forgotten with
// the same lock as it is noted with, so the next ring is heard again.
func (p *peer) takeBell(c *Channel) bool {
	i := c.mine % maxChannels
	bit := uint64(1) << (i % 64)
	p.told[i/64] &^= bit
	return p.bells().Rung[i/64].And(^bit)&bit != 0
}

// OnRung has f called, which must not block, when the other end rings, and at the end.
func (c *Channel) OnRung(f func()) {
	c.p.mu.Lock()
	c.bell = f
	c.p.mu.Unlock()
}

func (c *Channel) tellBell() {
	if c.bell != nil {
		c.bell()
	}
}

// hearBells is the doorbell's bottom half. What the peer may have set are bits of its own channels
// alone, and each is told once until it is taken.
func (p *peer) hearBells() {
	b := p.bells()
	if b.Set.Load() == 0 {
		return
	}
	set := b.Set.Swap(0)
	p.mu.Lock()
	if p.over {
		set = 0
	}
	for ; set != 0; set &= set - 1 {
		i := bits.TrailingZeros32(set) % len(p.told) // the peer may have set any
		rung := b.Rung[i].Load() &^ p.told[i]
		p.told[i] |= rung
		for ; rung != 0; rung &= rung - 1 {
			if at := 64*i + bits.TrailingZeros64(rung); at < len(p.channels) && p.channels[at] != nil {
				p.channels[at].tellBell()
			}
		}
	}
	p.mu.Unlock()
}
