package wait

import (
	"math/rand/v2"
	"testing"
)

// TestCrowds has threads of three users wait and get their turns at random. Each user's count
// is that of its threads that wait, and the rates follow from the counts.
func TestCrowds(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	users := make([]Crowd, 3)
	model := make([]int64, len(users))
	of := map[*Crowd]int{}
	for i := range users {
		of[&users[i]] = i
	}
	check := func() {
		t.Helper()
		few, some := int64(0), 0
		for i, n := range model {
			if got := users[i].waiting.Load(); got != n {
				t.Fatalf("user %d: %d threads wait, want %d", i, got, n)
			}
			if n > 0 {
				if some++; few == 0 || n < few {
					few = n
				}
			}
		}
		for i, n := range model {
			want := int64(1)
			if some > 1 {
				want = max((n+1)/few, 1)
			}
			if got := users[i].Rate(); got != want {
				t.Fatalf("user %d of %v: rate %d, want %d", i, model, got, want)
			}
		}
	}
	left := 0
	pop := func() {
		if x := popTurn(0, false); x.realTime == 0 {
			model[of[x.Crowd]]--
		}
		left--
	}
	for range 20000 {
		if left > 0 && rng.IntN(100) < 49 {
			pop()
		} else {
			i := rng.IntN(3)
			x := &Turn{Key: 1 + rng.Int64N(50), Weight: 1, Crowd: &users[i], Place: Arrive()}
			if rng.IntN(10) == 0 {
				x.realTime = 1
			} else {
				model[i]++
			}
			pushTurn(x)
			left++
		}
		check()
	}
	for left > 0 {
		pop()
		check()
	}
	if turnQueue.crowds.first != nil {
		t.Error("a user is left of whom nobody waits")
	}
	if rate := (*Crowd)(nil).Rate(); rate != 1 {
		t.Errorf("the rate without a user is %d", rate)
	}
}
