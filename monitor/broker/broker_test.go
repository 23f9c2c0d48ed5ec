package broker

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
)

// machine is what really is where, while the broker has its book.
type machine struct {
	t     *testing.T
	mu    sync.Mutex
	runs  map[uint32]int // which kernel runs a processor
	maps  map[uint32]int // which kernel maps a piece
	all   []*kernel
	b     *Broker
	calls int
	doing string
	plan  func(call int, k *kernel) fault
}

// fault is what goes wrong with a call.
type fault int

const (
	none fault = iota
	refused
	lost   // the kernel never sees it
	silent // it is carried out, and the answer is lost
	late   // it is carried out when the next call, or the next but one, has come
	dead   // the kernel ends before
	dies   // and after
	faults
)

// kernel is one cluster's.
type kernel struct {
	m     *machine
	index int
	dead  bool
	turn  uint32
	late  []func() // calls that arrive late
}

var errDied = errors.New("the kernel has died")

// call carries a call out as the plan has it go wrong. do is called with m.mu held.
func (k *kernel) call(turn uint32, do func() error) (err error) {
	m := k.m
	m.mu.Lock()
	defer m.mu.Unlock()
	what := none
	if k.index > 0 {
		m.calls++
		what = m.plan(m.calls, k)
	}
	if k.dead {
		return &Unsure{errDied}
	}
	if n := len(k.late); n > 0 && what != late { // after later calls, as goroutines may run
		defer func() {
			for _, f := range k.late[:n] {
				f()
			}
			k.late = k.late[n:]
		}()
	}
	guarded := func() error {
		if turn != 0 && turn <= k.turn {
			return errors.New("stale")
		}
		k.turn = max(k.turn, turn)
		return do()
	}
	switch what {
	case refused:
		k.turn = max(k.turn, turn)
		return errors.New("refused")
	case lost:
		return &Unsure{context.DeadlineExceeded}
	case silent:
		guarded()
		return &Unsure{context.DeadlineExceeded}
	case late:
		k.late = append(k.late, func() { guarded() })
		return &Unsure{context.DeadlineExceeded}
	case dead:
		k.dead = true
		return &Unsure{errDied}
	case dies:
		guarded()
		k.dead = true
		return &Unsure{errDied}
	}
	return guarded()
}

func (k *kernel) ReleaseCPU(_ context.Context, turn, apic uint32) error {
	return k.call(turn, func() error {
		if k.m.runs[apic] == k.index {
			k.m.runs[apic] = nobody
		}
		return nil
	})
}

func (k *kernel) AdoptCPU(_ context.Context, turn, apic uint32) error {
	return k.call(turn, func() error {
		if now := k.m.runs[apic]; now != nobody && now != k.index {
			k.m.t.Errorf("%s: cluster %d starts processor %d, which cluster %d runs", k.m.doing, k.index, apic, now)
		}
		k.m.runs[apic] = k.index
		return nil
	})
}

func (k *kernel) OfferMemory(_ context.Context, _ uint32, most int) (pieces []uint32, err error) {
	err = k.call(0, func() error {
		for p := int32(39); p >= 0 && len(pieces) < most; p-- {
			if k.m.maps[uint32(p)] == k.index {
				pieces = append(pieces, uint32(p))
			}
		}
		return nil
	})
	return pieces, err
}

func (k *kernel) ReleaseMemory(_ context.Context, turn uint32, pieces []uint32) (released []uint32, err error) {
	err = k.call(turn, func() error {
		for i, p := range pieces {
			if k.m.maps[p] == k.index && (i%3 != 1 || len(pieces) == 1) { // some are in use meanwhile
				k.m.maps[p] = nobody
				released = append(released, p)
			}
		}
		return nil
	})
	return released, err
}

func (k *kernel) AdoptMemory(_ context.Context, turn uint32, pieces []uint32) error {
	return k.call(turn, func() error {
		for _, p := range pieces {
			if now := k.m.maps[p]; now != nobody && now != k.index {
				k.m.t.Errorf("cluster %d maps piece %d, which cluster %d maps", k.index, p, now)
			}
			k.m.maps[p] = k.index
		}
		return nil
	})
}

// newMachine has four clusters of two processors and ten pieces each.
func newMachine(t *testing.T) *machine {
	m := &machine{t: t, runs: map[uint32]int{}, maps: map[uint32]int{}, plan: func(int, *kernel) fault { return none }}
	var plans []Plan
	for i := range 4 {
		p := Plan{APIC: []uint32{uint32(2 * i), uint32(2*i + 1)}, Start: uint32(10 * i), End: uint32(10 * (i + 1)), Least: 3}
		plans = append(plans, p)
		m.all = append(m.all, &kernel{m: m, index: i})
		for _, id := range p.APIC {
			m.runs[id] = i
		}
		for piece := p.Start; piece < p.End; piece++ {
			m.maps[piece] = i
		}
	}
	plans[0].Start, plans[0].End, plans[0].Least = 0, 0, 0 // all the rest
	m.b = New(plans, m.all[0], func(apic uint32) {
		if m.runs[apic] != nobody {
			t.Errorf("processor %d is parked while cluster %d runs it", apic, m.runs[apic])
		}
	})
	for i := 1; i < 4; i++ {
		m.b.Start(i)
		m.b.Joined(i, m.all[i])
	}
	return m
}

// end does what the first cluster does when another one has ended.
func (m *machine) end(i int) {
	running, arriving := m.b.Ending(i)
	m.stop(i, append(running, arriving...))
}

// stop stops processors, which is the end of a cluster.
func (m *machine) stop(i int, cpus []uint32) {
	m.mu.Lock()
	m.all[i].dead = true
	for _, id := range cpus {
		if now := m.runs[id]; now != i && now != nobody {
			m.t.Errorf("processor %d of cluster %d is stopped with cluster %d", id, now, i)
		}
		m.runs[id] = nobody
	}
	for id, k := range m.runs {
		if k == i {
			m.t.Errorf("processor %d of cluster %d goes on", id, i)
		}
	}
	for p, k := range m.maps { // nobody looks there any more
		if k == i {
			m.maps[p] = nobody
		}
	}
	m.mu.Unlock()
	m.b.Ended(i)
}

// start starts a cluster that has ended.
func (m *machine) start(i int) {
	apic, pieces := m.b.Start(i)
	k := &kernel{m: m, index: i}
	m.mu.Lock()
	m.all[i] = k
	if len(apic) == 0 || apic[0] != uint32(2*i) {
		m.t.Errorf("cluster %d starts with processors %v", i, apic)
	}
	for _, id := range apic {
		if m.runs[id] != nobody {
			m.t.Errorf("cluster %d starts processor %d of cluster %d", i, id, m.runs[id])
		}
		m.runs[id] = i
	}
	for p := uint32(0); p < 3; p++ {
		if len(pieces) < 3 || pieces[p] != uint32(10*i)+p {
			m.t.Errorf("cluster %d starts with pieces %v", i, pieces)
		}
	}
	for _, p := range pieces {
		if m.maps[p] != nobody {
			m.t.Errorf("cluster %d starts with piece %d of cluster %d", i, p, m.maps[p])
		}
		m.maps[p] = i
	}
	m.mu.Unlock()
	m.b.Joined(i, k)
}

// check settles what is in doubt, has dead clusters start again, and compares the book with
// what is.
func (m *machine) check(what string) {
	m.t.Helper()
	m.mu.Lock()
	m.plan = func(int, *kernel) fault { return none }
	m.mu.Unlock()
	for i, k := range m.all {
		if k.dead {
			m.end(i)
		}
	}
	for i := range m.all {
		if m.all[i].dead {
			m.start(i)
		}
	}
	m.b.moves.Lock()
	for i := range m.all {
		m.b.settle(i)
		m.b.settle(i) // a late call may have come after the first
	}
	m.b.bringHome(func(int) bool { return true })
	m.b.moves.Unlock()
	for _, c := range m.b.cpus {
		if m.runs[c.apic] != c.owner || c.owner == nobody || c.arriving {
			m.t.Errorf("%s: cluster %d runs processor %d, by the book cluster %d", what, m.runs[c.apic], c.apic, c.owner)
		}
	}
	for p, k := range m.maps {
		if has := m.b.has(p); has != k || k == nobody {
			m.t.Errorf("%s: cluster %d maps piece %d, by the book cluster %d", what, k, p, has)
		}
	}
	if m.t.Failed() {
		m.t.FailNow()
	}
}

// requests are what somebody may ask for.
var requests = []struct {
	name string
	do   func(b *Broker) error
}{
	{"cpu 1 to 2", func(b *Broker) error { _, err := b.MoveCPUs(context.Background(), 1, 1, 2); return err }},
	{"cpu 0 to 1", func(b *Broker) error { _, err := b.MoveCPUs(context.Background(), 1, 0, 1); return err }},
	{"cpu 1 to 0 and back", func(b *Broker) error {
		_, err := b.MoveCPUs(context.Background(), 1, 1, 0)
		_, back := b.MoveCPUs(context.Background(), 1, 0, 1)
		return errors.Join(err, back)
	}},
	{"cpu 1 to 2 to 3", func(b *Broker) error {
		_, err := b.MoveCPUs(context.Background(), 1, 1, 2)
		_, more := b.MoveCPUs(context.Background(), 2, 2, 3)
		return errors.Join(err, more)
	}},
	{"memory 1 to 2", func(b *Broker) error { _, err := b.MoveMemory(context.Background(), 4, 1, 2); return err }},
	{"memory 0 to 1 to 2", func(b *Broker) error {
		_, err := b.MoveMemory(context.Background(), 5, 0, 1)
		_, more := b.MoveMemory(context.Background(), 8, 1, 2)
		return errors.Join(err, more)
	}},
}

// A cluster is being ended from any step of any request on, and its processors stop when that
// is over: nobody else's do.
func TestEndingAtEveryStep(t *testing.T) {
	for _, request := range requests {
		for step := 1; ; step++ {
			reached := false
			for i := range 12 {
				victim, what := 1+i%3, []fault{none, refused, lost, silent}[i/3]
				m := newMachine(t)
				var stopped []uint32
				m.doing = fmt.Sprintf("%s, cluster %d ends at step %d, %d", request.name, victim, step, what)
				m.plan = func(call int, k *kernel) fault {
					if call == step {
						reached = true
						running, arriving := m.b.Ending(victim)
						stopped = append(running, arriving...)
						return what
					}
					return none
				}
				request.do(m.b)
				if stopped != nil {
					m.stop(victim, stopped)
					m.start(victim)
				}
				m.check(m.doing)
			}
			if !reached {
				break
			}
		}
	}
}

// Every request, cut at every step in every way, and whatever comes after.
func TestEveryStep(t *testing.T) {
	cuts := 0
	for _, request := range requests {
		for step := 1; ; step++ {
			reached := false
			for what := refused; what < faults; what++ {
				for second := none; second < faults; second++ {
					m := newMachine(t)
					m.doing = fmt.Sprintf("%s, step %d, %d, %d", request.name, step, what, second)
					m.plan = func(call int, k *kernel) fault {
						switch call {
						case step:
							reached = true
							return what
						case step + 1:
							return second
						}
						return none
					}
					request.do(m.b)
					m.check(fmt.Sprintf("%s, step %d, %d, %d", request.name, step, what, second))
					cuts++
				}
			}
			if !reached {
				break
			}
		}
	}
	t.Logf("%d cuts", cuts)
}

// Clusters end and start at any moment of moves.
func TestStorm(t *testing.T) {
	rounds := 300
	if testing.Short() {
		rounds = 30
	}
	for seed := range uint64(rounds) {
		m := newMachine(t)
		r := rand.New(rand.NewPCG(seed, 1))
		var fmu sync.Mutex
		m.plan = func(int, *kernel) fault {
			fmu.Lock()
			defer fmu.Unlock()
			if r.IntN(8) > 0 {
				return none
			}
			return []fault{refused, lost, silent, late}[r.IntN(4)]
		}
		var wg sync.WaitGroup
		stop := make(chan struct{})
		for g := range 2 {
			q := rand.New(rand.NewPCG(seed, uint64(g+2)))
			wg.Go(func() {
				for range 60 {
					from, to := q.IntN(4), q.IntN(4)
					if q.IntN(2) == 0 {
						m.b.MoveCPUs(context.Background(), 1+q.IntN(2), from, to)
					} else {
						m.b.MoveMemory(context.Background(), 1+q.IntN(5), from, to)
					}
				}
			})
		}
		var ends sync.WaitGroup
		for i := 1; i < 4; i++ {
			q := rand.New(rand.NewPCG(seed, uint64(i+10)))
			ends.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
					}
					for range q.IntN(200) {
						runtime.Gosched()
					}
					m.end(i)
					m.start(i)
				}
			})
		}
		wg.Wait()
		close(stop)
		ends.Wait()
		m.check(fmt.Sprintf("seed %d", seed))
	}
}

// What cannot be is refused, and changes nothing.
func TestRefusals(t *testing.T) {
	ctx := context.Background()
	m := newMachine(t)
	b := m.b
	want := func(what string, err, is error) {
		t.Helper()
		if !errors.Is(err, is) {
			t.Errorf("%s: %v, want %v", what, err, is)
		}
	}
	_, err := b.MoveCPUs(ctx, 0, 0, 1)
	want("none", err, ErrNothing)
	_, err = b.MoveCPUs(ctx, 1, 2, 2)
	want("to itself", err, ErrSame)
	_, err = b.MoveCPUs(ctx, 1, 0, 4)
	want("nowhere", err, ErrNoCluster)
	_, err = b.MoveMemory(ctx, 1, -1, 0)
	want("from nowhere", err, ErrNoCluster)
	n, err := b.MoveCPUs(ctx, 2, 1, 0)
	want("the last", err, ErrLast)
	if n != 1 || b.CPUs(1) != 1 || b.CPUs(0) != 3 {
		t.Errorf("%d moved, cluster 1 has %d, cluster 0 %d", n, b.CPUs(1), b.CPUs(0))
	}
	n, err = b.MoveMemory(ctx, 20, 3, 0)
	want("too much", err, ErrNoMemory)
	if n == 0 || b.Borrowed(0) != n || b.Borrowed(3) != -n {
		t.Errorf("%d moved, cluster 0 has %d more, cluster 3 %d", n, b.Borrowed(0), b.Borrowed(3))
	}
	b.Ending(2)
	_, err = b.MoveCPUs(ctx, 1, 0, 2)
	want("ending", err, ErrEnding)
	b.Ended(2)
	m.all[2].dead = true
	_, err = b.MoveCPUs(ctx, 1, 0, 2)
	want("ended", err, ErrNotRunning)
	b.Joined(2, m.all[2]) // too late
	_, err = b.MoveCPUs(ctx, 1, 0, 2)
	want("ended", err, ErrNotRunning)
	b.Start(2)
	_, err = b.MoveCPUs(ctx, 1, 2, 0)
	want("starting", err, ErrNotRunning)
	b.moves.Lock()
	_, err = b.MoveMemory(ctx, 1, 0, 1)
	want("two at once", err, ErrBusy)
	b.moves.Unlock()
	// A processor goes back to where it is by the plan rather than another one.
	if _, err = b.MoveCPUs(ctx, 1, 0, 3); err != nil || b.CPUs(0) != 2 {
		t.Error(err)
	}
	if _, err = b.MoveCPUs(ctx, 1, 0, 1); err != nil || m.runs[3] != 1 && m.runs[1] != 1 {
		t.Error(err, m.runs)
	}
}
