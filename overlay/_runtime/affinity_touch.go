package runtime

import "internal/runtime/atomic"

// How touches of a channel are counted: the acquisitions of its lock by those
// who send and receive. A message is two.
//
// hchan does not grow, and an operation that finds buffer or value costs nothing
// more than in unmodified Go. What is counted is laps, in a byte that was padding:
// each time recvx has gone round the buffer, and at an unbuffered channel each
// message. When so many are done that they make a window, affWindow brings the
// counts up to date in a place: a record outside the channel, found by the
// channel's address, by which the votes and hardtack/affinity see it. A place
// holds no pointer, so it does not keep its channel alive; one that was not
// refreshed for some periods is free for another channel.
//
// From which P touches come is learned from samples. A window ends by watching
// the channel: its field closed becomes affWatched, every operation must look at
// that field anyway, and so the next affSample touches come to affTouch one by
// one. There the goroutine also joins the channel's group, if that is together.
//
// All fields of hchan, and those of a place that are not atomic, are guarded by
// the channel's lock. The low-order bytes of hchan's fourth word are elemsize (2),
// closed and laps; adding to laps in that word is one instruction, where adding to
// the byte would be three.

// The values of hchan.closed.
const (
	affOpen    = 0
	affShut    = 1 // closed
	affWatched = 2 // open, and each touch is looked at
)

// affKnown in hchan.site: the channel had a place. Below are the creation site's
// bytes into the text.
const affKnown = 1 << 31

const (
	affFine   = 128  // messages a window where a group is measured, or channels vote
	affBusy   = 512  // messages a window under the policy group
	affCalm   = 2048 // messages a window with the policy off or a group scattered, if 255 laps are as many
	affSample = 32   // touches that are looked at in a row
	affRare   = 8192 // touches between samples where a window has affCalm messages
	affStale  = 4    // after how many periods without a window a place is free
)

type affSlot struct {
	owner    atomic.Uintptr // address of the channel; 0 is free, 1 is being filled
	epoch    atomic.Uint32  // of the last window
	group    atomic.Uint32  // id of the group, or 0
	site     uint32
	elem     uint32
	cap      uint64
	touches  atomic.Uint64 // up to the last window
	cross    atomic.Uint64 // of them, from another P than the one before: by the samples
	contends atomic.Uint64 // of the latter, with somebody waiting: by the samples

	voted uint64 // touches at the last vote; sysmon's

	when    int64  // nanotime of the last window
	due     uint64 // touches by the next one
	tag     uintptr
	seen    uint32 // of the sample: touches, from another P, with somebody waiting
	crossed uint32
	waited  uint32
	_       uint32
}

// Place 0 stands for none.
var affSlots [1024]affSlot

// affBorn is added to the word of a new channel: under a policy the first lap
// calls affWindow, without one the 256th.
var affBorn uint32

const affOneLap = 1 << 24 // in the word

// affMade prepares a new channel that was made at pc.
func affMade(c *hchan, pc uintptr) {
	*affWord(c) |= affBorn
	c.site = uint32(pc - firstmoduledata.text)
}

// affLap counts that recvx has gone round the buffer, or a message of a channel
// without one.
func affLap(c *hchan) {
	*affWord(c) += affOneLap
	if c.laps == 0 {
		affWindow(c)
	}
}

// affThrough counts a message that goes to a waiting receiver of a channel with
// a buffer. That is empty; its ring is moved on as if the message had gone through.
//
//go:noinline
func affThrough(c *hchan) {
	if raceenabled {
		return // send has moved it
	}
	c.recvx++
	if c.recvx == c.dataqsiz {
		c.recvx = 0
		affLap(c)
	}
	c.sendx = c.recvx
}

// affClosed tells whether a channel that is not affOpen is closed.
//
//go:noinline
func affClosed(c *hchan) bool {
	if c.closed == affShut {
		return true
	}
	affTouch(c)
	return false
}

// affTouch looks at one touch of a watched channel, by whoever holds its lock.
//
//go:noinline
func affTouch(c *hchan) {
	gp := getg()
	pp := gp.m.p.ptr()
	s := affPlace(c)
	if s == nil || pp == nil {
		c.closed = affOpen
		return
	}
	s.seen++
	if s.tag != affTag(pp) {
		s.tag = affTag(pp)
		s.crossed++
		// Above the low byte are the bits of those who wait.
		if atomic.Loaduintptr(&c.lock.key)&^0xff != 0 {
			s.waited++
		}
	}
	eager := s.group.Load() != 0 && aff.policy.Load() == affGroups && affMeet(s, pp, gp)
	if s.seen%affSample == 0 && !eager {
		c.closed = affOpen
	}
}

func affHash(addr uintptr) uint32 {
	return uint32((uint64(addr) * 0x9e3779b97f4a7c15) >> 40)
}

// A channel's place is one of affTries in a row, from its hash on.
const affTries = 16

func affSlotAt(h, i uint32) (*affSlot, uint32) {
	n := 1 + (h+i)%uint32(len(affSlots)-1)
	return &affSlots[n], n
}

// affPlace finds the place of c, nil if it has none.
func affPlace(c *hchan) *affSlot {
	if c.site&affKnown == 0 {
		return nil // there may be one of a channel that had this address
	}
	me := affAddr(c)
	h := affHash(me)
	for i := uint32(0); i < affTries; i++ {
		if s, _ := affSlotAt(h, i); s.owner.Load() == me {
			return s
		}
	}
	return nil
}

// affPlaceFor finds or takes the place of c. It gives nil if all that it may
// take are in use.
func affPlaceFor(c *hchan) *affSlot {
	if s := affPlace(c); s != nil {
		return s
	}
	me := affAddr(c)
	now := aff.epoch.Load()
	h := affHash(me)
	for i := uint32(0); i < affTries; i++ {
		s, _ := affSlotAt(h, i)
		was := s.owner.Load()
		// An owner of this address that is not us has died.
		if was != 0 && was != me && now-s.epoch.Load() <= affStale {
			continue
		}
		// 1 is no address: it keeps others away while the place is filled.
		if was == 1 || !s.owner.CompareAndSwap(was, 1) {
			continue
		}
		s.epoch.Store(now)
		s.group.Store(0)
		s.site, s.cap, s.elem = c.site&^affKnown, uint64(c.dataqsiz), uint32(c.elemsize)
		s.touches.Store(0)
		s.cross.Store(0)
		s.contends.Store(0)
		s.voted, s.when, s.tag = 0, 0, 0
		s.seen, s.crossed, s.waited = 0, 0, 0
		s.due = affLaps(c, affMessages(nil)) * affOf(c)
		if c.site&affKnown == 0 {
			s.due = (256 - uint64(affBorn/affOneLap)) * affOf(c)
		}
		c.site |= affKnown
		s.owner.Store(me)
		return s
	}
	return nil
}

// affOf is how many touches a lap of c is.
func affOf(c *hchan) uint64 { return 2 * uint64(max(c.dataqsiz, 1)) }

// affLaps is how many laps of c make a window of that many messages.
func affLaps(c *hchan, messages uint64) uint64 {
	return min(max(2*messages/affOf(c), 1), 255)
}

// affMessages is how many messages the next window of a channel has: s is its
// place, or nil.
func affMessages(s *affSlot) uint64 {
	switch aff.policy.Load() {
	case affOff:
		return affCalm
	case affGroups:
		if s != nil {
			if g := affFind(s.group.Load()); g != nil {
				if g.trial.Load() {
					return affFine
				} else if !g.on.Load() {
					return affCalm
				}
			}
		}
		return affBusy
	}
	return affFine
}

// affWindow brings the counts up to date: the last lap of a window is done.
//
//go:noinline
func affWindow(c *hchan) {
	gp := getg()
	pp := gp.m.p.ptr()
	s := affPlaceFor(c)
	if s == nil || pp == nil {
		c.laps = uint8(-affLaps(c, affMessages(s)))
		return
	}
	policy := aff.policy.Load()
	before, touches := s.touches.Load(), s.due
	s.epoch.Store(aff.epoch.Load())
	s.touches.Add(int64(touches))
	aff.sumTouches.Add(int64(touches))
	crossed := s.crossed
	if crossed != 0 {
		n, w := touches*uint64(crossed)/uint64(s.seen), touches*uint64(s.waited)/uint64(s.seen)
		s.cross.Add(int64(n))
		s.contends.Add(int64(w))
		aff.sumCross.Add(int64(n))
		aff.sumContended.Add(int64(w))
	}
	s.seen, s.crossed, s.waited = 0, 0, 0
	if policy == affGroups {
		now := nanotime()
		took := now - s.when
		s.when = now
		affWindowGroup(s, gp, now, took, touches, crossed != 0)
		if s.group.Load() != 0 {
			affMeet(s, pp, gp)
		}
	}
	messages := affMessages(s)
	laps := affLaps(c, messages)
	c.laps = uint8(-laps)
	s.due = laps * affOf(c)
	if c.closed == affOpen && (messages != affCalm || before/affRare != (before+touches)/affRare) {
		s.tag = affTag(pp)
		c.closed = affWatched
	}
}

// affCount is what c has counted, to the last message.
func affCount(c *hchan) (touches, cross uint64) {
	s := affPlace(c)
	if s != nil {
		cross = s.cross.Load()
	}
	first := uint8(affBorn / affOneLap)
	if s != nil {
		touches = s.touches.Load()
		first = uint8(-(s.due / affOf(c)))
	} else if c.site&affKnown != 0 {
		first = uint8(-affLaps(c, affMessages(nil))) // another channel took its place
	}
	return touches + uint64(c.laps-first)*affOf(c) + 2*uint64(c.recvx) + uint64(c.qcount), cross
}

// affSite is the program counter of a creation site, 0 for code outside the
// main module.
func affSite(site uint32) uintptr {
	pc := firstmoduledata.text + uintptr(site&^affKnown)
	if pc == firstmoduledata.text || pc >= firstmoduledata.etext {
		return 0
	}
	return pc
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

// affChannels copies the live places.
func affChannels(buf []affChannel) int {
	now, n := aff.epoch.Load(), 0
	for i := 1; i < len(affSlots) && n < len(buf); i++ {
		s := &affSlots[i]
		owner := s.owner.Load()
		if owner <= 1 || now-s.epoch.Load() > affStale {
			continue
		}
		ch := affChannel{Addr: owner, Site: affSite(s.site), Cap: s.cap, Elem: uint64(s.elem),
			Touches: s.touches.Load(), Cross: s.cross.Load(), Contends: s.contends.Load()}
		if g := affFind(s.group.Load()); g != nil {
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
