package proc

import (
	"fmt"
	"strings"
	"testing"

	"hardtack/test/interleave"
)

// Restartable sequences as programs for the model of package interleave: two processors take
// turns with two threads, each of which adds 1 to the counter of its processor in a critical
// section. Both processors are interrupted twice, wherever that may be. The rules are those
// of the nucleus (enterUser: who has the x87 registers, Sequences, Away) and of settle and
// restart here. In all interleavings the counters' sum is 2.

// Words of the model's memory; those with two are by thread or by processor.
const (
	counter  = 0  // of each processor
	busyWith = 2  // threads that run (1, 2) or have ended (4, 8)
	saved    = 3  // of each thread: its program counter, value and processor's number
	area     = 5  // of each thread: the number of its processor that it has been told
	fpuCPU   = 7  // of each thread: whose processor has its x87 registers, plus 1
	owner    = 9  // of each processor: whose registers it has, plus 1
	trapped  = 11 // of each thread: an interrupt made it leave user mode
	irqs     = 13 // that are due, 16 for one of the second processor
)

type cpu = interleave.CPU

// interrupts interrupts a processor twice.
func interrupts(processor uint8) func(*cpu) {
	return func(c *cpu) {
		c.Add(irqs, 1<<(4*processor))
		c.PC = []uint8{1, interleave.End}[c.PC]
	}
}

// A thread's registers are R[1], its program counter, R[2], the counter's value, and R[3],
// the processor's number. R[0] is the thread that runs, and R[4] the last one. What only one
// processor looks at, or what is done with interrupts off, is one step.
func processor(bug string) func(*cpu) {
	return func(c *cpu) {
		me, t := uint8(c.ID), c.R[0]
		switch c.PC {
		case 0: // take a thread, another than the last one if there is one
			v := c.Load(busyWith)
			next := c.R[4] ^ 1
			if v&(5<<next) != 0 {
				next ^= 1
			}
			switch {
			case v&12 == 12:
				c.PC = interleave.End
			case v&(5<<next) != 0:
				c.Wait()
			case c.CAS(busyWith, v, v|1<<next):
				w := c.Load(saved + next)
				c.R = [interleave.Registers]uint8{next, w & 7, w >> 3 & 3, w >> 5, next}
				c.PC = 1
			}
		case 1:
			enter(c, me, t, bug)
		case 2: // settle and restart
			moved := c.Load(area+t) != me
			inside := c.R[1] >= 1 && c.R[1] < 4 || bug == "is restarted behind its end" && c.R[1] == 4
			if inside && !(moved && bug == "goes on elsewhere") {
				c.R[1], c.R[2], c.R[3] = 0, 0, 0
			}
			c.Swap(area+t, me)
			c.Swap(trapped+t, 0)
			c.PC = 1
		case 3:
			userStep(c, me, t)
		case 4: // it has left user mode
			c.Swap(saved+t, c.R[1]|c.R[2]<<3|c.R[3]<<5)
			c.Swap(trapped+t, 1)
			c.Add(busyWith, -(1 << t))
			c.R = [interleave.Registers]uint8{4: t}
			c.PC = 0
		}
	}
}

// enter is enterUser.
func enter(c *cpu, me, t uint8, bug string) {
	if c.Load(owner+me) == t+1 {
		c.PC = 3
		return
	}
	if o := c.Load(owner + me); o != 0 && bug != "keeps the registers of the last one" { // giveUpFPU
		c.Swap(owner+me, 0)
		c.Swap(fpuCPU+o-1, 0)
	}
	if at := c.Load(fpuCPU + t); at != 0 { // fetchFPU; the other's handler runs between its steps
		if bug != "leaves the registers behind" {
			c.Swap(owner+at-1, 0)
		}
		c.Swap(fpuCPU+t, 0)
	}
	moved, stopped := c.Load(area+t) != me, c.Load(trapped+t) == 1
	if moved && bug != "keeps its number" || stopped && bug != "goes on behind another" {
		c.PC = 2
		return
	}
	if bug != "keeps the registers of the last one" || c.Load(owner+me) == 0 {
		c.Swap(owner+me, t+1)
	}
	c.Swap(fpuCPU+t, me+1)
	c.PC = 3
}

// userStep is a step in user mode, or an interrupt.
func userStep(c *cpu, me, t uint8) {
	if c.Load(irqs)>>(4*me)&15 != 0 {
		c.Add(irqs, -(1 << (4 * me)))
		c.PC = 4
		return
	}
	switch c.R[1] {
	case 0:
		c.R[3] = c.Load(area + t)
		c.R[1] = 1
	case 1:
		if c.R[1] = 2; c.Load(area+t) != c.R[3] {
			c.R[1] = 0
		}
	case 2:
		c.R[2] = c.Load(counter + c.R[3])
		c.R[1] = 3
	case 3:
		c.Store(counter+c.R[3], c.R[2]+1)
		c.R[1] = 4
	case 4:
		c.Add(busyWith, 4<<t-1<<t)
		c.R = [interleave.Registers]uint8{4: t}
		c.PC = 0
	}
}

func TestSequencesModel(t *testing.T) {
	for _, bug := range []string{"", "goes on behind another", "goes on elsewhere", "keeps its number", "leaves the registers behind",
		"keeps the registers of the last one", "is restarted behind its end"} {
		r, err := interleave.Explore(interleave.Test{
			Programs: []func(*cpu){processor(bug), processor(bug), interrupts(0), interrupts(1)},
			Limit:    2_000_000,
			AtEnd: func(s *interleave.State) error {
				if sum := s.Mem[counter] + s.Mem[counter+1]; sum != 2 {
					return fmt.Errorf("the counters' sum is %d", sum)
				}
				return nil
			},
		})
		if found := err != nil && strings.Contains(err.Error(), "the counters' sum"); found != (bug != "") || err != nil && !found {
			t.Errorf("a thread that %q: %v", bug, err)
		}
		if bug == "" && r.States < 500 {
			t.Errorf("only %d states", r.States)
		}
		t.Logf("%q: %d states, %d ends, %v", bug, r.States, r.Ends, err != nil)
	}
}
