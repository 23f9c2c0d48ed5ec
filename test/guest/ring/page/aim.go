package page

import "math/rand/v2"

// Aim is how long to wait for the other side to be doing what this one wants to meet: a
// little less each time that the other was first, and a little more when it was not.
type Aim struct {
	turns int
	spun  uint32
}

// Wait waits.
func (a *Aim) Wait() {
	for range a.turns {
		a.spun++
	}
}

// Late says whether the other side was first.
func (a *Aim) Late(late bool) {
	step := 1 + rand.IntN(1+a.turns/16)
	if late {
		step = -step
	}
	a.turns = min(max(a.turns+step, 0), 2048)
}
