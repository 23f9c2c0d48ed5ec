package runtime

import (
	"internal/runtime/atomic"
	"internal/runtime/sys"
	"internal/stringslite"
	_ "unsafe" // for linkname
)

// The order of locks, checked while the kernel runs, as Linux's lockdep does: a
// deadlock is found when its locks have been taken in both orders at any two times,
// not only when two goroutines meet.
//
// A class is a set of call sites of Lock and RLock. Each site begins as a class of its
// own. A lock has the class of the site that took it first, and every other site that
// takes the same lock joins its class. So a field of a type becomes one class as soon
// as its users have met in one object, without a name given to anything. The class
// lies in the lock, so that freed memory leaves no class behind.
//
// Whoever takes a lock of class B while it holds one of class A adds the order A → B.
// If B already leads to A it prints both stacks and counts an inversion. Reading locks
// count as writing ones: a writer that waits stops readers, too. What cannot wait
// (TryLock) adds no order before itself.
//
// The TCP/IP stack keeps an order among its locks that classes do not see (a new
// connection's before its listener's, and after it while nobody else knows it). Its
// locks are compared with the kernel's own, not among themselves.
//
// Two locks of one class are not compared: parent before child, or ascending numbers,
// is an order that only the code knows. One lock taken twice is found.

const (
	lockSiteMax  = 4096
	lockOrderMax = 16384
	lockReports  = 20 // are printed; all are counted
)

// lockOrder is sync.lockOrder.
type lockOrder struct{ class, instance uint32 }

// heldLocks is what a goroutine holds, in this order, and how many locks more for which
// there was no room. Only the goroutine uses it.
type heldLocks struct {
	n    uint32 // of lock
	more uint32
	lock [32]struct{ instance, site uint32 }
}

var locks struct {
	mu        mutex // guards all that is written, but for what goroutines hold
	instances atomic.Uint32
	sites     uint32
	inverted  uint32                         // inversions
	foreign   uint32                         // releases by a goroutine that did not hold the lock
	table     [2 * lockSiteMax]atomic.Uint32 // by a hash of the pc: a site, from 1 on
	site      [lockSiteMax]struct {
		pc      uintptr
		class   atomic.Uint32 // the site that stands for its class
		wrapper bool          // a method that locks for its caller
		foreign bool          // of the TCP/IP stack
	}
	after  [lockSiteMax][lockSiteMax / 64]atomic.Uint64 // orders between classes: a bit each
	orders uint32
	order  [lockOrderMax]struct {
		from, to uint32 // sites
		stack    [10]uintptr
	}
	wrong  [64]struct{ from, to uint32 } // inversions that were told: classes
	wrongs int
	queue  [lockSiteMax]uint32 // of a search
	came   [lockSiteMax]uint32
}

// lockSite returns the number of a call site.
func lockSite(pc uintptr) uint32 {
	h := uint32(pc*0x9e3779b97f4a7c15>>40) % uint32(len(locks.table))
	for {
		s := locks.table[h].Load()
		if s == 0 {
			break
		}
		if locks.site[s].pc == pc {
			return s
		}
		h = (h + 1) % uint32(len(locks.table))
	}
	wrapper := lockWrapper(pc)
	foreign := stringslite.HasPrefix(funcname(findfunc(pc-1)), "gvisor.dev/")
	lock(&locks.mu)
	for ; ; h = (h + 1) % uint32(len(locks.table)) { // another may have come first
		s := locks.table[h].Load()
		if s != 0 && locks.site[s].pc == pc {
			unlock(&locks.mu)
			return s
		}
		if s == 0 {
			break
		}
	}
	if locks.sites+1 >= lockSiteMax {
		throw("locks: too many call sites")
	}
	locks.sites++
	s := locks.sites
	locks.site[s].pc, locks.site[s].wrapper, locks.site[s].foreign = pc, wrapper, foreign
	locks.site[s].class.Store(s)
	locks.table[h].Store(s)
	unlock(&locks.mu)
	return s
}

// lockWrapper tells whether a function locks for its caller: a Once, a Cond.
func lockWrapper(pc uintptr) bool {
	name := funcname(findfunc(pc - 1))
	return stringslite.HasPrefix(name, "sync.") || stringslite.HasPrefix(name, "gvisor.dev/gvisor/pkg/sync.")
}

// lockCaller is the site that called a wrapper.
func lockCaller() uint32 {
	var pcs [12]uintptr
	n := callers(1, pcs[:])
	for _, pc := range pcs[:n] {
		if name := funcname(findfunc(pc - 1)); !stringslite.HasPrefix(name, "runtime.") && !lockWrapper(pc) {
			return lockSite(pc)
		}
	}
	return lockSite(pcs[0])
}

//go:linkname sync_lockTaken sync.lockTaken
func sync_lockTaken(o *lockOrder, pc uintptr, waits bool) {
	site := lockSite(pc)
	if locks.site[site].wrapper {
		site = lockCaller()
	}
	if atomic.Load(&o.class) == 0 {
		atomic.Cas(&o.instance, 0, locks.instances.Add(1))
		atomic.Cas(&o.class, 0, site)
	}
	class := locks.site[site].class.Load()
	if locks.site[atomic.Load(&o.class)].class.Load() != class {
		lockJoin(o.class, site)
		class = locks.site[site].class.Load()
	}
	held := &getg().held
	for i := range held.n {
		h := &held.lock[i]
		if !waits {
			break
		}
		if h.instance == o.instance {
			lockTwice(h.site, site)
		}
		if locks.site[site].foreign && locks.site[h.site].foreign {
			continue
		}
		before := locks.site[h.site].class.Load()
		if before != class && locks.after[before][class/64].Load()>>(class%64)&1 == 0 {
			lockAfter(h.site, site)
		}
	}
	if held.n < uint32(len(held.lock)) {
		held.lock[held.n].instance, held.lock[held.n].site = o.instance, site
		held.n++
	} else {
		held.more++
	}
}

//go:linkname sync_lockReleased sync.lockReleased
func sync_lockReleased(o *lockOrder) {
	held := &getg().held
	for i := int(held.n) - 1; i >= 0; i-- {
		if held.lock[i].instance == o.instance {
			copy(held.lock[i:], held.lock[i+1:])
			held.n--
			return
		}
	}
	if held.more > 0 {
		held.more--
		return
	}
	if atomic.Xadd(&locks.foreign, 1) <= lockReports {
		print("lock order: released by a goroutine that does not hold it\n")
		lockPrintHere()
	}
}

// lockJoin makes one class of two sites'.
func lockJoin(a, b uint32) {
	lock(&locks.mu)
	a, b = locks.site[a].class.Load(), locks.site[b].class.Load()
	if a == b {
		unlock(&locks.mu)
		return
	}
	old := lockWay(a, a) != 0 || lockWay(b, b) != 0 // told already
	// Nothing of b may be left: a way through it would be none.
	for i := range locks.after[b] {
		locks.after[a][i].Store(locks.after[a][i].Load() | locks.after[b][i].Load())
		locks.after[b][i].Store(0)
	}
	for s := uint32(1); s <= locks.sites; s++ {
		if locks.after[s][b/64].Load()>>(b%64)&1 != 0 {
			locks.after[s][a/64].Store(locks.after[s][a/64].Load() | 1<<(a%64))
			locks.after[s][b/64].Store(locks.after[s][b/64].Load() &^ (1 << (b % 64)))
		}
		if locks.site[s].class.Load() == b {
			locks.site[s].class.Store(a)
		}
	}
	// An order within the class says nothing; one around it does.
	locks.after[a][a/64].Store(locks.after[a][a/64].Load() &^ (1 << (a % 64)))
	if last := lockWay(a, a); last != 0 && !old && locks.inverted < lockReports {
		print("lock order: two places turn out to take the same lock: ")
		lockPrintSite(a)
		print(", ")
		lockPrintSite(b)
		print("\n")
		lockTell(a, a, last)
	}
	unlock(&locks.mu)
}

// lockAfter adds an order between the classes of two sites.
func lockAfter(from, to uint32) {
	var stack [10]uintptr
	callers(2, stack[:])
	lock(&locks.mu)
	a, b := locks.site[from].class.Load(), locks.site[to].class.Load()
	if a == b || locks.after[a][b/64].Load()>>(b%64)&1 != 0 || lockTold(a, b) {
		unlock(&locks.mu)
		return
	}
	if last := lockWay(b, a); last != 0 && locks.inverted >= lockReports {
		locks.inverted++
		unlock(&locks.mu)
		return
	} else if last != 0 {
		print("lock order: ")
		lockPrintSite(to)
		print(" is taken while this is held: ")
		lockPrintSite(from)
		print("\n")
		lockPrintStack(stack[:])
		lockTell(a, b, last)
		unlock(&locks.mu)
		return
	}
	locks.after[a][b/64].Store(locks.after[a][b/64].Load() | 1<<(b%64))
	if locks.orders == lockOrderMax {
		throw("locks: too many orders")
	}
	o := &locks.order[locks.orders]
	o.from, o.to, o.stack = from, to, stack
	locks.orders++
	unlock(&locks.mu)
}

// lockWay looks for orders that lead from one class to another. It returns the class
// before the last, from which locks.came leads back; 0: there is no way.
func lockWay(from, to uint32) uint32 {
	clear(locks.came[:])
	head, tail := 0, 1
	locks.queue[0] = from
	for head < tail {
		c := locks.queue[head]
		head++
		for w := range locks.after[c] {
			bits := locks.after[c][w].Load()
			for ; bits != 0; bits &= bits - 1 {
				next := uint32(w)*64 + uint32(sys.TrailingZeros64(bits))
				if next == to {
					return c
				}
				if locks.came[next] == 0 && next != from {
					locks.came[next] = c
					locks.queue[tail] = next
					tail++
				}
			}
		}
	}
	return 0
}

func lockTold(a, b uint32) bool {
	for _, w := range locks.wrong[:locks.wrongs] {
		if locks.site[w.from].class.Load() == a && locks.site[w.to].class.Load() == b {
			return true
		}
	}
	return false
}

// lockTell counts an inversion and prints the orders that lead from class b to a.
func lockTell(a, b, last uint32) {
	locks.inverted++
	if locks.wrongs < len(locks.wrong) {
		locks.wrong[locks.wrongs].from, locks.wrong[locks.wrongs].to = a, b
		locks.wrongs++
	}
	for to := a; ; {
		print("lock order: before, the other way\n")
		lockPrintOrder(last, to)
		if last == b {
			return
		}
		to, last = last, locks.came[last]
	}
}

// lockPrintOrder prints how locks of two classes came to be taken in this order.
func lockPrintOrder(a, b uint32) {
	for i := range locks.order[:locks.orders] {
		o := &locks.order[i]
		if locks.site[o.from].class.Load() == a && locks.site[o.to].class.Load() == b {
			print("\t")
			lockPrintSite(o.to)
			print(" while this was held: ")
			lockPrintSite(o.from)
			print("\n")
			lockPrintStack(o.stack[:])
			return
		}
	}
}

func lockTwice(first, again uint32) {
	lock(&locks.mu)
	a, b := locks.site[first].class.Load(), locks.site[again].class.Load()
	told := lockTold(a, b)
	if !told {
		locks.inverted++
		if locks.wrongs < len(locks.wrong) {
			locks.wrong[locks.wrongs].from, locks.wrong[locks.wrongs].to = a, b
			locks.wrongs++
		}
		print("lock order: taken twice by one goroutine: ")
		lockPrintSite(first)
		print(", ")
		lockPrintSite(again)
		print("\n")
	}
	unlock(&locks.mu)
	if !told {
		lockPrintHere()
	}
}

func lockPrintSite(site uint32) {
	pc := locks.site[site].pc - 1
	f := findfunc(pc)
	file, line := funcline(f, pc)
	print(funcname(f), " (", file, ":", line, ")")
}

func lockPrintHere() {
	var stack [10]uintptr
	callers(2, stack[:])
	lockPrintStack(stack[:])
}

func lockPrintStack(stack []uintptr) {
	for _, pc := range stack {
		f := findfunc(pc - 1)
		if pc == 0 || !f.valid() {
			continue
		}
		file, line := funcline(f, pc-1)
		print("\t\t", funcname(f), " ", file, ":", line, "\n")
	}
}

// lockCounts and lockOrderAt tell the kernel, which has variables of these names
// without values (kernel/base/checks); the linker prefers those that have some.
//
//go:linkname lockCounts hardtack/kernel/base/checks.lockCounts
var lockCounts = func() (sites, orders, inverted, foreign int) {
	lock(&locks.mu)
	sites, orders, inverted, foreign = int(locks.sites), int(locks.orders), int(locks.inverted), int(atomic.Load(&locks.foreign))
	unlock(&locks.mu)
	return
}

//go:linkname lockOrderAt hardtack/kernel/base/checks.lockOrderAt
var lockOrderAt = func(i int) (from, to uintptr) {
	o := &locks.order[i]
	return locks.site[locks.site[o.from].class.Load()].pc, locks.site[locks.site[o.to].class.Load()].pc
}
