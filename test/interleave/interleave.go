// Package interleave walks through all interleavings of a few short programs on a
// model of an amd64 machine: memory, a store buffer for each thread, locked
// instructions, hardware transactions. Tests of lock protocols use it.
//
// A program is a function that performs one step of a thread: at most one access of
// memory, and what goes with it in registers. The explorer copies the state, lets
// one thread take a step in the copy, and goes on from every state that it has not
// met before. Besides the programs' steps there are the machine's: the oldest store
// of a buffer becomes visible, and a transaction aborts for no reason.
//
// The memory is x86-TSO (Owens, Sarkar, Sewell, A better x86 memory model, 2009): a
// thread's loads see its own buffered stores, others see them when they leave the
// buffer, in order; locked instructions happen at once, with an empty buffer. A
// transaction keeps its stores until it commits, all at once; it aborts when
// another thread's store to what it has read or written becomes visible, or another
// thread reads what it has written.
package interleave

import (
	"fmt"
	"slices"
	"strings"
)

// Sizes of a state. Larger is slower.
const (
	Words     = 14
	Threads   = 4
	Registers = 6
	Buffered  = 4
)

// End is the program counter of a thread that is done.
const End = 255

// Thread is one thread of a state.
type Thread struct {
	PC  uint8
	R   [Registers]uint8
	buf [Buffered]struct{ addr, value uint8 }
	n   uint8

	// A transaction: its sets of words as bits, and what an abort restores.
	inTxn         bool
	reads, writes uint16
	handler       uint8
	saved         [Registers]uint8
	retries       uint8 // how often it may still abort for no reason
}

// State is a state of the machine.
type State struct {
	Mem [Words]uint8
	T   [Threads]Thread
}

// CPU is a thread that takes one step. Its program says the next PC.
type CPU struct {
	*Thread
	ID      int
	s       *State
	blocked bool
}

// Load is a load of a word.
func (c *CPU) Load(addr uint8) uint8 {
	for i := int(c.n) - 1; i >= 0; i-- {
		if c.buf[i].addr == addr {
			return c.buf[i].value
		}
	}
	if c.inTxn {
		c.reads |= 1 << addr
	}
	c.s.touch(c.ID, addr, false)
	return c.s.Mem[addr]
}

// Store is a plain store.
func (c *CPU) Store(addr, value uint8) {
	if c.inTxn {
		c.writes |= 1 << addr
		c.s.touch(c.ID, addr, true)
	}
	if c.n == Buffered {
		c.blocked = true
		return
	}
	c.buf[c.n].addr, c.buf[c.n].value = addr, value
	c.n++
}

// Swap is XCHG. It waits until the buffer is empty.
func (c *CPU) Swap(addr, value uint8) (old uint8) {
	if c.inTxn {
		old = c.Load(addr)
		c.Store(addr, value)
		return old
	}
	if c.n > 0 {
		c.blocked = true
		return 0
	}
	c.s.touch(c.ID, addr, true)
	old, c.s.Mem[addr] = c.s.Mem[addr], value
	return old
}

// Add is LOCK XADD, modulo 256.
func (c *CPU) Add(addr, delta uint8) (old uint8) {
	old = c.Load(addr)
	c.Swap(addr, old+delta)
	return old
}

// CAS is LOCK CMPXCHG.
func (c *CPU) CAS(addr, old, value uint8) bool {
	now := c.Load(addr)
	if now != old {
		value = now // it writes what was there
	}
	c.Swap(addr, value)
	return now == old
}

// Wait says that the step cannot be taken in this state: a turn of a wait loop that
// changes nothing.
func (c *CPU) Wait() { c.blocked = true }

// Barrier waits until the stores of another thread are visible that it has made so
// far: the part of membarrier(2) that concerns this thread.
func (c *CPU) Barrier(thread int) {
	if t := &c.s.T[thread]; t.n > 0 && !t.inTxn {
		c.blocked = true
	}
}

// Statuses of aborts, in register 0 of the handler.
const (
	Conflict = 1 // another thread
	Spurious = 2 // no reason
	Explicit = 3 // XAbort
)

// XBegin begins a transaction whose aborts go to handler, with the registers as
// they are now but R[0], the status. It waits until the buffer is empty: a commit
// orders as a locked instruction does.
func (c *CPU) XBegin(handler uint8) {
	if c.n > 0 {
		c.blocked = true
		return
	}
	c.inTxn, c.handler, c.saved, c.reads, c.writes = true, handler, c.R, 0, 0
}

// XEnd commits.
func (c *CPU) XEnd() {
	for _, b := range c.buf[:c.n] {
		c.s.Mem[b.addr] = b.value
	}
	c.clear()
}

// XAbort aborts by the program's wish.
func (c *CPU) XAbort() { c.abort(Explicit) }

// XTest tells whether the thread is in a transaction.
func (c *CPU) XTest() bool { return c.inTxn }

func (t *Thread) clear() {
	t.n, t.inTxn, t.reads, t.writes, t.handler = 0, false, 0, 0, 0
	t.buf = [Buffered]struct{ addr, value uint8 }{}
	t.saved = [Registers]uint8{}
}

func (t *Thread) abort(status uint8) {
	t.PC, t.R = t.handler, t.saved
	t.R[0] = status
	t.clear()
}

// touch aborts the transactions of others that an access meets.
func (s *State) touch(by int, addr uint8, write bool) {
	for i := range s.T {
		t := &s.T[i]
		if i != by && t.inTxn && (t.writes>>addr&1 == 1 || write && t.reads>>addr&1 == 1) {
			t.abort(Conflict)
		}
	}
}

// Test is what Explore checks.
type Test struct {
	Start    State
	Programs []func(*CPU)
	Spurious uint8                             // aborts without reason, for each thread
	Always   func(*State) error                // in every state; may be nil
	AtEnd    func(*State) error                // where all threads are done
	Limit    int                               // states; more are an error
	Names    func(thread int, pc uint8) string // for traces; may be nil
}

// Result counts what was walked through.
type Result struct{ States, Ends int }

type node struct {
	from   int32
	by     int8
	what   uint8
	before []int32 // all states one step before
}

const (
	step uint8 = iota
	flush
	spurious
)

// Explore walks through all states. It fails if a check fails, if no thread can go
// on though not all are done, and if there is a state from which no end can be
// reached any more; the error has the steps that lead there.
func Explore(t Test) (Result, error) {
	for i := range t.Programs {
		t.Start.T[i].retries = t.Spurious
	}
	for i := len(t.Programs); i < Threads; i++ {
		t.Start.T[i].PC = End
	}
	ids := map[State]int32{t.Start: 0}
	states := []State{t.Start}
	nodes := []node{{from: -1}}
	var ends []int32
	for id := int32(0); int(id) < len(states); id++ {
		s := states[id]
		if t.Always != nil {
			if err := t.Always(&s); err != nil {
				return Result{}, t.explain(nodes, states, id, err)
			}
		}
		done, moved := true, false
		add := func(next State, by int, what uint8) {
			moved = true
			to, known := ids[next]
			if !known {
				to = int32(len(states))
				ids[next] = to
				states = append(states, next)
				nodes = append(nodes, node{from: id, by: int8(by), what: what})
			}
			if to != id {
				nodes[to].before = append(nodes[to].before, id)
			}
		}
		for i := range t.Programs {
			th := &s.T[i]
			if th.PC != End || th.n > 0 {
				done = false
			}
			if th.PC != End {
				next := s
				c := CPU{Thread: &next.T[i], ID: i, s: &next}
				t.Programs[i](&c)
				if !c.blocked {
					add(next, i, step)
				}
			}
			if th.n > 0 && !th.inTxn {
				next := s
				n := &next.T[i]
				first := n.buf[0]
				copy(n.buf[:], n.buf[1:])
				n.n--
				n.buf[n.n] = struct{ addr, value uint8 }{}
				next.touch(i, first.addr, true)
				next.Mem[first.addr] = first.value
				add(next, i, flush)
			}
			if th.inTxn && th.retries > 0 {
				next := s
				next.T[i].retries--
				next.T[i].abort(Spurious)
				add(next, i, spurious)
			}
		}
		if done {
			ends = append(ends, id)
			if err := t.AtEnd(&s); err != nil {
				return Result{}, t.explain(nodes, states, id, err)
			}
		} else if !moved {
			return Result{}, t.explain(nodes, states, id, fmt.Errorf("nobody can go on"))
		}
		if len(states) > t.Limit {
			return Result{}, fmt.Errorf("more than %d states", t.Limit)
		}
	}
	if id := endless(nodes, ends); id >= 0 {
		return Result{}, t.explain(nodes, states, id, fmt.Errorf("no end can be reached"))
	}
	return Result{States: len(states), Ends: len(ends)}, nil
}

// endless returns a state from which no end can be reached, -1 if there is none. It goes
// backwards from the ends: who is not met can only go round for ever.
func endless(nodes []node, ends []int32) int32 {
	reach := make([]bool, len(nodes))
	queue := ends
	for _, e := range ends {
		reach[e] = true
	}
	for len(queue) > 0 {
		id := queue[len(queue)-1]
		queue = queue[:len(queue)-1]
		for _, b := range nodes[id].before {
			if !reach[b] {
				reach[b] = true
				queue = append(queue, b)
			}
		}
	}
	return int32(slices.Index(reach, false))
}

func (t *Test) explain(nodes []node, states []State, id int32, err error) error {
	var lines []string
	for i := id; i > 0; i = nodes[i].from {
		n := nodes[i]
		pc := states[n.from].T[n.by].PC
		name := fmt.Sprint(pc)
		if t.Names != nil {
			name = t.Names(int(n.by), pc)
		}
		switch n.what {
		case flush:
			name = "buffer"
		case spurious:
			name = "abort"
		}
		lines = append(lines, fmt.Sprintf("%d:%s", n.by, name))
	}
	for i, j := 0, len(lines)-1; i < j; i, j = i+1, j-1 {
		lines[i], lines[j] = lines[j], lines[i]
	}
	s := states[id]
	return fmt.Errorf("%w\nafter %s\nmemory %v", err, strings.Join(lines, " "), s.Mem)
}
