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
		forgetLeft()
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

// forgetLeft forgets who had threads that waited.
func forgetLeft() {
	for i := range turnQueue.crowds.left {
		turnQueue.crowds.left[i].crowd.Store(nil)
	}
}

// TestLingering has a user's only thread leave while another's wait: it counts for a while, so
// that those of the other come a turn apart when it is back.
func TestLingering(t *testing.T) {
	forgetLeft()
	defer forgetLeft()
	var alone, many Crowd
	turn := func(c *Crowd, key int64) { pushTurn(&Turn{Key: key, Weight: 1, Crowd: c}) }
	turn(&alone, 1)
	popTurn(0, false)
	for range 3 {
		turn(&many, 2)
	}
	if got := many.Rate(); got != 4 {
		t.Errorf("the rate of a user with three threads that wait, and a fourth, is %d beside one that left", got)
	}
	if got := alone.Rate(); got != 1 {
		t.Errorf("the rate of who left is %d", got)
	}
	for i := range turnQueue.crowds.left {
		turnQueue.crowds.left[i].when.Store(Now() - linger)
	}
	if got := many.Rate(); got != 1 {
		t.Errorf("the rate of a user without others is %d", got)
	}
	for range 3 {
		popTurn(0, false)
	}
	if got := many.Rate(); got != 1 {
		t.Errorf("the rate of a user of whom nobody waits is %d", got)
	}
}

// TestOwed has a user start threads that run: what a new one is behind by falls by half of the
// time that passes.
func TestOwed(t *testing.T) {
	var c Crowd
	c.Young(100, 1000, 1000)
	c.Young(100, 1100, 1000)
	if got := c.Owed(1100); got != 150 {
		t.Errorf("owed %d after 200 in 100", got)
	}
	if got := c.Owed(1300); got != 50 {
		t.Errorf("owed %d 200 later", got)
	}
	if got := c.Owed(5000); got != 0 {
		t.Errorf("owed %d much later", got)
	}
	if c.Young(3000, 6000, 1000); c.Owed(6000) != 1000 {
		t.Errorf("owed %d, at most 1000", c.Owed(6000))
	}
}

// TestRest has work between two threads that wait: the one that is next comes first. Two who
// rest in turn come behind the other one at last.
func TestRest(t *testing.T) {
	forgetLeft()
	const far = 1 << 40
	first, later, work := &Turn{Key: 5, Weight: 1}, &Turn{Key: far, Weight: 1}, &Turn{}
	pushTurn(first)
	pushTurn(later)
	work.restKey()
	pushTurn(work)
	for i, want := range []*Turn{first, work, later} {
		if got := popTurn(0, false); got != want {
			t.Errorf("turn %d is another's", i)
		}
	}
	later.Key = 50
	pushTurn(later)
	works := []*Turn{{Key: 5, Weight: 1}, {Key: 5, Weight: 1}}
	pushTurn(works[0])
	for i := 1; ; i = 1 - i {
		works[i].restKey()
		pushTurn(works[i])
		if popTurn(0, false) == later {
			break
		}
	}
	for turnQueue.all.fair.first != nil {
		popTurn(0, false)
	}
}
