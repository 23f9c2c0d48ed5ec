package stand

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"

	"hardtack/test/interleave"
)

// The place as programs for the model of package interleave: one CPU stands by twice, two
// others each have a thread to give away. In all interleavings each thread is run once,
// with what its giver wrote before.

// Words of the model's memory.
const (
	word    = iota // the place: 0, 1 (open) or 2 and 3, the givers' threads
	message        // message + 2, + 3: what came with each thread
	_
	_
	ran // ran + 2, + 3: how often each has run
	_
	_
	_
)

type cpu = interleave.CPU

// giver offers a thread, and runs it itself if nobody takes it.
func giver(thread uint8, bug string) func(*cpu) {
	return func(c *cpu) {
		switch c.PC {
		case 0:
			c.Store(message+thread, 1)
			c.PC = 1
		case 1:
			switch {
			case bug == "two steps of an offer":
				c.R[0] = c.Load(word)
				c.PC = 3
			case c.CAS(word, 1, thread):
				c.PC = interleave.End
			default:
				c.PC = 2
			}
		case 2:
			c.Swap(ran+thread, c.Load(ran+thread)+1)
			c.PC = interleave.End
		case 3:
			if c.PC = 2; c.R[0] == 1 {
				c.Store(word, thread)
				c.PC = interleave.End
			}
		}
	}
}

// owner stands by twice, and looks two times each time.
func owner(bug string) func(*cpu) {
	return func(c *cpu) {
		switch c.PC {
		case 0: // Begin
			c.Store(word, 1)
			c.R[1] = 0
			c.PC = 1
		case 1: // Offered
			if c.R[0] = c.Load(word); c.R[0] == 1 {
				if c.R[1]++; c.R[1] == 2 {
					c.PC = 3
				}
				return
			}
			c.PC = 2
		case 2:
			c.Store(word, 0)
			c.PC = 5
		case 3: // End
			if bug == "an end that does not look" {
				c.Store(word, 0)
				c.PC = 7
				return
			}
			if bug == "two steps of an end" {
				c.R[0] = c.Load(word)
				c.PC = 4
				return
			}
			c.R[0] = c.Swap(word, 0)
			c.PC = 5
		case 4:
			c.Store(word, 0)
			c.PC = 5
		case 5: // run what came
			if c.R[0] < 2 {
				c.PC = 7
				return
			}
			c.R[3] = c.Load(message + c.R[0])
			c.PC = 6
		case 6:
			if c.R[3] == 1 { // else it came without its message
				c.Swap(ran+c.R[0], c.Load(ran+c.R[0])+1)
			}
			c.PC = 7
		case 7:
			if c.R[2]++; c.R[2] == 2 {
				c.PC = interleave.End
				return
			}
			c.PC = 0
		}
	}
}

func TestModel(t *testing.T) {
	for _, bug := range []string{"", "two steps of an offer", "an end that does not look", "two steps of an end"} {
		r, err := interleave.Explore(interleave.Test{
			Programs: []func(*cpu){owner(bug), giver(2, bug), giver(3, bug)},
			Limit:    1_000_000,
			AtEnd: func(s *interleave.State) error {
				if s.Mem[ran+2] != 1 || s.Mem[ran+3] != 1 {
					return fmt.Errorf("the threads ran %d and %d times", s.Mem[ran+2], s.Mem[ran+3])
				}
				return nil
			},
		})
		switch {
		case bug == "" && err != nil:
			t.Error(err)
		case bug != "" && (err == nil || !strings.Contains(err.Error(), "threads ran")):
			t.Errorf("%s: %v", bug, err)
		case bug == "" && r.States < 500:
			t.Errorf("only %d states", r.States)
		}
		t.Logf("%q: %d states, %d ends", bug, r.States, r.Ends)
	}
}

// TestPlace is the same with the package's own code.
func TestPlace(t *testing.T) {
	const givers, each = 3, 500
	var p Place
	var ran [givers*each + 1]uint32
	var all, owner sync.WaitGroup
	stop := make(chan struct{})
	owner.Go(func() {
		for {
			p.Begin()
			what := uint32(0)
			for range 100 {
				if what = p.Offered(); what != 0 {
					break
				}
			}
			if what == 0 {
				what = p.End()
			}
			if what != 0 {
				ran[what]++
				continue
			}
			select {
			case <-stop:
				return
			default:
				runtime.Gosched()
			}
		}
	})
	var kept [givers]int
	for g := range givers {
		all.Go(func() {
			for i := range each {
				what := uint32(g*each + i + 1)
				taken := p.Offer(what)
				for ; i%2 == 0 && !taken; taken = p.Offer(what) { // this one stays until it is
					runtime.Gosched()
				}
				if !taken {
					kept[g]++
					ran[what]++
				}
			}
		})
	}
	all.Wait()
	close(stop)
	owner.Wait()
	for i, n := range ran[1:] {
		if n != 1 {
			t.Fatalf("thread %d ran %d times", i+1, n)
		}
	}
	if p.Offer(1) {
		t.Error("an offer was taken where nobody stands")
	}
	t.Log("kept by their givers:", kept)
}
