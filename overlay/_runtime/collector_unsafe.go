package runtime

import (
	"internal/runtime/atomic"
	_ "unsafe" // for linkname
)

// Marking in small pieces, for a kernel whose system calls must not wait long for the
// collector on one processor.
//
// All marking that others wait for is done in pieces of gcPieceTime: a worker yields
// after one, an assist ends after one. Then the P rests from marking for some times as
// long, by how close the heap is to its goal. There is no dedicated worker: every P has
// its share. If nothing else can run, idle workers mark, and look for other work as often.
//
// An allocation in debt to the collector while its P rests is lent what it owes: the
// debt goes to the pool of credit (bgScanCredit), which becomes negative. The next piece,
// whoever does it, pays it back. So no allocation marks in large pieces or waits for
// others to mark. If the heap is far past its goal, it marks for longer first.

const (
	gcPieceTime = 6_000   // nanoseconds that a piece of marking takes, and what was begun
	gcPieceMost = 80_000  // the same, at most, where the machine has few pages left
	gcPieceNone = 500_000 // and where it has none
	gcPieceFew  = 3       // and how many times the rest before
	gcRestTime  = 20_000  // nanoseconds for which a P rests at least, if it does
	gcPieceWork = 1_000   // units of scan work between two looks at the clock
	gcLoan      = 2_048   // bytes that a goroutine may allocate beyond what it is lent
	gcFarTime   = 50      // nanoseconds that a goroutine marks for each byte that it is lent where the heap is far past its goal
	gcFewTime   = 200     // the same where the machine has few pages left as well

	gcAssistTime = 250_000 // nanoseconds that an allocation marks before threads in user mode have a turn

	gcSweepBudget = 4 // spans of its size that an allocation sweeps before it takes a new one
	gcSweepMost   = 8 // spans of all sizes that an allocation sweeps for the next collection

	gcSweepForced = 32 // spans that runtime.GC sweeps before it gives way: mostly somebody waits for it

	gcAwaitPauses = 10 // between two looks whether others have swept

	gcScavengeMost = 16 << 10 // bytes that an allocation gives back beyond what it takes
)

// endPiece notes that a piece of marking has ended on pp, and how long pp rests.
func (pp *p) endPiece(now, took int64) {
	times, least := gcRest()
	if !gcFramesLeft() {
		least = gcRestTime // who needs no page goes on
	}
	pp.gcPieceNext, pp.gcPieceEnd = now+max(took*times, least), now
}

// pieceOver tells whether a worker's piece has lasted long enough at now. Where the machine is
// short of pages it lasts longer, by how long the P has rested: a thread runs on until it blocks,
// however short the rest was meant to be, and what is allocated until the collection is over
// is garbage only for the next one.
func (pp *p) pieceOver(now int64) bool {
	began := pp.gcMarkWorkerStartTime
	if now-began < gcPieceTime {
		return false
	}
	most := int64(gcPieceMost)
	if !gcFramesLeft() {
		most = gcPieceNone
	}
	return !gcFramesFew(gcFrames.short) || now-began >= min(gcPieceFew*(began-pp.gcPieceEnd), most)
}

// gcRest is how long a P rests after a piece: how many times the length of the piece, and
// how long at least. It is shorter the further the heap is past its goal; half beyond it
// there is none unless the machine has memory left.
func gcRest() (times, least int64) {
	live, goal := gcController.heapLive.Load(), gcController.heapGoal()
	switch {
	case gcFramesFew(gcFrames.short):
		break
	case live < goal:
		return 3, gcRestTime
	case live < goal+goal/4:
		return 1, gcRestTime
	case live < goal+goal/2:
		return 1, gcRestTime / 2
	}
	if gcFramesLeft() {
		return 1, 0
	}
	return 0, 0
}

// gcHeapIsFar tells whether the heap is so far past its goal that there are no rests.
func gcHeapIsFar() bool {
	_, least := gcRest()
	return least == 0
}

// gcFrames is how many pages the machine has left, where the kernel has set it. With fewer than
// short, users wait for memory, and a collection counts as if the heap were far past its goal.
// With fewer than twice few, allocations are dearer, and with fewer than few one pays all that it
// owes.
var gcFrames struct {
	left       *int64
	short, few int64
}

// gcFramesFew tells whether the machine has fewer pages left than n.
func gcFramesFew(n int64) bool { return gcFrames.left != nil && atomic.Loadint64(gcFrames.left) < n }

// gcFramesLeft tells whether the machine has memory for the heap to grow during a collection.
func gcFramesLeft() bool {
	return gcFrames.left != nil && !gcFramesFew(gcFrames.few)
}

// gcTurn makes the thread that is next in user mode a runnable goroutine of this P, and reports
// whether there is one. The kernel has set it, or it is nil.
var gcTurn func() bool

// collectorRests is how the kernel sets gcTurn; see allocated.
//
//go:linkname collectorRests hardtack/kernel/base/wait.collectorRests
var collectorRests = func(turn func() bool) { gcTurn = turn }

// gcAssistRests tells whether an allocation that has marked until rest is to give way to a thread
// that waits for user mode. It moves rest on.
func gcAssistRests(rest *int64) bool {
	now := nanotime()
	if gcTurn == nil || now < *rest || !gcTurn() {
		return false
	}
	*rest = now + gcAssistTime
	return true
}

// giveBack gives free pages of the heap back to the machine, about so many bytes at most, and
// returns how many; see allocated.
//
//go:linkname giveBack hardtack/kernel/base/mem.giveBack
var giveBack = func(bytes uintptr) (released uintptr) {
	systemstack(func() {
		gp := getg()
		gp.m.mallocing++ // as scavengeAll does
		released = mheap_.pages.scavenge(bytes, nil, true)
		gp.m.mallocing--
	})
	return released
}

// sweepSome sweeps so many spans of the heap, and reports whether there may be more; see
// allocated.
//
//go:linkname sweepSome hardtack/kernel/base/mem.sweepSome
var sweepSome = func(spans int) (more bool) {
	for range spans {
		if sweepone() == ^uintptr(0) {
			return false
		}
	}
	return true
}

// gcPoolsEnd has collections free what is in pools (sync.Pool) at once, and not only the one
// after the next.
var gcPoolsEnd bool

// endPools is how the kernel sets gcPoolsEnd while memory is short; see allocated.
//
//go:linkname endPools hardtack/kernel/base/mem.endPools
var endPools = func(on bool) { gcPoolsEnd = on }

// collectorReads is how the kernel sets gcFrames; see allocated.
//
//go:linkname collectorReads hardtack/kernel/base/mem.collectorReads
var collectorReads = func(left *int64, short, few int64) {
	gcFrames.short, gcFrames.few = short, few
	gcFrames.left = left
}

// gcPieceRests tells whether the running P rests from marking.
func gcPieceRests() bool {
	mp := acquirem()
	rests := nanotime() < mp.p.ptr().gcPieceNext
	releasem(mp)
	return rests
}

// gcLend lends gp what it owes. It reports false where the heap is so far past its goal
// that whoever allocates must mark.
func gcLend(gp *g) bool {
	if gcHeapIsFar() {
		return false
	}
	gcLendAll(gp)
	return true
}

func gcLendAll(gp *g) {
	bytes := gcLoan - gp.gcAssistBytes
	gp.gcAssistBytes += bytes
	gcController.bgScanCredit.Add(-int64(float64(bytes) * gcController.assistWorkPerByte.Load()))
}

// gcLendFar lends gp what it owes where the heap is far past its goal: once it has marked
// for a while in proportion to the bytes that it owed. Otherwise it would pay back what all
// have been lent, which takes as long as what is left of the collection. Until that is over
// the heap so grows by a part of what is alive: marking takes three nanoseconds a byte.
func gcLendFar(gp *g, began, owed int64) bool {
	price := int64(gcFarTime)
	if gcFramesFew(2 * gcFrames.few) {
		price = gcFewTime
	}
	if nanotime()-began < owed*price || !gcFramesLeft() {
		return false
	}
	gcLendAll(gp)
	return true
}

// gcRepay gives what gp has earned beyond its own need to the pool, if that is in debt.
func gcRepay(gp *g) {
	bytes := gp.gcAssistBytes - gcLoan
	debt := -gcController.bgScanCredit.Load()
	if bytes <= 0 || debt <= 0 {
		return
	}
	work := min(debt, int64(float64(bytes)*gcController.assistWorkPerByte.Load()))
	gp.gcAssistBytes -= min(bytes, int64(float64(work)*gcController.assistBytesPerWork.Load()))
	gcController.bgScanCredit.Add(work)
}

// gcIdleOver tells an idle worker whether there is something else to run: a goroutine,
// an event of the poller, or a timer that is due.
func gcIdleOver() bool {
	when := getg().m.p.ptr().timers.wakeTime()
	return when != 0 && when <= nanotime() || pollWork()
}

// backgroundUtilization is the share of the processors' time that workers took while
// the world was marked.
func (c *gcControllerState) backgroundUtilization(duration int64, procs int) float64 {
	if c.test || duration <= 0 {
		return gcBackgroundUtilization
	}
	return min(0.5, float64(c.dedicatedMarkTime.Load()+c.fractionalMarkTime.Load())/float64(duration*int64(procs)))
}

// gcAwaitSweeper is called between two looks whether another processor has swept its last
// span. Its PAUSE has an emulator that runs one processor at a time go on to that one; without
// it QEMU 7.2 with -icount never did.
func gcAwaitSweeper() { procyield(gcAwaitPauses) }

// gcObjectBase is where the object begins that b, the object or an oblet of it, is in.
func gcObjectBase(s *mspan, b uintptr) uintptr {
	if s.spanclass.sizeclass() == 0 {
		return s.base()
	}
	return s.base() + s.objIndex(b)*s.elemsize
}
