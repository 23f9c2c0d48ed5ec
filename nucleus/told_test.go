package nucleus

import (
	"fmt"
	"strings"
	"testing"

	"hardtack/test/interleave"
)

// What move does beside those who bind the thread and who take its page away, as programs for
// the model of package interleave. CPU 1 goes on with a thread that has been told of CPU 0.

// Words of the model's memory.
const (
	modelAllowed   = iota // the mask; 0: all
	modelAway             // the processors that Away names
	modelCPU              // the thread's CPU + 1 while it runs
	modelKick             // it is to leave user mode
	modelPage             // what it was told: CPU 1, or what the page's next owner wrote
	modelBound            // SetCPUs has returned
	modelSpace            // the CPU's UserSpace: the thread's (1) or none
	modelLoaded           // what is in CR3: the thread's (1) or another
	modelLoadedGen        // its generation
	modelGen              // the space's
	modelFreed            // the page is another's
)

const nextOwner = 9

func mayRun(c *interleave.CPU) bool { a := c.Load(modelAllowed); return a == 0 || a&2 != 0 }

// mover is switchTo and move on CPU 1, and what the thread's goroutine does there if it comes
// to leave user mode. R[0] is Away, R[1] the generation.
func mover(bug string) func(*interleave.CPU) {
	const slow, user, leave = 10, 20, 30
	return func(c *interleave.CPU) {
		to := c.PC + 1
		switch c.PC {
		case 0:
			if bug == "looks at the generation first" {
				c.R[1] = c.Load(modelGen)
			}
		case 1:
			c.Swap(modelCPU, 2)
		case 2:
			c.Swap(modelSpace, 1)
		case 3:
			if c.R[0] = c.Load(modelAway); c.R[0] == 3 {
				to = leave
			}
		case 4:
			if bug != "looks at the generation first" {
				c.R[1] = c.Load(modelGen)
			}
			if c.R[1] != 0 {
				to = leave
			}
		case 5:
			if !mayRun(c) {
				to = leave
			}
		case 6:
			c.Swap(modelAway, 1)
		case 7:
			if bug != "looks at the mask once" && !mayRun(c) {
				to = slow
			}
		case 8:
			c.Store(modelPage, 1)
			to = user
		case slow:
			c.Swap(modelAway, 3)
			to = leave
		case user:
			c.Store(modelLoadedGen, c.R[1])
		case user + 1:
			c.Swap(modelLoaded, 1)
		case user + 2: // it runs
			switch to = c.PC; {
			case c.Load(modelKick) != 0:
				to = leave
			case c.Load(modelBound) != 0 && c.Load(modelFreed) != 0:
				to = interleave.End
			default:
				c.Wait()
			}
		case leave:
			c.Swap(modelKick, 0)
		case leave + 1:
			c.Swap(modelSpace, 0)
		case leave + 2:
			c.Swap(modelCPU, 0)
		case leave + 3: // RunUser
			c.Swap(modelCPU, 2)
		case leave + 4:
			c.Swap(modelSpace, 1)
		case leave + 5:
			c.R[1] = c.Load(modelGen)
		case leave + 6:
			if to = leave + 7; c.Load(modelAway)&2 == 0 {
				to = user
			}
		case leave + 7:
			c.Swap(modelSpace, 0)
		case leave + 8:
			c.Swap(modelCPU, 0)
			to = interleave.End
		}
		c.PC = to
	}
}

// binder is SetCPUs, to CPU 0.
func binder(bug string) func(*interleave.CPU) {
	return func(c *interleave.CPU) {
		to := c.PC + 1
		switch c.PC {
		case 0:
			c.Swap(modelAllowed, 1)
		case 1:
			if bug != "bars nobody" {
				c.Swap(modelAway, c.Load(modelAway)|2)
			}
		case 2:
			if c.Load(modelCPU) != 2 {
				to = 5
			}
		case 3:
			c.Swap(modelKick, 1)
		case 4:
			if to = 2; c.Load(modelCPU) == 2 && c.Load(modelKick) != 0 {
				to = c.PC
				c.Wait()
			}
		case 5:
			c.Swap(modelBound, 1)
			to = interleave.End
		}
		c.PC = to
	}
}

// taker is Invalidate, after which the page is another's.
func taker(bug string) func(*interleave.CPU) {
	return func(c *interleave.CPU) {
		to := c.PC + 1
		switch c.PC {
		case 0:
			c.Swap(modelGen, 1)
		case 1:
			if c.Load(modelSpace) != 1 {
				to = 6
			}
		case 2:
			if bug != "takes another space's generation" && c.Load(modelLoaded) != 1 {
				to = 4
			}
		case 3:
			if c.Load(modelLoadedGen) == 1 {
				to = 6
			}
		case 4:
			c.Swap(modelKick, 1)
		case 5:
			if to = 1; c.Load(modelSpace) == 1 && c.Load(modelKick) != 0 {
				to = c.PC
				c.Wait()
			}
		case 6:
			c.Swap(modelPage, nextOwner)
		case 7:
			c.Swap(modelFreed, 1)
			to = interleave.End
		}
		c.PC = to
	}
}

func TestMoveModel(t *testing.T) {
	for _, bug := range []string{"", "looks at the generation first", "looks at the mask once", "bars nobody", "takes another space's generation"} {
		start := interleave.State{}
		start.Mem[modelAway], start.Mem[modelLoadedGen] = 2, 1 // CR3 has another space, of generation 1
		r, err := interleave.Explore(interleave.Test{
			Start:    start,
			Programs: []func(*interleave.CPU){mover(bug), binder(bug), taker(bug)},
			Limit:    1_000_000,
			AtEnd: func(s *interleave.State) error {
				if s.Mem[modelCPU] == 2 {
					return fmt.Errorf("wrong: the thread runs where it may not")
				}
				if s.Mem[modelPage] != nextOwner {
					return fmt.Errorf("wrong: another's page was written to")
				}
				return nil
			},
		})
		if found := err != nil && strings.Contains(err.Error(), "wrong:"); found != (bug != "") || err != nil && !found {
			t.Errorf("one that %q: %v", bug, err)
		}
		t.Logf("%q: %d states, %d ends", bug, r.States, r.Ends)
	}
}
