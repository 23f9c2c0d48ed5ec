package monitor

import "sync"

// gate is where goroutines sleep until they are kicked.
type gate struct {
	mu   sync.Mutex
	cond sync.Cond
	gen  uint64 // grows with each kick; guarded by mu
}

func (g *gate) kick() {
	g.mu.Lock()
	g.gen++
	if g.cond.L != nil {
		g.cond.Broadcast()
	}
	g.mu.Unlock()
}

// park returns when ready reports true. It looks again after every kick.
func (g *gate) park(ready func() bool) {
	g.mu.Lock()
	g.cond.L = &g.mu
	for {
		gen := g.gen
		g.mu.Unlock()
		if ready() {
			return
		}
		g.mu.Lock()
		for g.gen == gen {
			g.cond.Wait()
		}
	}
}
