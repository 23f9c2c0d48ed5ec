package runtime

import (
	"internal/runtime/atomic"
	"internal/runtime/sys"
)

// The policy "group": the goroutines of one conversation are scheduled as if
// they were one goroutine.
//
// A group has a queue of its runnable members that thieves do not see. At most
// one P serves it: the P whose current goroutine is a member. While it does,
// members that become runnable anywhere go to the group's queue, and the P goes
// on from member to member within one time slice. When no P serves the group,
// one runnable member, the token, is in the ordinary queues on behalf of all;
// the P that picks it, by whatever way, becomes the server. So a group runs on
// one P at a time, migrates whole, needs no P of its own, and the rest of the
// program has all other Ps and its turns on this one.
//
// Invariants, under the group's lock: a queue that is not empty has a server or
// a token; whoever is in it, or is the token, has the group's own id. Whoever ends
// serving (affDrop) makes a token of the head.
//
// Being served by one P is a preference, never mutual exclusion: a member that
// comes back from a system call on another P runs there until it next parks.
//
// A goroutine is a member from when it is seen to touch a channel of the group;
// that it shares a channel with another group makes the two one. One that computes
// for a whole time slice without giving way is put out, so that talkers that turn
// to work spread over the cores one slice later.
//
// Whether a group is better off together is measured, not guessed: touches a
// second, scattered and together in turn, in short windows, the second best of
// each (other programs on the machine mostly slow a window down). Together must be
// better by a tenth and more: what is about equal moves goroutines for nothing. The time
// of trials that were lost is bounded, for the whole process: a server whose channels
// come and go, or whose load changes all the time, would be on trial all the time.
//
// Rejected: binding goroutines to a home P (a wake-up must then find, wake or
// wait for that very P, and a resize of GOMAXPROCS must evacuate it); hiding
// members in the ordinary run queue from thieves (they take half of a ring
// without looking); deciding by a fixed rate of touches (a pipeline whose
// stages compute for a microsecond has the same rate as one that is slowed down
// by the lock).

type affGroup struct {
	_      sys.NotInHeap
	lock   mutex
	server puintptr // the P that serves it, or 0
	token  guintptr // the member in the ordinary queues, or 0
	queue  gQueue   // runnable members that no P has yet

	id    atomic.Uint32 // generation << 8 | index + 1, or 0 when free; a g keeps the low 16 bits
	on    atomic.Bool   // together
	trial atomic.Bool   // it is being measured
	again atomic.Bool   // channels came to it: what was measured is void
	into  atomic.Uint32 // id of the group that it became part of, or 0
	epoch atomic.Uint32 // of the last window of one of its channels
	last  uint32        // its last id

	// The measurement. busy is the lock of what follows it.
	count    atomic.Uint64 // touches since start
	deadline atomic.Int64  // when the phase ends
	busy     atomic.Uint32
	phase    uint32
	start    int64
	off, tog affBest // touches a second scattered, together
	rate     uint64  // what the decision was taken at
	hold     int64   // how long the decision is kept
	until    int64
	tried    int64 // when the measurement began
}

// affLost is the time of all measurements that together lost, in nanoseconds.
var affLost atomic.Int64

var affAll [255]affGroup

// Phases of the measurement. Even ones let the change settle.
const (
	affProbeNS  = 2 * 1000 * 1000
	affSettleNS = 500 * 1000
	affFormNS   = 3 * 1000 * 1000 // for a new group to find its channels
	affPhases   = 24              // six times scattered and together, each settle and measure
	affEnough   = 3               // times that will do if all of one kind were better
	affHolding  = 100
	affLookNS   = 50 * 1000 * 1000  // between looks at the rate while a decision holds
	affMaxHold  = 32                // periods
	affWorth    = 800 * 1000        // touches a second below which a group is not worth the trial
	affGrace    = 200 * 1000 * 1000 // time that may be lost in trials
	affPart     = 100               // and this part of the process's life
)

// A channel is a candidate if the touches of a window took less than affHotNS each
// (50,000 a second) and its sample saw the P change. Calmer ones have little to gain.
const affHotNS = 20 * 1000

func affByID(id uint32) *affGroup {
	if i := id & 0xff; i != 0 {
		if g := &affAll[i-1]; uint16(g.id.Load()) == uint16(id) {
			return g
		}
	}
	return nil
}

// affFind is the group of an id, or what that became part of.
func affFind(id uint32) *affGroup {
	g := affByID(id)
	for g != nil && g.into.Load() != 0 {
		g = affByID(g.into.Load()) // of a lower index
	}
	return g
}

// affMerge makes two groups one, under the lower index.
func affMerge(g, h *affGroup) *affGroup {
	if h.id.Load()&0xff < g.id.Load()&0xff {
		g, h = h, g
	}
	h.into.Store(g.id.Load())
	h.on.Store(false)
	h.trial.Store(false)
	g.again.Store(true)
	return g
}

func affNewGroup(now int64) *affGroup {
	for i := range affAll {
		g := &affAll[i]
		if g.id.Load() != 0 || !g.busy.CompareAndSwap(0, 1) {
			continue
		}
		if g.id.Load() != 0 {
			g.busy.Store(0)
			continue
		}
		gen := (g.last>>8 + 1) & 0xff
		g.last = gen<<8 | uint32(i+1)
		g.on.Store(false)
		g.epoch.Store(aff.epoch.Load())
		g.again.Store(false)
		g.into.Store(0)
		g.hold = aff.period.Load()
		g.rate = 0
		affTry(g, now, affFormNS)
		g.id.Store(g.last)
		g.busy.Store(0)
		return g
	}
	return nil
}

// affTry starts a measurement, unless enough time has been lost in them. busy is held.
func affTry(g *affGroup, now, settle int64) {
	if !g.on.Load() && affLost.Load() > affGrace+(now-runtimeInitTime)/affPart {
		g.until = now + g.hold
		affHold(g, now)
		return
	}
	affProbe(g, now, settle)
}

// affProbe starts a measurement; busy is held.
func affProbe(g *affGroup, now, settle int64) {
	g.tried = now
	g.off, g.tog = affBest{}, affBest{}
	affPhase(g, 0, now)
	g.deadline.Store(now + settle)
}

func affPhase(g *affGroup, phase uint32, now int64) {
	g.phase = phase
	g.trial.Store(true)
	g.on.Store(phase/2%2 == 1)
	length := int64(affProbeNS)
	if phase%2 == 0 {
		length = affSettleNS
	}
	g.count.Store(0)
	g.start = now
	g.deadline.Store(now + length)
}

// affWindowGroup is called at the end of a window of a channel, whose lock is held.
func affWindowGroup(s *affSlot, gp *g, now, took int64, touches uint64, crossed bool) {
	g := affFind(s.group.Load())
	if g == nil {
		if took > affHotNS*int64(touches) || !crossed || gomaxprocs == 1 {
			return
		}
		if g = affFind(uint32(gp.aff)); g != nil {
			g.again.Store(true)
		} else if g = affNewGroup(now); g == nil {
			return
		}
		s.group.Store(g.id.Load())
	}
	g.epoch.Store(aff.epoch.Load())
	g.count.Add(int64(touches))
	if now < g.deadline.Load() || !g.busy.CompareAndSwap(0, 1) {
		return
	}
	if now >= g.deadline.Load() {
		affMeasured(g, now)
	}
	g.busy.Store(0)
}

// affBest is the best rates of some windows, and the least. The second is used:
// one window is now and then too good.
type affBest struct {
	n                    uint32
	first, second, least uint64
}

func (b *affBest) add(rate uint64) {
	if rate > b.first {
		b.first, b.second = rate, b.first
	} else if rate > b.second {
		b.second = rate
	}
	if b.n++; b.n == 1 || rate < b.least {
		b.least = rate
	}
}

// clear tells whether every window was better than every one of another kind.
func (b *affBest) clear(than *affBest) bool { return b.least > than.first }

// affGains tells whether together is better by so much that it is worth it.
func affGains(off, tog *affBest) bool { return tog.second > off.second+off.second/8 }

// affMeasured ends a phase; busy is held.
func affMeasured(g *affGroup, now int64) {
	if g.again.Load() && (g.phase != affHolding || !g.on.Load()) {
		g.again.Store(false)
		affTry(g, now, affFormNS)
		return
	}
	rate := g.count.Load() * 1000 * 1000 * 1000 / uint64(now-g.start+1)
	if g.phase == affHolding {
		switch {
		case now >= g.until:
			if g.hold *= 2; g.hold > affMaxHold*aff.period.Load() {
				g.hold = affMaxHold * aff.period.Load()
			}
			affTry(g, now, affSettleNS)
		case now < g.until-g.hold+aff.period.Load()/2:
			affHold(g, now)
		case rate > 2*g.rate || rate < g.rate/4:
			// Another load than the one that was measured.
			g.rate = rate
			affTry(g, now, affSettleNS)
		default:
			affHold(g, now)
		}
		return
	}
	switch g.phase % 4 {
	case 1:
		g.off.add(rate)
		if g.phase == 1 && rate < affWorth {
			g.on.Store(false)
			g.rate = rate
			g.hold = aff.period.Load()
			g.until = now + g.hold
			affHold(g, now)
			return
		}
	case 3:
		g.tog.add(rate)
	}
	plain := g.tog.n >= affEnough && (g.tog.clear(&g.off) || g.off.clear(&g.tog)) ||
		g.tog.n > 0 && 2*g.tog.first < g.off.least // by far worse: that is enough
	if g.phase+1 < affPhases && !(plain && g.phase%4 == 3) {
		affPhase(g, g.phase+1, now)
		return
	}
	on := affGains(&g.off, &g.tog)
	g.on.Store(on)
	g.rate = g.off.second
	kind := uint32(affEvScatter)
	if on {
		g.rate = g.tog.second
		kind = affEvGroup
	} else {
		affLost.Add(now - g.tried)
	}
	affRecord(kind, g.id.Load(), g.off.second, g.tog.second)
	g.until = now + g.hold
	affHold(g, now)
}

func affHold(g *affGroup, now int64) {
	g.phase = affHolding
	g.trial.Store(false)
	g.count.Store(0)
	g.start = now
	g.deadline.Store(now + affLookNS)
}

// affMeet makes the current goroutine a member of the group of a channel that it
// touches and whose lock it holds; the channel has a group. If that is together
// and another P serves it, it asks for the goroutine to be preempted: affYield
// then moves it. True means that all who touch the channel should come here: during
// a trial the members must be known, and together, at once.
func affMeet(s *affSlot, pp *p, gp *g) bool {
	g := affFind(s.group.Load())
	if g == nil || gp.m.curg != gp || gp.lockedm != 0 {
		return false
	}
	if uint16(g.id.Load()) != gp.aff {
		if mine := affFind(uint32(gp.aff)); mine != nil && mine != g {
			g = affMerge(g, mine)
			s.group.Store(g.id.Load())
		}
		gp.aff = uint16(g.id.Load())
	} else if pp.aff != nil {
		return g.trial.Load()
	}
	if !g.on.Load() {
		return g.trial.Load()
	}
	if pp.aff == nil {
		lock(&g.lock)
		if g.server == 0 {
			g.server.set(pp)
			pp.aff = g
			pp.afftick = 1
		}
		unlock(&g.lock)
	}
	if pp.aff != g {
		gp.preempt = true
		gp.stackguard0 = stackPreempt
	}
	return g.trial.Load()
}

// affReady queues gp, which has just become runnable, with its group. False
// means that it goes to the ordinary queues.
func affReady(pp *p, gp *g) bool {
	g := affFind(uint32(gp.aff))
	if g == nil || !g.on.Load() || gp.lockedm != 0 {
		return false
	}
	gp.aff = uint16(g.id.Load())
	if pp.aff == g {
		pp.affq.pushBack(gp)
		return true
	}
	lock(&g.lock)
	if g.server != 0 || g.token != 0 {
		g.queue.pushBack(gp)
		unlock(&g.lock)
		return true
	}
	g.token.set(gp)
	unlock(&g.lock)
	return false
}

// affNext is the next member for the P that serves a group, nil if there is
// none; then it serves no longer.
func affNext(pp *p) *g {
	g := pp.aff
	on := g.on.Load()
	if on && !pp.affq.empty() {
		pp.afftick++
		return pp.affq.pop()
	}
	lock(&g.lock)
	q := g.queue
	g.queue = gQueue{}
	if on && !q.empty() {
		unlock(&g.lock)
		pp.affq = q
		pp.afftick++
		return pp.affq.pop()
	}
	g.server = 0
	pp.aff = nil
	unlock(&g.lock)
	affSpill(pp, &pp.affq)
	affSpill(pp, &q)
	return nil
}

// affSpill moves a queue to the ordinary one of this P.
func affSpill(pp *p, q *gQueue) {
	some := false
	for !q.empty() {
		runqput(pp, q.pop(), false)
		some = true
	}
	if some {
		wakep()
	}
}

// affPick tells whether pp may run gp, which came from the queues. If it is a
// member of a group that another P serves, it is queued there instead.
func affPick(pp *p, gp *g) bool {
	h := affByID(uint32(gp.aff))
	if h != nil && pp.aff == nil && !h.on.Load() && h.token.ptr() != gp {
		return true // by far the most, where scattered is better
	}
	g := affFind(uint32(gp.aff))
	if h != nil && h.token.ptr() == gp {
		// Mostly g is h; else those who waited for h are free.
		var q gQueue
		lock(&h.lock)
		h.token = 0
		if h.server == 0 && (g != h || !h.on.Load()) {
			q = h.queue
			h.queue = gQueue{}
		}
		unlock(&h.lock)
		affSpill(pp, &q)
	}
	if pp.aff != nil {
		if pp.aff == g && gp.lockedm == 0 {
			return true // mostly from affNext
		}
		affLeave(pp)
	}
	if g == nil {
		gp.aff = 0
		return true
	}
	if !g.on.Load() || gp.lockedm != 0 {
		return true
	}
	lock(&g.lock)
	if g.server != 0 {
		gp.aff = uint16(g.id.Load())
		g.queue.pushBack(gp)
		unlock(&g.lock)
		return false
	}
	g.server.set(pp)
	pp.aff = g
	pp.afftick = 0
	unlock(&g.lock)
	return true
}

// affDrop ends pp's serving. The goroutine that it gives, if any, is the token
// and must be put into an ordinary queue. It needs no P of its own: the caller
// owns pp, or the world is stopped.
//
//go:nowritebarrierrec
func affDrop(pp *p) *g {
	g := pp.aff
	if g == nil {
		return nil
	}
	lock(&g.lock)
	pp.affq.pushBackAll(g.queue)
	g.queue = pp.affq
	pp.affq = gQueue{}
	pp.aff = nil
	if g.server.ptr() == pp {
		g.server = 0
	}
	if g.server != 0 || g.token != 0 || g.queue.empty() {
		unlock(&g.lock)
		return nil
	}
	t := g.queue.pop()
	g.token.set(t)
	unlock(&g.lock)
	return t
}

// affLeave is called when pp turns to a goroutine that is not of its group.
func affLeave(pp *p) {
	if pp.aff == nil {
		return
	}
	if t := affDrop(pp); t != nil {
		runqput(pp, t, false)
		wakep()
	}
}

// affHandoff is affDrop for a P that is about to lose its M.
//
//go:nowritebarrierrec
func affHandoff(pp *p) {
	if t := affDrop(pp); t != nil {
		lock(&sched.lock)
		globrunqput(t)
		unlock(&sched.lock)
	}
}

// affYield is told of a goroutine that gave way on pp and is runnable. True
// means that it has been queued with its group.
func affYield(pp *p, gp *g, preempted bool) bool {
	g := affFind(uint32(gp.aff))
	if pp.aff != nil && pp.aff == g {
		if preempted && pp.afftick == 0 && !sched.gcwaiting.Load() && pp.runSafePointFn == 0 {
			// It computed for a whole slice: no talker.
			gp.aff = 0
			affHandoff(pp)
			return false
		}
		gp.aff = uint16(g.id.Load())
		pp.affq.pushBack(gp)
		affHandoff(pp)
		return true
	}
	return gp.aff != 0 && affReady(pp, gp)
}

// affTogether is the number of groups that are kept on one P.
func affTogether() (n uint32) {
	for i := range affAll {
		if g := &affAll[i]; g.id.Load() != 0 && g.on.Load() {
			n++
		}
	}
	return n
}

// affScatterAll ends the policy. Queues drain as their servers and tokens come by.
func affScatterAll() {
	for i := range affAll {
		affAll[i].on.Store(false)
		affAll[i].epoch.Store(aff.epoch.Load() - affStale - 1)
	}
}

// affExpire frees groups whose channels have been quiet for some periods. Sysmon only.
func affExpire() {
	now := aff.epoch.Load()
	for i := range affAll {
		g := &affAll[i]
		if aff.policy.Load() != affGroups {
			g.on.Store(false) // a measurement may have been under way
		}
		if g.id.Load() == 0 || now-g.epoch.Load() <= affStale || !g.busy.CompareAndSwap(0, 1) {
			continue
		}
		lock(&g.lock)
		if g.server == 0 && g.token == 0 && g.queue.empty() {
			g.on.Store(false)
			g.id.Store(0)
		}
		unlock(&g.lock)
		g.busy.Store(0)
	}
}
