package interleave

import (
	"errors"
	"strings"
	"testing"
)

// both runs two mirrored programs on words 0 and 1 and collects the pairs of R[0]
// at the ends.
func both(t *testing.T, p func(c *CPU, mine, other uint8), spurious uint8) map[[2]uint8]bool {
	t.Helper()
	out := map[[2]uint8]bool{}
	_, err := Explore(Test{
		Programs: []func(*CPU){func(c *CPU) { p(c, 0, 1) }, func(c *CPU) { p(c, 1, 0) }},
		Spurious: spurious,
		AtEnd:    func(s *State) error { out[[2]uint8{s.T[0].R[0], s.T[1].R[0]}] = true; return nil },
		Limit:    10_000,
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// The store-buffer litmus test: both threads may miss the other's store, unless it
// is a locked one.
func TestStoreBuffering(t *testing.T) {
	litmus := func(locked bool) func(c *CPU, mine, other uint8) {
		return func(c *CPU, mine, other uint8) {
			switch c.PC {
			case 0:
				if locked {
					c.Swap(mine, 1)
				} else {
					c.Store(mine, 1)
				}
				c.PC = 1
			case 1:
				c.R[0] = c.Load(other)
				c.PC = End
			}
		}
	}
	if got := both(t, litmus(false), 0); !got[[2]uint8{0, 0}] || len(got) != 4 {
		t.Errorf("plain stores: %v, want all four", got)
	}
	if got := both(t, litmus(true), 0); got[[2]uint8{0, 0}] || len(got) != 3 {
		t.Errorf("locked stores: %v, want three without 0, 0", got)
	}
}

// Stores become visible in their order.
func TestMessagePassing(t *testing.T) {
	_, err := Explore(Test{
		Programs: []func(*CPU){
			func(c *CPU) {
				c.Store(c.PC, 1)
				c.PC = []uint8{1, End}[c.PC]
			},
			func(c *CPU) {
				c.R[c.PC] = c.Load(1 - c.PC)
				c.PC = []uint8{1, End}[c.PC]
			},
		},
		AtEnd: func(s *State) error {
			if s.T[1].R[0] == 1 && s.T[1].R[1] == 0 {
				return errors.New("the second store was seen before the first")
			}
			return nil
		},
		Limit: 1000,
	})
	if err != nil {
		t.Error(err)
	}
}

// Transactions that read what the other writes do not both miss it, and aborts
// leave nothing behind.
func TestTransactions(t *testing.T) {
	got := both(t, func(c *CPU, mine, other uint8) {
		switch c.PC {
		case 0:
			c.XBegin(0)
			c.PC = 1
		case 1:
			c.Store(mine, c.Load(mine)+1)
			c.PC = 2
		case 2:
			c.R[0] = c.Load(other)
			c.PC = 3
		case 3:
			if c.Load(mine) != 1 {
				t.Error("a transaction does not see its own store, or sees an aborted one")
			}
			c.XEnd()
			c.PC = End
		}
	}, 2)
	want := map[[2]uint8]bool{{0, 1}: true, {1, 0}: true}
	if len(got) != 2 || !got[[2]uint8{0, 1}] || !got[[2]uint8{1, 0}] {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestNotices(t *testing.T) {
	ok := func(*State) error { return nil }
	for want, test := range map[string]Test{
		"nobody can go on": {AtEnd: ok, Limit: 100, Programs: []func(*CPU){func(c *CPU) { c.Wait() }}},
		"no end can be reached": {AtEnd: ok, Limit: 100, Programs: []func(*CPU){func(c *CPU) {
			c.R[0] ^= 1
		}}},
		"more than 100 states": {AtEnd: ok, Limit: 100, Programs: []func(*CPU){func(c *CPU) { c.R[0]++ }}},
		"never 3": {Limit: 100, AtEnd: ok, Programs: []func(*CPU){func(c *CPU) {
			c.Swap(0, c.PC)
			if c.PC++; c.PC == 5 {
				c.PC = End
			}
		}}, Always: func(s *State) error {
			if s.Mem[0] == 3 {
				return errors.New("never 3")
			}
			return nil
		}},
	} {
		if _, err := Explore(test); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
