package ipc

import (
	"fmt"
	"strings"
	"testing"

	"hardtack/test/interleave"
)

// How a caller of control fine blocks without its own lock, as programs for the
// model of package interleave: core 0 publishes that its thread waits for a reply and
// looks for another to run, core 1 is the server that replies, core 2 cancels. In
// all interleavings the caller must be woken once, run, and know by whom.
func TestBlockAndWake(t *testing.T) {
	const where, thread, queueLock, queued, idle, ipi, result, message = 0, 1, 2, 3, 4, 5, 6, 7
	const ready, replying = 0, 1
	type cpu = interleave.CPU
	lock := func(c *cpu, addr, then uint8) {
		if c.Load(addr) != 0 || !c.CAS(addr, 0, 1) {
			c.Wait()
		}
		c.PC = then
	}
	caller := func(bug string) func(*cpu) {
		late := bug == "is published after the receiver can run"
		return func(c *cpu) {
			switch c.PC {
			case 0:
				c.PC = 1
				if late {
					c.Store(message, 1)
				} else {
					c.Store(where, replying)
				}
			case 1:
				c.PC = 2
				if late {
					c.Store(where, replying)
				} else {
					c.Store(message, 1) // the receiver's lock is released
				}
			case 2: // schedule
				if bug == "looks for work without the queue's lock" {
					c.PC = 3
					return
				}
				lock(c, queueLock, 3)
			case 3:
				c.R[0] = c.Load(queued)
				if c.PC = 4; c.R[0] == 1 {
					c.PC = 5
				}
			case 4:
				c.Store(idle, 1)
				c.PC = 6
			case 5:
				c.Store(queued, 0)
				c.PC = 6
			case 6:
				c.Store(queueLock, 0)
				if c.PC = 7; c.R[0] == 1 {
					c.PC = 8
				}
			case 7: // idle until the interrupt, then schedule again
				if c.Load(ipi) == 0 {
					c.Wait()
				}
				c.PC = 2
			case 8: // the caller runs
				c.R[1] = c.Load(result)
				c.PC = interleave.End
			}
		}
	}
	waker := func(bug string, value uint8) func(*cpu) {
		cancels := value == 2
		return func(c *cpu) {
			switch c.PC {
			case 0:
				if cancels {
					lock(c, thread, 1)
				} else if c.Load(message) == 0 {
					c.Wait()
				} else {
					c.PC = 3
				}
			case 1: // ask the thread first
				c.R[0] = c.Load(where)
				c.PC = 2
			case 2:
				c.Store(thread, 0)
				if c.PC = 3; c.R[0] != replying {
					c.PC = interleave.End
				}
			case 3:
				lock(c, thread, 4)
			case 4:
				c.R[0] = 0
				if c.PC = 7; c.Load(where) == replying || cancels && bug == "is cancelled without a second look" {
					c.PC = 5
				}
			case 5:
				c.Store(result, value)
				c.PC = 6
			case 6:
				c.Store(where, ready)
				c.R[0], c.R[5] = 1, 1
				c.PC = 7
			case 7:
				c.Store(thread, 0)
				if c.PC = 8; c.R[0] == 0 {
					c.PC = interleave.End
				}
			case 8: // wake
				lock(c, queueLock, 9)
			case 9:
				c.Store(queued, c.Load(queued)+1)
				c.PC = 10
			case 10:
				if c.PC = 13; c.Load(idle) == 1 {
					c.PC = 11
				}
			case 11:
				c.Store(idle, 0)
				c.PC = 12
			case 12:
				c.Store(ipi, 1)
				c.PC = 13
			case 13:
				c.Store(queueLock, 0)
				c.PC = interleave.End
			}
		}
	}
	for _, bug := range []string{"", "is published after the receiver can run", "looks for work without the queue's lock",
		"is cancelled without a second look"} {
		var s interleave.State
		r, err := interleave.Explore(interleave.Test{
			Start:    s,
			Programs: []func(*cpu){caller(bug), waker(bug, 1), waker(bug, 2)},
			Limit:    200_000,
			AtEnd: func(s *interleave.State) error {
				if n := s.T[1].R[5] + s.T[2].R[5]; n != 1 || s.Mem[queued] != 0 || s.T[0].R[1] != s.T[1].R[5]+2*s.T[2].R[5] {
					return fmt.Errorf("woken %d times, queued %d, result %d", n, s.Mem[queued], s.T[0].R[1])
				}
				return nil
			},
		})
		switch {
		case bug == "" && err != nil:
			t.Error(err)
		case bug == "" && r.States < 200:
			t.Errorf("only %d states", r.States)
		case bug != "" && (err == nil || strings.Contains(err.Error(), "more than")):
			t.Errorf("a caller that %s passes: %v", bug, err)
		case bug == "":
			t.Logf("%d states, %d ends", r.States, r.Ends)
		}
	}
}
