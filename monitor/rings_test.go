package monitor

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"hardtack/idl/monitor"
	"hardtack/msg"
)

// ram is the frames of a machine for tests, and knows who maps them.
type ram struct {
	t      *testing.T
	mu     sync.Mutex
	next   uint32
	lent   map[uint32]bool
	mapped map[uint32][]int // the kernels beside the first
	full   map[int]bool     // kernels that map no more
	dead   map[int]bool     // kernels that have ended
	busy   chan struct{}    // if it is there, UnmapFrames waits for its end
}

func newRAM(t *testing.T) *ram {
	return &ram{t: t, next: 100, lent: map[uint32]bool{}, mapped: map[uint32][]int{}, full: map[int]bool{}, dead: map[int]bool{}}
}

// kernelFrames is what a kernel does with them.
type kernelFrames struct {
	*ram
	index int
}

func (k kernelFrames) LendFrames(n int) (list []uint32) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for range n {
		k.next++
		k.lent[k.next] = true
		list = append(list, k.next)
	}
	return list
}

func (k kernelFrames) ReturnFrames(frames []uint32) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, f := range frames {
		if !k.lent[f] || len(k.mapped[f]) > 0 {
			k.t.Errorf("frame %d is returned; lent %v, mapped by %v", f, k.lent[f], k.mapped[f])
		}
		delete(k.lent, f)
	}
}

func (k kernelFrames) MapFrames(frames []uint32) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.full[k.index] || k.dead[k.index] {
		return false
	}
	for _, f := range frames {
		if !k.lent[f] || slices.Contains(k.mapped[f], k.index) {
			k.t.Errorf("kernel %d maps frame %d; lent %v, mapped by %v", k.index, f, k.lent[f], k.mapped[f])
		}
		k.mapped[f] = append(k.mapped[f], k.index)
	}
	return true
}

func (k kernelFrames) UnmapFrames(frames []uint32) {
	if k.busy != nil {
		<-k.busy
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, f := range frames {
		k.mapped[f] = slices.DeleteFunc(k.mapped[f], func(i int) bool { return i == k.index })
	}
}

// died says that a kernel maps nothing any more.
func (r *ram) died(index int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.dead[index] = true
	for f, list := range r.mapped {
		r.mapped[f] = slices.DeleteFunc(list, func(i int) bool { return i == index })
	}
}

// none waits until no frame is lent.
func none(t *testing.T, m *Monitor, r *ram) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		r.mu.Lock()
		left := len(r.lent)
		r.mu.Unlock()
		if left == 0 && m.Lent() == 0 {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("%d frames are lent", left)
		}
	}
	m.loans.mu.Lock()
	defer m.loans.mu.Unlock()
	for i, n := range m.loans.lent {
		if i > 0 && n != 0 {
			t.Errorf("cluster %d still has %d frames", i, n)
		}
	}
}

// ringed makes a channel from one kernel to another with rings of so many pages.
func ringed(t *testing.T, ms []*Monitor, from, to, pages int) (x, y *Channel) {
	t.Helper()
	came := make(chan struct{}, 1)
	l, err := ms[to].Listen("rings", monitor.Who{Process: 7}, func() { came <- struct{}{} })
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if x, err = ms[from].Open(to, "rings", monitor.Who{Process: 1}, pages); err != nil {
		t.Fatal(err)
	}
	<-came
	if y = l.Accept(); y == nil {
		t.Fatal("no channel has come")
	}
	if x.Peer() != to || y.Peer() != from || x.At.Process != 7 || y.At.Process != 1 {
		t.Errorf("%d to %d: who is there: %d %+v, %d %+v", from, to, x.Peer(), x.At, y.Peer(), y.At)
	}
	return x, y
}

// onRung is full after a ring.
func onRung(c *Channel) chan struct{} {
	rang := make(chan struct{}, 1)
	c.OnRung(func() {
		select {
		case rang <- struct{}{}:
		default:
		}
	})
	return rang
}

// ways are from where to where channels lead in a machine of three kernels.
var ways = [][2]int{{0, 1}, {1, 0}, {1, 2}, {2, 1}, {2, 0}}

// Both ends of a channel get the same frames, hear of rings, and give the frames back, whichever
// end goes first; they are lent until both have.
func TestRings(t *testing.T) {
	ms, hosts, _ := machine(t, 3)
	for _, w := range ways {
		for last := range 2 {
			x, y := ringed(t, ms, w[0], w[1], 2)
			r, s := x.Rings(), y.Rings()
			if r == nil || s == nil || len(r.Frames) != 4 || !slices.Equal(r.Frames, s.Frames) || !r.Opener || s.Opener {
				t.Fatalf("%v: %+v, %+v", w, r, s)
			}
			for _, c := range [][2]*Channel{{x, y}, {y, x}} {
				rang := onRung(c[1])
				c[0].Ring()
				<-rang
				first, _ := c[1].TakeRung()
				if second, _ := c[1].TakeRung(); !first || second {
					t.Errorf("%v: a ring was not heard, or twice", w)
				}
			}
			x.Close()
			y.Close()
			if n := ms[0].Lent(); n != 4 {
				t.Errorf("%v: %d frames are lent", w, n)
			}
			both := []*Rings{r, s}
			both[1-last].Put()
			if n := ms[0].Lent(); n != 4 {
				t.Errorf("%v: %d frames are lent while an end has them", w, n)
			}
			both[last].Put()
			none(t, ms[0], hosts[0].ram)
		}
		x, y := ringed(t, ms, w[0], w[1], 0)
		if x.Rings() != nil || y.Rings() != nil {
			t.Errorf("%v: rings that nobody asked for", w)
		}
		x.Close()
		y.Close()
	}
}

// A kernel that cannot map rings has channels without; who has opened one hears an error.
func TestRingsRefused(t *testing.T) {
	ms, hosts, _ := machine(t, 3)
	r := hosts[0].ram
	for _, to := range []int{1, 2} {
		r.full[to] = true
		from := 0
		if to == 1 {
			from = 2
		}
		x, y := ringed(t, ms, from, to, 1)
		if x.Rings() != nil || y.Rings() != nil {
			t.Error("rings that one kernel has not mapped")
		}
		if _, err := ms[to].Open(0, "nobody", monitor.Who{}, 1); !errors.Is(err, monitor.ErrNoName) {
			t.Errorf("nobody listens: %v", err)
		}
		l, err := ms[0].Listen("rings", monitor.Who{}, func() {})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := ms[to].Open(0, "rings", monitor.Who{}, 1); !errors.Is(err, monitor.ErrBusy) {
			t.Errorf("opening without memory: %v", err)
		}
		l.Close()
		x.Close()
		y.Close()
		delete(r.full, to)
	}
	none(t, ms[0], r)
}

// The first cluster passes on names that are not there, and clusters.
func TestPassedOn(t *testing.T) {
	ms, hosts, _ := machine(t, 3)
	if _, err := ms[1].Open(2, "nobody", monitor.Who{}, 1); !errors.Is(err, monitor.ErrNoName) {
		t.Errorf("nobody listens: %v", err)
	}
	for _, i := range []int{1, 3, 200} {
		if _, err := ms[1].Open(i, "nobody", monitor.Who{}, 1); !errors.Is(err, monitor.ErrNoCluster) {
			t.Errorf("cluster %d: %v", i, err)
		}
	}
	r := rand.New(rand.NewPCG(5, 6))
	for range 4 {
		x, y := ringed(t, ms, 1, 2, 1)
		there, back := noise(r, r.IntN(500000)), noise(r, r.IntN(500000))
		p, q := block(x), block(y)
		var work sync.WaitGroup
		work.Go(func() {
			if err := p.Write(t, there); err != nil {
				t.Error(err)
			}
			if got, err := p.all(t); !bytes.Equal(got, back) || err != io.EOF {
				t.Errorf("%d bytes of %d came back, %v", len(got), len(back), err)
			}
			x.Close()
		})
		got := make([]byte, len(there))
		for n := 0; n < len(got); {
			k, err := q.Read(t, got[n:])
			if n += k; err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(got, there) {
			t.Error("other bytes")
		}
		if err := q.Write(t, back); err != nil {
			t.Error(err)
		}
		y.Close()
		work.Wait()
	}
	none(t, ms[0], hosts[0].ram)
}

// leave ends a cluster as its kernel's end does.
func leave(m *Monitor, r *ram, index int) {
	m.mu.Lock()
	var links []*Link
	for _, l := range m.links {
		if l == m.peers[index].out || l.peer == m.peers[index] {
			links = append(links, l)
		}
	}
	m.mu.Unlock()
	r.died(index)
	m.Leave(index, links...)
	m.Revoke(index)
}

// When a kernel ends, the frames that it has are lent until the other end has left them, too.
func TestRingsDeath(t *testing.T) {
	for _, w := range [][2]int{{0, 1}, {1, 0}, {1, 2}, {2, 1}} {
		ms, hosts, _ := machine(t, 3)
		x, y := ringed(t, ms, w[0], w[1], 1)
		if w[0] == 1 {
			x, y = y, x
		}
		r := x.Rings() // y is that of the one that ends
		rang := onRung(x)
		leave(ms[0], hosts[0].ram, 1)
		<-rang
		if _, err := block(x).all(t); err == nil {
			t.Errorf("%v: no error from who has died", w)
		}
		if _, gone := x.Rung(); !gone {
			t.Errorf("%v: the end is not known", w)
		}
		x.Close()
		if n := ms[0].Lent(); n != 2 {
			t.Errorf("%v: %d frames are lent", w, n)
		}
		r.Put()
		none(t, ms[0], hosts[0].ram)
		y.Close()
	}
}

// A kernel that takes more rings than it may, or gives back what it has not, harms nobody else.
func TestHostileRings(t *testing.T) {
	ms, hosts, _ := machine(t, 3)
	x, y := ringed(t, ms, 2, 0, 1) // somebody else's
	l, err := ms[0].Listen("many", monitor.Who{}, func() {})
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	evil := client(t, ms[1], 0)
	total := 0
	var mine [][]uint32
	for i := range maxLent / 8 * 2 {
		out, err := evil.Open(ctx, monitor.OpenCall{Name: "many", Number: uint32(i), Pages: MaxRingPages, Frames: []uint32{1, 2}})
		if err != nil {
			t.Fatal(err)
		}
		if total += len(out.Rings); len(out.Rings) > 0 {
			mine = append(mine, out.Rings)
		}
		l.Accept().Close()
	}
	if total != maxLent {
		t.Errorf("%d frames were lent to one cluster", total)
	}
	if _, err := evil.Open(ctx, monitor.OpenCall{Name: "many", Pages: 200}); err == nil {
		t.Error("rings of 200 pages")
	}
	send := func(m monitor.Msg) {
		if err := ms[1].conns[0].Send(ctx, m); err != nil {
			t.Fatal(err)
		}
	}
	other := x.rings.Frames
	for _, frames := range [][]uint32{nil, {0}, {1, 2, 3}, other, other[:1], mine[0][:2], {mine[0][0], 5}, mine[0], mine[0]} {
		send(&monitor.Unmapped{Frames: frames})
	}
	for n := range uint32(2000) {
		send(&monitor.Opened{Number: n, Frames: other})
	}
	evil.Ping(ctx, monitor.PingCall{})
	if n := ms[0].Lent(); n != total-8+2 {
		t.Errorf("%d frames are lent", n)
	}
	rang := onRung(y)
	x.Ring()
	<-rang
	leave(ms[0], hosts[0].ram, 1)
	if n := ms[0].Lent(); n != 2 {
		t.Errorf("%d frames are lent after its end", n)
	}
	x.Close()
	y.Close()
	none(t, ms[0], hosts[0].ram)
}

// Kernels open and close channels to each other, and processes leave rings, at any time.
func TestRingsStorm(t *testing.T) {
	ms, hosts, _ := machine(t, 4)
	ctx, cancel := context.WithCancel(context.Background())
	var servers, clients sync.WaitGroup
	for _, m := range ms {
		came := make(chan struct{}, 1)
		l, err := m.Listen("storm", monitor.Who{}, func() {
			select {
			case came <- struct{}{}:
			default:
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		servers.Go(func() {
			defer l.Close()
			for {
				for c := l.Accept(); c != nil; c = l.Accept() {
					r := c.Rings()
					c.Ring()
					c.Close()
					if r != nil {
						r.Put()
					}
				}
				select {
				case <-came:
				case <-ctx.Done():
					return
				}
			}
		})
	}
	for i, m := range ms {
		for g := range 3 {
			clients.Go(func() {
				r := rand.New(rand.NewPCG(uint64(i), uint64(g)))
				for range 100 {
					c, err := m.Open(r.IntN(4), "storm", monitor.Who{}, r.IntN(3))
					switch {
					case err == nil:
						c.Write(make([]byte, 100))
						x := c.Rings()
						c.Ring()
						c.Close()
						if x != nil {
							x.Put()
						}
					case errors.Is(err, monitor.ErrBusy), errors.Is(err, monitor.ErrNoCluster), errors.Is(err, msg.ErrNoName):
					default:
						t.Error(err)
					}
				}
			})
		}
	}
	clients.Wait()
	cancel()
	servers.Wait()
	none(t, ms[0], hosts[0].ram)
}
