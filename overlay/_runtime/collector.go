package runtime

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
// others to mark, unless the heap is far past its goal.

const (
	gcPieceTime = 6_000  // nanoseconds that a piece of marking takes, and what was begun
	gcRestTime  = 20_000 // nanoseconds for which a P rests at least, if it does
	gcPieceWork = 1_000  // units of scan work between two looks at the clock
	gcLoan      = 2_048  // bytes that a goroutine may allocate beyond what it is lent

	gcSweepBudget = 4 // spans of its size that an allocation sweeps before it takes a new one
	gcSweepMost   = 8 // spans of all sizes that an allocation sweeps for the next collection

	gcScavengeMost = 16 << 10 // bytes that an allocation gives back beyond what it takes
)

// endPiece notes that a piece of marking has ended on pp, and how long pp rests.
func (pp *p) endPiece(now, took int64) {
	times, least := gcRest()
	pp.gcPieceNext = now + max(took*times, least)
}

// gcRest is how long a P rests after a piece: how many times the length of the piece, and
// how long at least. It is shorter the further the heap is past its goal; half beyond it
// there is none.
func gcRest() (times, least int64) {
	live, goal := gcController.heapLive.Load(), gcController.heapGoal()
	switch {
	case live < goal:
		return 3, gcRestTime
	case live < goal+goal/4:
		return 1, gcRestTime
	case live < goal+goal/2:
		return 1, gcRestTime / 2
	}
	return 0, 0
}

// gcHeapIsFar tells whether the heap is so far past its goal that there are no rests.
func gcHeapIsFar() bool {
	times, _ := gcRest()
	return times == 0
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
	bytes := gcLoan - gp.gcAssistBytes
	gp.gcAssistBytes += bytes
	gcController.bgScanCredit.Add(-int64(float64(bytes) * gcController.assistWorkPerByte.Load()))
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

// gcObjectBase is where the object begins that b, the object or an oblet of it, is in.
func gcObjectBase(s *mspan, b uintptr) uintptr {
	if s.spanclass.sizeclass() == 0 {
		return s.base()
	}
	return s.base() + s.objIndex(b)*s.elemsize
}
