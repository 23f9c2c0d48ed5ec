package wait

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestTurns pushes and pops at random: each pop gives the least key, the oldest of equal ones.
func TestTurns(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var model []*Turn
	for range 20000 {
		if key, some := FirstTurn(); some != (len(model) > 0) || some && key != slices.MinFunc(model, byTurn).Key {
			t.Fatalf("first is %d, %v", key, some)
		}
		if len(model) > 0 && rng.IntN(100) < 49 {
			want := slices.MinFunc(model, byTurn)
			if got := popTurn(); got != want {
				t.Fatalf("got key %d, want %d", got.Key, want.Key)
			}
			model = slices.DeleteFunc(model, func(x *Turn) bool { return x == want })
			continue
		}
		x := &Turn{Key: 1 + rng.Int64N(50), Weight: 1 + rng.Int64N(5)}
		pushTurn(x)
		model = append(model, x)
	}
	for len(model) > 0 {
		want := slices.MinFunc(model, byTurn)
		if got := popTurn(); got != want {
			t.Fatalf("got key %d, want %d", got.Key, want.Key)
		}
		model = slices.DeleteFunc(model, func(x *Turn) bool { return x == want })
	}
	if popTurn() != nil {
		t.Error("a thread is left")
	}
	if weight, _ := TurnLoad(); weight != 0 {
		t.Errorf("a weight of %d is left", weight)
	}
}

func byTurn(a, b *Turn) int {
	if a.before(b) {
		return -1
	}
	return 1
}
