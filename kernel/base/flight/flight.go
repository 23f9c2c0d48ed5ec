// Package flight is the flight recorder: what the kernel did in the last seconds, in memory,
// for who asks and for the last words of a kernel that panics.
//
// Go's scheduler writes down which goroutine ran from when to when (wait.Lane, one for each
// P). Here are the system calls that the kernel measures anyway, one in many, or all of them
// while somebody asks for that, and interrupts. Collections are in the runtime's own figures.
//
// A ring is written without a lock: a writer takes the next number and fills the record of
// that number. Who reads at the same time leaves out what may just be overwritten. A record
// whose writer was interrupted for a whole round is wrong; nothing but a line of a report
// depends on it.
package flight

import (
	"sync/atomic"

	"hardtack/kernel/base/wait"
)

// Kind says what a record is of.
type Kind uint8

// Kinds. Code, ID and Value of a record are
const (
	Call      Kind = 1 + iota // a call's number, the thread, for how many ticks it took
	Interrupt                 // a line's number
)

// Record is one event.
type Record struct {
	When  int64 // ticks of the time-stamp counter, at the end of what took long
	Kind  Kind
	Code  uint32 // 24 bits
	ID    int32
	Value uint64
}

type record struct{ when, what, value uint64 }

// ring has a number of records that is a power of two.
type ring struct {
	next    atomic.Uint64
	records []record
}

const (
	rings  = 4   // threads use that of their number, so that CPUs rarely write the same line
	length = 512 // of each
)

var (
	usual [rings]ring
	// all is where every call is written down, while somebody wants that.
	all atomic.Pointer[ring]
	// lanes are the scheduler's, by P.
	lanes []*wait.Lane
)

// Start begins to record, for so many Ps; called once, before there are threads.
func Start(processors int) {
	for i := range usual {
		usual[i].records = make([]record, length)
	}
	for p := range processors {
		lanes = append(lanes, wait.NewLane(p))
	}
}

// Note records what happened to the thread id.
func Note(kind Kind, code uint32, id int32, when int64, value uint64) {
	usual[uint32(id)%rings].note(kind, code, id, when, value)
}

func (r *ring) note(kind Kind, code uint32, id int32, when int64, value uint64) {
	n := uint64(len(r.records))
	if n == 0 {
		return // before Start
	}
	p := &r.records[(r.next.Add(1)-1)&(n-1)]
	p.put(uint64(when), uint64(kind)<<56|uint64(code&(1<<24-1))<<32|uint64(uint32(id)), value)
}

// NoteCall records a call where all of them are wanted.
func NoteCall(nr uint32, id int32, when int64, ticks uint64) {
	if r := all.Load(); r != nil {
		r.note(Call, nr, id, when, ticks)
	}
}

// allLength is how many calls are kept while all are wanted.
const allLength = 1 << 16

// AllBytes is how much memory that takes.
const AllBytes = allLength * 24

// All begins to record every call that NoteCall is told of, or stops that.
func All(on bool) {
	if !on {
		all.Store(nil)
		return
	}
	r := new(ring)
	r.records = make([]record, allLength)
	all.Store(r)
}

// Records returns what is in the rings, in no order.
func Records() (list []Record) {
	for i := range usual {
		list = usual[i].last(list)
	}
	if r := all.Load(); r != nil {
		list = r.last(list)
	}
	return list
}

func (r *ring) last(list []Record) []Record {
	size := uint64(len(r.records))
	n := r.next.Load()
	first := n - min(n, size)
	at := len(list)
	for i := first; i != n; i++ {
		list = append(list, r.records[i&(size-1)].get())
	}
	if over := r.next.Load() + 1; over > size && over-size > first && over != n+1 {
		list = append(list[:at], list[at+int(min(over-size-first, n-first)):]...)
	}
	return list
}

// Runs calls f with what each P ran last, the oldest first.
func Runs(f func(processor int, runs []wait.Run)) {
	for p, l := range lanes {
		f(p, l.Last(nil, wait.LaneRuns))
	}
}

// lastWords is how many records a panic prints of all rings together.
const lastWords = 1024

// LastWords calls f with the words of the last records: where they are from ('c' a ring, 'r'
// a P's lane, with its number), and three words each. It allocates nothing and takes no lock.
func LastWords(f func(kind byte, lane int, a, b, c uint64)) {
	each := lastWords / (rings + max(len(lanes), 1))
	for i := range usual {
		r := &usual[i]
		size := uint64(len(r.records))
		n := r.next.Load()
		for j := n - min(n, size, uint64(each)); j != n; j++ {
			p := &r.records[j&(size-1)]
			f('c', i, p.when, p.what, p.value)
		}
	}
	for p, l := range lanes {
		l.Raw(each, func(from, to, who uint64) { f('r', p, from, to, who) })
	}
}
