package wait

import (
	"fmt"
	"strings"
	"testing"

	"hardtack/test/interleave"
)

// How a thread that may run on processor 1 only gets there, as programs for the model of
// package interleave. Processor 0 runs commitTurn, callCPU and nextTurn; then it runs another
// thread in user mode, or polls. Processor 1 comes out of user mode or out of the kernel, finds
// no thread, stands by and becomes idle (findRunnable, the nucleus's schedule and signalIRQ). In all
// interleavings processor 1 must run the thread, whoever finds it.

// Words of the model's memory.
const (
	turnsLock = iota
	waits     // the thread is in the group of processor 1
	want      // bit 1 of Wanted
	idle1     // processor 1 is idle
	queueLock // of processor 1's run queue and idle
	ready1    // an M is in processor 1's run queue
	pollerLock
	irqReady
	polls // an M is blocked in epoll_pwait
	ipi0
	ipi1
	served // the thread has run on processor 1
	stands // processor 1 stands by
)

type (
	cpu     = interleave.CPU
	program = func(*cpu)
)

// acquire is a step that takes a lock.
func acquire(c *cpu, addr, then uint8) {
	if c.Load(addr) != 0 || !c.CAS(addr, 0, 1) {
		c.Wait()
	}
	c.PC = then
}

// goes chooses between two steps.
func goes(c *cpu, yes bool, then, otherwise uint8) {
	if c.PC = otherwise; yes {
		c.PC = then
	}
}

// waiter is processor 0. Afterwards it is in user mode, or (polling) blocked in epoll_pwait.
func waiter(bug string, polling bool) program {
	early := bug == "kicks before the thread is in the queue"
	next := uint8(12) // another thread is first on processor 0
	if polling {
		next = 6
	}
	return func(c *cpu) {
		switch c.PC {
		case 0:
			if c.PC = 1; early {
				c.Swap(ipi1, 1)
			}
		case 1: // commitTurn
			acquire(c, turnsLock, 2)
		case 2:
			c.Store(waits, 1)
			c.PC = 3
		case 3:
			c.Store(want, 1)
			c.PC = 4
		case 4:
			if c.PC = 5; bug == "is released by a plain store" {
				c.Store(turnsLock, 0)
			} else {
				c.Swap(turnsLock, 0)
			}
		case 5: // callCPU
			goes(c, c.Load(stands) == 1, next, 18)
		case 18:
			if c.PC = next; !early && bug != "is not kicked" {
				c.Swap(ipi1, 1)
			}
		case 6: // nextTurn: idleWanted
			goes(c, c.Load(want) == 1, 7, 12)
		case 7:
			goes(c, c.Load(idle1) == 1, 8, 12)
		case 8: // GoTo: give
			acquire(c, queueLock, 9)
		case 9:
			c.R[0] = c.Load(idle1)
			c.Store(idle1, 0)
			c.PC = 10
		case 10:
			c.Store(ready1, c.Load(ready1)|c.R[0])
			c.PC = 11
		case 11:
			c.Store(queueLock, 0)
			c.PC = 16
		case 16:
			if c.R[0] == 1 {
				c.Swap(ipi1, 1)
			}
			c.PC = 12
		case 12: // whatever comes next on processor 0
			switch {
			case c.Load(served) == 1:
				c.PC = interleave.End
			case polling:
				c.PC = 13
			case c.Load(ipi0) == 0:
				c.Wait()
			default:
				c.Swap(ipi0, 0)
				c.PC = 6
			}
		case 13: // epoll_pwait: collect
			acquire(c, pollerLock, 14)
		case 14:
			if c.Load(irqReady) == 1 {
				c.Store(irqReady, 0)
				c.R[1] = 1
			} else {
				c.Store(polls, 1)
				c.R[1] = 0
			}
			c.PC = 15
		case 15:
			c.Store(pollerLock, 0)
			goes(c, c.R[1] == 1, 6, 17)
		case 17: // blocked, until the M goes on on processor 1
			if c.Load(polls) == 1 && c.Load(served) == 0 {
				c.Wait()
			}
			c.PC = interleave.End
		}
	}
}

// runner is processor 1.
func runner(bug string) program {
	return func(c *cpu) {
		switch c.PC {
		case 0: // popHere
			acquire(c, turnsLock, 1)
		case 1:
			c.R[0] = c.Load(waits)
			c.Store(waits, 0)
			c.PC = 2
		case 2:
			if c.PC = 3; c.R[0] == 1 {
				c.Store(want, 0)
			}
		case 3:
			c.Store(turnsLock, 0)
			goes(c, c.R[0] == 1, 4, 5)
		case 4:
			c.Store(served, 1)
			c.PC = interleave.End
		case 5: // stand
			c.Swap(stands, 1)
			c.PC = 22
		case 22: // look
			goes(c, c.Load(waits) == 1, 23, 24)
		case 23: // stood
			c.Swap(stands, 0)
			c.PC = 0
		case 24:
			c.Swap(stands, 0)
			if c.PC = 25; bug == "does not look after standing" {
				c.PC = 6
			}
		case 25: // userWaits
			goes(c, c.Load(waits) == 1, 0, 6)
		case 6: // schedule: take
			acquire(c, queueLock, 7)
		case 7:
			c.R[1] = c.Load(ready1)
			c.Store(ready1, 0)
			c.PC = 8
		case 8:
			c.Store(idle1, 1-c.R[1])
			c.PC = 9
		case 9:
			c.Store(queueLock, 0)
			goes(c, c.R[1] == 1, 0, 10)
		case 10: // Fence
			c.Barrier(1)
			c.PC = 11
		case 11:
			goes(c, c.Load(want) == 1 && bug != "becomes idle without a look" && bug != "does not look after standing", 12, 17)
		case 12: // signalIRQ
			acquire(c, pollerLock, 13)
		case 13:
			if c.R[2] = c.Load(polls); c.R[2] == 1 {
				c.Store(polls, 0)
			} else {
				c.Store(irqReady, 1)
			}
			c.PC = 14
		case 14:
			c.Store(pollerLock, 0)
			goes(c, c.R[2] == 1, 18, 15)
		case 18: // ready: the M is given to this processor
			acquire(c, queueLock, 19)
		case 19:
			c.Store(ready1, 1)
			c.PC = 20
		case 20:
			c.Store(idle1, 0)
			c.PC = 21
		case 21:
			c.Store(queueLock, 0)
			c.PC = 6
		case 15:
			if c.PC = 17; bug != "interrupts nobody" {
				c.Swap(ipi0, 1)
			}
		case 17: // halted until an interrupt, then schedule
			if c.Load(ipi1) == 0 {
				c.Wait()
				return
			}
			c.Swap(ipi1, 0)
			c.PC = 6
		}
	}
}

func TestHandOver(t *testing.T) {
	const both, inUserMode = 2, 1 // in which of the two cases a bug shows
	for bug, shows := range map[string]int{
		"": 0,
		"kicks before the thread is in the queue": inUserMode, // else processor 0 sees it idle
		"is not kicked":                inUserMode,
		"becomes idle without a look":  both,
		"does not look after standing": both,
		"is released by a plain store": both,
		"interrupts nobody":            inUserMode, // else a poll ends
	} {
		for i, polling := range []bool{false, true} {
			r, err := interleave.Explore(interleave.Test{
				Programs: []program{waiter(bug, polling), runner(bug)},
				Limit:    1_000_000,
				AtEnd: func(s *interleave.State) error {
					if s.Mem[served] != 1 || s.Mem[waits] != 0 || s.Mem[want] != 0 {
						return fmt.Errorf("served %d, waits %d, wanted %d", s.Mem[served], s.Mem[waits], s.Mem[want])
					}
					return nil
				},
			})
			lost := err != nil && strings.Contains(err.Error(), "nobody can go on")
			switch {
			case err != nil && !lost:
				t.Errorf("polling %v, a hand-over that %q: %v", polling, bug, err)
			case lost != (i < shows):
				t.Errorf("polling %v, a hand-over that %q: lost %v: %v", polling, bug, lost, err)
			case !lost && r.States < 500:
				t.Errorf("only %d states", r.States)
			}
			t.Logf("polling %v, %q: %d states, %d ends", polling, bug, r.States, r.Ends)
		}
	}
}
