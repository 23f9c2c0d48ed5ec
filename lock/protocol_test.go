package lock

import (
	"fmt"
	"strings"
	"testing"

	"hardtack/test/interleave"
)

// The protocols of the locks as programs for the model of package interleave, one
// step for each access of shared memory. Each thread adds 1 to a counter in its
// critical sections, by a load and a later store: at the end it must be the number
// of sections. Wrong variants, with one step of the argument left out, must be
// noticed.

type cpu = interleave.CPU

const end = interleave.End

// section is a critical section: two steps from PC at, then PC then.
func section(c *cpu, counter, at, then uint8, reg int) {
	if c.PC == at {
		c.R[reg] = c.Load(counter)
		c.PC = at + 1
	} else {
		c.Store(counter, c.R[reg]+1)
		c.PC = then
	}
}

func explore(t *testing.T, name, bug string, test interleave.Test) {
	t.Helper()
	test.Limit = 3_000_000
	r, err := interleave.Explore(test)
	switch {
	case bug == "" && err != nil:
		t.Errorf("%s: %v", name, err)
	case bug == "":
		t.Logf("%s: %d states, %d ends", name, r.States, r.Ends)
		if r.States < 200 {
			t.Errorf("%s: only %d states", name, r.States)
		}
	case err == nil:
		t.Errorf("%s that %s passes", name, bug)
	case strings.Contains(err.Error(), "more than"):
		t.Errorf("%s that %s: %v", name, bug, err)
	}
}

func counted(counter uint8, want func(*interleave.State) uint8) func(*interleave.State) error {
	return func(s *interleave.State) error {
		if got := s.Mem[counter]; got != want(s) {
			return fmt.Errorf("%d sections were counted, there were %d", got, want(s))
		}
		return nil
	}
}

// CLH with its pool: R[0] own node, R[1] predecessor, R[3] sections left, R[4] next
// fresh node, R[5] for later; for TryLock the successes. Nodes are addresses.
func TestCLHProtocol(t *testing.T) {
	const tail, triers, counter = 0, 1, 2
	locker := func(bug string) func(*cpu) {
		return func(c *cpu) {
			switch c.PC {
			case 0:
				c.Store(c.R[0], 1)
				c.PC = 1
			case 1:
				if bug == "enters the queue by a load and a store" {
					c.R[1] = c.Load(tail)
					c.PC = 10
					return
				}
				c.R[1] = c.Swap(tail, c.R[0])
				c.PC = 2
			case 10:
				c.Store(tail, c.R[0])
				c.PC = 2
			case 2:
				if c.R[1] == 0 {
					c.R[5] = c.R[4]
					c.R[4]++
					c.PC = 4
				} else if c.Load(c.R[1]) != 0 {
					c.Wait()
				} else {
					c.PC = 3
				}
			case 3:
				if c.Load(triers) == 0 || bug == "uses nodes again while somebody tries" {
					c.R[5] = c.R[1]
				} else {
					c.R[5] = c.R[4]
					c.R[4]++
				}
				c.PC = 4
			case 4, 5:
				section(c, counter, 4, 6, 2)
			case 6:
				c.Store(c.R[0], 0)
				c.R[0] = c.R[5]
				c.PC = 0
				if c.R[3]--; c.R[3] == 0 {
					c.PC = end
				}
			}
		}
	}
	trier := func(bug string) func(*cpu) {
		return func(c *cpu) {
			switch c.PC {
			case 0:
				c.Add(triers, 1)
				c.PC = 1
			case 1:
				c.R[1] = c.Load(tail)
				c.PC = 2
			case 2:
				c.PC = 3
				if c.R[1] != 0 && c.Load(c.R[1]) != 0 {
					c.R[2] = 0
					c.PC = 5
				}
			case 3:
				c.Store(c.R[0], 1)
				c.PC = 4
			case 4:
				c.R[2] = 0
				if c.CAS(tail, c.R[1], c.R[0]) {
					c.R[2] = 1
				}
				c.PC = 5
			case 5:
				c.Add(triers, 255)
				if c.PC = 8; c.R[2] == 1 {
					c.R[5]++
					c.PC = 6
				}
			case 6, 7:
				section(c, counter, 6, 9, 2)
			case 9:
				c.Store(c.R[0], 0)
				c.R[0] = c.R[4]
				c.R[4]++
				c.PC = 8
			case 8:
				c.PC = 0
				if c.R[3]--; c.R[3] == 0 {
					c.PC = end
				}
			}
		}
	}
	for _, bug := range []string{"", "enters the queue by a load and a store", "uses nodes again while somebody tries"} {
		var s interleave.State
		s.T[0].R = [6]uint8{3, 0, 0, 2, 4, 0} // nodes 3, 4, 5
		s.T[1].R = [6]uint8{6, 0, 0, 2, 7, 0} // 6, 7, 8
		s.T[2].R = [6]uint8{9, 0, 0, 1, 10, 0}
		want := uint8(4)
		if strings.HasPrefix(bug, "enters") { // one each shows it, two take long
			s.T[0].R[3], s.T[1].R[3], want = 1, 1, 2
		}
		explore(t, "CLH, two that lock and one that tries", bug, interleave.Test{Start: s,
			Programs: []func(*cpu){locker(bug), locker(bug), trier(bug)},
			AtEnd:    counted(counter, func(s *interleave.State) uint8 { return want + s.T[2].R[5] })})
	}
	var s interleave.State
	s.T[0].R = [6]uint8{3, 0, 0, 2, 4, 0}
	s.T[1].R = [6]uint8{6, 0, 0, 1, 7, 0}
	s.T[2].R = [6]uint8{8, 0, 0, 1, 9, 0}
	s.T[3].R = [6]uint8{10, 0, 0, 1, 11, 0}
	explore(t, "CLH, four", "", interleave.Test{Start: s,
		Programs: []func(*cpu){locker(""), locker(""), locker(""), locker("")},
		AtEnd:    counted(counter, func(*interleave.State) uint8 { return 5 })})
}

// CoreQueue: R[0] the core's next node, R[1] its turn, R[2] what was in tail, R[3]
// sections left, R[5] own word in tail or, for TryAcquire, successes. Words of the
// queue are turn*8 + node.
func TestCoreQueueProtocol(t *testing.T) {
	const tail, counter, nodes = 0, 1, 2
	core := func(bug string, try bool) func(*cpu) {
		return func(c *cpu) {
			switch c.PC {
			case 0: // TryAcquire
				if !try {
					c.R[2] = c.Swap(tail, (c.R[1]+1)*8+c.R[0])
					c.PC = 3
					return
				}
				c.R[2] = c.Load(tail)
				c.PC = 1
			case 1:
				if c.PC = 2; c.Load(nodes+c.R[2]%8) != c.R[2]/8 {
					c.PC = 8
				}
			case 2:
				if c.PC = 8; c.CAS(tail, c.R[2], (c.R[1]+1)*8+c.R[0]) {
					c.R[5]++
					c.PC = 4
				}
			case 3:
				if c.Load(nodes+c.R[2]%8) != c.R[2]/8 && bug != "does not wait" {
					c.Wait()
				} else {
					c.PC = 4
				}
			case 4, 5:
				section(c, counter, 4, 6, 4)
			case 6:
				c.Store(nodes+c.R[0], c.R[1]+1)
				c.R[0], c.R[1] = c.R[2]%8, c.R[2]/8
				c.R[2], c.R[4] = 0, 0
				if bug == "keeps its turn" {
					c.R[1] = 0
				}
				c.PC = 8
			case 8:
				c.R[2], c.PC = 0, 0
				if c.R[3]--; c.R[3] == 0 {
					c.PC = end
				}
			}
		}
	}
	for _, bug := range []string{"", "does not wait", "keeps its turn"} {
		var s interleave.State
		for i := range s.T {
			s.T[i].R[0], s.T[i].R[3] = uint8(i+1), 2
		}
		s.T[1].R[3] = 1
		explore(t, "CoreQueue, two that acquire and one that tries", bug, interleave.Test{Start: s,
			Programs: []func(*cpu){core(bug, false), core(bug, false), core(bug, true)},
			AtEnd:    counted(counter, func(s *interleave.State) uint8 { return 3 + s.T[2].R[5] })})
	}
}

// Ticket: R[0] own ticket, R[3] sections left, R[5] successes of TryLock.
func TestTicketProtocol(t *testing.T) {
	const next, serving, counter = 0, 1, 2
	program := func(bug string, try bool) func(*cpu) {
		return func(c *cpu) {
			switch c.PC {
			case 0:
				if try {
					c.R[0] = c.Load(serving)
					c.PC = 1
				} else if bug == "draws by a load and a store" {
					c.R[0] = c.Load(next)
					c.PC = 9
				} else {
					c.R[0] = c.Add(next, 1)
					c.PC = 2
				}
			case 9:
				c.Store(next, c.R[0]+1)
				c.PC = 2
			case 1:
				if c.PC = 7; c.CAS(next, c.R[0], c.R[0]+1) {
					c.R[5]++
					c.PC = 3
				}
			case 2:
				if c.Load(serving) != c.R[0] {
					c.Wait()
				} else {
					c.PC = 3
				}
			case 3, 4:
				if bug == "serves the next before the section" && c.PC == 3 {
					c.Store(serving, c.R[0]+1)
				}
				section(c, counter, 3, 5, 1)
			case 5:
				c.Store(serving, c.R[0]+1)
				c.PC = 7
			case 7:
				c.R[0], c.R[1], c.PC = 0, 0, 0
				if c.R[3]--; c.R[3] == 0 {
					c.PC = end
				}
			}
		}
	}
	for _, bug := range []string{"", "draws by a load and a store", "serves the next before the section"} {
		var s interleave.State
		for i := range s.T {
			s.T[i].R[3] = 2
		}
		explore(t, "Ticket, two that lock and one that tries", bug, interleave.Test{Start: s,
			Programs: []func(*cpu){program(bug, false), program(bug, false), program(bug, true)},
			AtEnd: counted(counter, func(s *interleave.State) uint8 {
				return 4 + s.T[2].R[5]
			})})
	}
}

// BigReader: readers compare two words that a writer changes together; R[5] is set
// when they differ. The writers' own lock is a compare-and-swap here.
func TestBigReaderProtocol(t *testing.T) {
	const writing, writers, x, y, in = 0, 1, 2, 3, 4
	mark := func(c *cpu, addr uint8, plain bool) {
		if plain {
			c.Store(addr, 1)
		} else {
			c.Swap(addr, 1)
		}
	}
	asymmetric := false
	reader := func(bug string, try bool) func(*cpu) {
		return func(c *cpu) {
			mine := uint8(in + c.ID)
			switch c.PC {
			case 0:
				mark(c, mine, bug == "marks readers by a plain store" || asymmetric)
				c.PC = 1
			case 1:
				if c.PC = 4; c.Load(writing) != 0 && bug != "does not look for a writer" {
					c.PC = 2
				}
			case 2:
				c.Store(mine, 0)
				if c.PC = 3; try {
					c.PC = 7
				}
			case 3:
				if c.Load(writing) != 0 {
					c.Wait()
				} else {
					c.PC = 0
				}
			case 4:
				c.R[0] = c.Load(x)
				c.PC = 5
			case 5:
				if c.Load(y) != c.R[0] {
					c.R[5] = 1
				}
				c.PC = 6
			case 6:
				c.Store(mine, 0)
				c.PC = 7
			case 7:
				c.R[0] = 0
				c.PC = 0
				if c.R[3]--; c.R[3] == 0 {
					c.PC = end
				}
			}
		}
	}
	writer := func(bug string, try bool) func(*cpu) {
		return func(c *cpu) {
			switch c.PC {
			case 0:
				if c.Load(writers) != 0 {
					c.Wait()
				} else {
					c.PC = 1
				}
			case 1:
				if c.PC = 0; c.CAS(writers, 0, 1) {
					c.PC = 2
				}
			case 2:
				mark(c, writing, bug == "marks writers by a plain store")
				if c.PC, c.R[1] = 3, 0; asymmetric {
					c.PC = 8
				}
			case 8, 9: // the barrier, a thread at a time
				c.Barrier(int(c.PC - 8))
				if c.PC++; c.PC == 10 {
					c.PC = 3
				}
			case 3: // R[1] is the reader looked at
				switch {
				case c.R[1] == 2:
					c.PC = 4
					c.R[0] = c.Load(x)
				case c.Load(in+c.R[1]) == 0 || bug == "does not wait for readers":
					c.R[1]++
				case try:
					c.PC, c.R[1] = 6, 0
				default:
					c.Wait()
				}
			case 4:
				c.Store(x, c.R[0]+1)
				c.PC = 5
			case 5:
				c.Store(y, c.R[0]+1)
				c.PC = 6
			case 6:
				c.Store(writing, 0)
				c.PC = 7
			case 7:
				c.Store(writers, 0)
				c.R[0], c.R[1], c.PC = 0, 0, 0
				if c.R[3]--; c.R[3] == 0 {
					c.PC = end
				}
			}
		}
	}
	for _, bug := range []string{"", "marks readers by a plain store", "marks writers by a plain store",
		"does not look for a writer", "does not wait for readers", "asymmetric", "asymmetric, marks writers by a plain store"} {
		bug, asymmetric = strings.TrimPrefix(strings.TrimPrefix(bug, "asymmetric"), ", "), strings.HasPrefix(bug, "asymmetric")
		var s interleave.State
		for i := range s.T {
			s.T[i].R[3] = 1
		}
		s.T[0].R[3] = 2
		whole := func(s *interleave.State) error {
			if s.T[0].R[5]+s.T[1].R[5] != 0 {
				return fmt.Errorf("a reader saw half of a change")
			}
			return nil
		}
		explore(t, "BigReader, two readers (one tries), two writers (one tries)", bug, interleave.Test{Start: s,
			Programs: []func(*cpu){reader(bug, false), reader(bug, true), writer(bug, false), writer(bug, true)},
			Always:   whole, AtEnd: whole})
	}
}

// Elision: R[0] status, R[2] for the section, R[3] sections left, R[4] tries. In the
// form of CoreElided a queue, here a compare-and-swap, is acquired before held.
func TestElisionProtocol(t *testing.T) {
	const word, queue, counter, other = 0, 1, 2, 3
	program := func(bug string, cores bool) func(*cpu) {
		return func(c *cpu) {
			switch c.PC {
			case 0:
				c.XBegin(10)
				c.PC = 1
			case 1:
				c.PC = 2
				if bug != "does not read the word" && c.Load(word) != 0 {
					c.XAbort()
				}
			case 2, 3:
				section(c, counter, 2, 4, 2)
			case 4: // Unlock, or for a core what Acquire has returned
				c.PC = 5
				if !cores && c.Load(word) != 0 {
					c.R[5] = 1
				}
			case 5:
				c.XEnd()
				c.PC = 20
			case 10:
				held := c.R[0] == interleave.Explicit
				if c.R[4]++; c.R[4] >= 2 || c.R[0] == interleave.Spurious {
					c.PC = 12
				} else if c.PC = 0; held {
					c.PC = 11
				}
				c.R[0] = 0
			case 11:
				if c.Load(word) != 0 {
					c.Wait()
				} else {
					c.PC = 0
				}
			case 12:
				lock := uint8(word)
				if cores {
					lock = queue
				}
				if c.PC = 13; c.Load(lock) != 0 {
					c.Wait()
				}
			case 13:
				switch {
				case !cores && bug == "takes the word by a load and a store":
					c.Store(word, 1)
					c.PC = 15
				case !cores:
					if c.PC = 12; c.CAS(word, 0, 1) {
						c.PC = 15
					}
				default:
					if c.PC = 12; c.CAS(queue, 0, 1) {
						c.PC = 14
					}
				}
			case 14:
				if bug == "marks the word by a plain store" {
					c.Store(word, 1)
				} else {
					c.Swap(word, 1)
				}
				c.PC = 15
			case 15, 16:
				section(c, counter, 15, 17, 2)
			case 17:
				c.Store(word, 0)
				if c.PC = 20; cores {
					c.PC = 18
				}
			case 18:
				c.Store(queue, 0)
				c.PC = 20
			case 20:
				c.R[2], c.R[4], c.PC = 0, 0, 0
				if c.R[3]--; c.R[3] == 0 {
					c.PC = end
				}
			}
		}
	}
	for _, v := range []struct {
		bug   string
		cores bool
	}{
		{"", false}, {"", true},
		{"does not read the word", false}, {"does not read the word", true},
		{"takes the word by a load and a store", false},
		{"marks the word by a plain store", true},
	} {
		p := program(v.bug, v.cores)
		for _, run := range []struct {
			threads int
			each    uint8
		}{{3, 1}, {2, 2}} {
			var s interleave.State
			for i := range s.T {
				s.T[i].R[3] = run.each
			}
			name := fmt.Sprintf("Elided, %d threads", run.threads)
			if v.cores {
				name = "Core" + name
			}
			explore(t, name, v.bug, interleave.Test{Start: s, Spurious: 1,
				Programs: []func(*cpu){p, p, p}[:run.threads],
				AtEnd: func(s *interleave.State) error {
					for i := range s.T {
						if s.T[i].R[5] != 0 {
							return fmt.Errorf("a transaction found the word set when it was to end")
						}
					}
					return counted(counter, func(*interleave.State) uint8 { return uint8(run.threads) * run.each })(s)
				}})
		}
	}
}
