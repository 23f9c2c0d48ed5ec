package msg

import (
	"slices"
	"sync"

	"hardtack/msg/internal/barrier"
	"hardtack/msg/internal/ring"
	"os"
)

// gate is where up to two goroutines sleep until they are kicked.
type gate struct {
	mu     sync.Mutex
	asleep [2]chan struct{}
	used   [2]bool
}

func (g *gate) kick() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i, used := range g.used {
		if used {
			select {
			case g.asleep[i] <- struct{}{}:
			default: // it has yet to look after an earlier kick
			}
		}
	}
}

func (g *gate) park(ready func() bool) {
	g.mu.Lock()
	i := 0
	if g.used[0] {
		i = 1
	}
	if g.asleep[i] == nil {
		g.asleep[i] = make(chan struct{}, 1)
	}
	g.used[i] = true
	wake := g.asleep[i]
	g.mu.Unlock()
	for !ready() {
		<-wake
	}
	g.mu.Lock()
	g.used[i] = false
	select {
	case <-wake:
	default:
	}
	g.mu.Unlock()
}

// local is one end of rings between goroutines of this process. It implements
// Shared.
type local struct {
	tx, rx []byte
	gate   gate
	peer   *local
	mu     sync.Mutex
	bulk   []Region // pools made here that the peer has not mapped yet; guarded by mu
}

func newLocal(pages int) (a, b *local) {
	x, y := ring.Memory(pages*ring.PageBytes), ring.Memory(pages*ring.PageBytes)
	a, b = &local{tx: x, rx: y}, &local{tx: y, rx: x}
	a.peer, b.peer = b, a
	return a, b
}

func (l *local) Pages() (tx, rx []byte)       { return l.tx, l.rx }
func (l *local) Wake()                        { l.peer.gate.kick() }
func (l *local) Kick()                        { l.gate.kick() }
func (l *local) Barrier()                     { barrier.All() }
func (l *local) Barriers() bool               { return barrier.Works() }
func (l *local) Futex() bool                  { return false }
func (l *local) Park(ready func() bool) error { l.gate.park(ready); return nil }

func (l *local) NewBulk(n int) (Region, *os.File, error) {
	r := Region{Mem: ring.Memory(n)}
	l.mu.Lock()
	l.bulk = append(l.bulk, r)
	l.mu.Unlock()
	return r, nil, nil
}

// forget takes back what NewBulk made, which the peer was not told of: it takes what is
// made in order.
func (l *local) forget(r Region) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.bulk = slices.DeleteFunc(l.bulk, func(q Region) bool { return &q.Mem[0] == &r.Mem[0] })
}

// MapSend has no use: ends within the process do not move.
func (l *local) MapSend(*os.File, int) (Region, error) { return Region{}, ErrNoCaps }

func (l *local) MapBulk(_ *os.File, n int) (Region, error) {
	p := l.peer
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.bulk) == 0 || len(p.bulk[0].Mem) != n {
		return Region{}, errShort
	}
	r := p.bulk[0]
	p.bulk = p.bulk[1:]
	return r, nil
}
