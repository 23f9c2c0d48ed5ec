package wait

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestTurns pushes, pops and changes threads at random: each pop gives the real-time thread
// of the highest priority, of the others the one with the least key, and of equal ones the oldest.
func TestTurns(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var model []*Turn
	drop := func(x *Turn) { model = slices.DeleteFunc(model, func(o *Turn) bool { return o == x }) }
	class := func(realTime bool) (in []*Turn) {
		for _, x := range model {
			if (x.realTime > 0) == realTime {
				in = append(in, x)
			}
		}
		return in
	}
	pop := func(over bool) {
		in := class(true)
		if fair := class(false); len(in) == 0 || over && len(fair) > 0 {
			in = fair
		}
		var want *Turn
		if len(in) > 0 {
			want = slices.MinFunc(in, byTurn)
		}
		if got := popTurn(0, over); got != want {
			t.Fatalf("got %+v, want %+v", got, want)
		}
		drop(want)
	}
	for range 40000 {
		fair, urgent := class(false), class(true)
		if key, some := FirstTurn(); some != (len(fair) > 0) || some && key != slices.MinFunc(fair, byTurn).Key {
			t.Fatalf("first is %d, %v", key, some)
		}
		if first := FirstRealTime(); first > 0 != (len(urgent) > 0) || first > 0 && first != slices.MinFunc(urgent, byTurn).realTime {
			t.Fatalf("first real-time thread has priority %d", first)
		}
		switch n := rng.IntN(100); {
		case n < 45:
			pop(rng.IntN(3) == 0)
		case n < 55 && len(model) > 0:
			setRealTime(model[rng.IntN(len(model))], rng.Int32N(4))
		default:
			x := &Turn{Key: 1 + rng.Int64N(50), Weight: 1 + rng.Int64N(5), Place: Arrive()}
			if rng.IntN(2) == 0 {
				x.realTime = 1 + rng.Int32N(3)
			}
			pushTurn(x)
			model = append(model, x)
		}
	}
	for len(model) > 0 {
		pop(false)
	}
	if pop(false); Look() {
		t.Error("a thread is left")
	}
	if weight, _ := TurnLoad(); weight != 0 {
		t.Errorf("a weight of %d is left", weight)
	}
}

// TestShare has a real-time thread run all the time, in pieces: it uses up its share in each
// period, no later for what it ran before.
func TestShare(t *testing.T) {
	const period, share, piece = 1000, 950, 4
	var c perCPU
	others, now := 0, int64(10*period)
	for range 100 * period / piece {
		if now += piece; now < c.full.Load() {
			others++
		} else {
			c.ran(piece, now, period, share)
		}
	}
	if others < 45*100/piece || others > 55*100/piece {
		t.Errorf("others have %d of %d", others, 100*period/piece)
	}
	for range 100 * period { // nobody else is there
		now++
		c.ran(1, now, period, share)
	}
	before := now
	for now += period; now < c.full.Load(); now += piece {
	}
	if now > before+2*period {
		t.Errorf("others have it for %d", now-before)
	}
}

func byTurn(a, b *Turn) int {
	if a.before(b) {
		return -1
	}
	return 1
}
