package runtime

import (
	"internal/runtime/atomic"
	"unsafe"
)

// What a channel counts, in 16 bytes at the end of hchan, written under the
// channel's lock:
//
//	key      tag of the P that came last << 8 | touches since the slow path
//	touches  lock acquisitions by an operation of the program, up to then
//	cross    those that came from another P than the one before
//	site     where the channel was made, as an offset into the text
//
// The fast path adds one to key and compares its tag with this P's, nothing
// more: the tag differs when the P changed, and also when the low byte ran
// over. Then the slow path brings the counts up to date, and every affWindow
// touches it moves them to a slot: a record outside the channel by which the
// votes and hardtack/affinity see it. A slot holds no pointer, so it does not
// keep its channel alive; one that was not refreshed for some periods is free
// for another channel.

// affWindow is how many touches lie between two looks at the clock.
const affWindow = 256

// affStale is after how many periods without a window a slot is free.
const affStale = 4

type affSlot struct {
	owner    atomic.Uintptr // address of the channel; 0 is free
	epoch    atomic.Uint32  // of the last window
	group    atomic.Uint32  // id of the group, or 0
	site     uint32
	cap      uint64
	elem     uint64
	touches  atomic.Uint64
	cross    atomic.Uint64
	contends atomic.Uint64
	voted    uint64 // touches at the last vote; sysmon's
	when     int64  // nanotime of the last window; under the channel's lock
	lastX    uint32 // the channel's cross at the last window; under its lock
	_        uint32
}

// Slot 0 stands for none.
var affSlots [1024]affSlot

// afftouch is called under the lock of c by whoever took it. It must stay small
// enough to be inlined. A tag is the address of the P without the bits in which
// all Ps agree; they are at least 8 KiB apart, so a tag plus one is no other's.
func afftouch(c *hchan) {
	c.key++
	if (c.key^uint32(getg().m.p>>2))>>8 != 0 {
		affTouch(c)
	}
}

// affTouch is the slow path of afftouch.
//
//go:noinline
func affTouch(c *hchan) {
	gp := getg()
	pp := gp.m.p.ptr()
	before := c.touches
	c.touches += c.key - (c.key-1)&^0xff // this touch too
	tag := uint32(uintptr(unsafe.Pointer(pp))>>2) &^ 0xff
	was := (c.key - 1) &^ 0xff
	c.key = tag
	if pp == nil {
		return
	}
	s := &affSlots[c.slot]
	if was != tag && was != 0 {
		c.cross++
		// Above the low byte are the bits of those who wait.
		if c.slot != 0 && atomic.Loaduintptr(&c.lock.key)&^0xff != 0 {
			s.contends.Add(1)
			aff.sumContended.Add(1)
		}
	}
	if windows := c.touches/affWindow - before/affWindow; windows != 0 {
		if s = affSlotOf(c); s == nil {
			return
		}
		affWindowEnd(c, s, pp, gp)
	}
	if id := s.group.Load(); id != 0 && aff.policy.Load() == affGroups && s.owner.Load() == uintptr(unsafe.Pointer(c)) {
		affJoin(s, id, pp, gp)
	}
}

// affSlotOf finds or takes the slot of c, whose lock is held. It gives nil if
// all of the few places that it may take are in use.
func affSlotOf(c *hchan) *affSlot {
	me := uintptr(unsafe.Pointer(c))
	if s := &affSlots[c.slot]; c.slot != 0 && s.owner.Load() == me {
		return s
	}
	now := aff.epoch.Load()
	h := uint32((uint64(me) * 0x9e3779b97f4a7c15) >> 40)
	for i := uint32(0); i < 16; i++ {
		n := 1 + (h+i)%uint32(len(affSlots)-1)
		s := &affSlots[n]
		was := s.owner.Load()
		// An owner of this address that is not us has died.
		if was != 0 && was != me && now-s.epoch.Load() <= affStale {
			continue
		}
		// 1 is no address: it keeps others away while the slot is filled.
		if was == 1 || !s.owner.CompareAndSwap(was, 1) {
			continue
		}
		s.epoch.Store(now)
		s.group.Store(0)
		s.site, s.cap, s.elem = c.site, uint64(c.dataqsiz), uint64(c.elemsize)
		s.touches.Store(0)
		s.cross.Store(0)
		s.contends.Store(0)
		s.voted, s.when, s.lastX = 0, 0, c.cross
		c.slot = uint16(n)
		s.owner.Store(me)
		return s
	}
	return nil
}

// affWindowEnd moves the counts of one window into the slot and, under the
// group policy, looks whether the channel is a candidate.
func affWindowEnd(c *hchan, s *affSlot, pp *p, gp *g) {
	cross := uint64(c.cross - s.lastX)
	s.lastX = c.cross
	s.epoch.Store(aff.epoch.Load())
	s.touches.Add(affWindow)
	s.cross.Add(int64(cross))
	aff.sumTouches.Add(affWindow)
	aff.sumCross.Add(int64(cross))
	if aff.policy.Load() != affGroups {
		return
	}
	now := nanotime()
	took := now - s.when
	s.when = now
	affWindowGroup(s, gp, now, took, cross)
}

// affSite is the program counter of a creation site.
func affSite(site uint32) uintptr {
	if site == 0 {
		return 0
	}
	return firstmoduledata.text + uintptr(site)
}

// affSiteOf is its inverse, 0 for code outside the main module.
func affSiteOf(pc uintptr) uint32 {
	if pc <= firstmoduledata.text || pc >= firstmoduledata.etext || pc-firstmoduledata.text > 1<<32-1 {
		return 0
	}
	return uint32(pc - firstmoduledata.text)
}

// affVote counts the channels seen in the last periods, and those with more
// touches in this one than it takes to vote for fewer cores. Sysmon only.
func affVote() (yes, voters uint32) {
	now, need := aff.epoch.Load(), uint64(aff.touches.Load())
	for i := 1; i < len(affSlots); i++ {
		s := &affSlots[i]
		if s.owner.Load() <= 1 || now-s.epoch.Load() > affStale {
			continue
		}
		voters++
		t := s.touches.Load()
		if t < s.voted {
			s.voted = 0 // another channel's
		}
		if t-s.voted > need {
			yes++
		}
		s.voted = t
	}
	return yes, voters
}

// affChannels copies the live slots.
func affChannels(buf []affChannel) int {
	now, n := aff.epoch.Load(), 0
	for i := 1; i < len(affSlots) && n < len(buf); i++ {
		s := &affSlots[i]
		owner := s.owner.Load()
		if owner <= 1 || now-s.epoch.Load() > affStale {
			continue
		}
		ch := affChannel{Addr: owner, Site: affSite(s.site), Cap: s.cap, Elem: s.elem,
			Touches: s.touches.Load(), Cross: s.cross.Load(), Contends: s.contends.Load()}
		if g := affByID(s.group.Load()); g != nil {
			ch.Group = uint32(g.id.Load())
			if g.on.Load() {
				ch.Together = 1
			}
		}
		if s.owner.Load() == owner {
			buf[n] = ch
			n++
		}
	}
	return n
}
