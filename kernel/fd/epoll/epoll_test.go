package epoll

import (
	"encoding/binary"
	"math/rand"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"hardtack/abi/linux"
	"hardtack/kernel/base/accounts"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/mem"
	"hardtack/kernel/base/uio"
	"hardtack/kernel/base/wait"
	"hardtack/kernel/fs/vfs"
)

var user = accounts.UserOf(0)

func TestMain(m *testing.M) {
	mem.InitHost(1 << 15)
	m.Run()
}

// lamp is a file whose readiness the test switches.
type lamp struct {
	vfs.BaseOps
	q        wait.Queue
	ready    atomic.Uint32
	released bool
}

func (l *lamp) Ready(*vfs.File) wait.Events { return wait.Events(l.ready.Load()) }
func (l *lamp) Queue(*vfs.File) *wait.Queue { return &l.q }
func (l *lamp) Release(*vfs.File)           { l.released = true }
func (l *lamp) set(ev wait.Events) {
	l.ready.Store(uint32(ev))
	l.q.Notify(ev)
}

// flat is user memory from address 0 on.
type flat []byte

func (m flat) CopyIn(d []byte, a uio.Addr) (int, linux.Errno) {
	n := copy(d, m[min(int(a), len(m)):])
	if n < len(d) {
		return n, linux.EFAULT
	}
	return n, 0
}
func (m flat) CopyOut(a uio.Addr, s []byte) (int, linux.Errno) {
	n := copy(m[min(int(a), len(m)):], s)
	if n < len(s) {
		return n, linux.EFAULT
	}
	return n, 0
}

type got struct {
	ev   uint32
	data uint64
}

func collect(t *testing.T, c *caller.Ctx, f *vfs.File, max int) []got {
	t.Helper()
	m := make(flat, max*linux.SizeofEpollEvent)
	n, e := Of(f).Wait(c, m, 0, max, 0, true)
	if e != 0 {
		t.Fatal(e)
	}
	out := make([]got, n)
	for i := range out {
		b := m[i*linux.SizeofEpollEvent:]
		out[i] = got{binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint64(b[4:])}
	}
	return out
}

const both = wait.In | wait.Out | wait.Pri | wait.RdHup

// What epoll reports is compared with what poll would say, for level, edge and
// one-shot items under random changes.
func TestAgainstPoll(t *testing.T) {
	c := caller.NewKernelCtx()
	rnd := rand.New(rand.NewSource(7))
	epf := New(user)
	ep := Of(epf)
	type model struct {
		l        *lamp
		f        *vfs.File
		in       bool
		want     uint32
		pending  bool // edge: something happened since the last report
		disarmed bool
	}
	var ms []*model
	for i := 0; i < 12; i++ {
		l := &lamp{}
		ms = append(ms, &model{l: l, f: vfs.NewFile(l, 0)})
	}
	current := func(m *model) uint32 {
		if !m.in || m.disarmed {
			return 0
		}
		return m.l.ready.Load() & (m.want&^flagBits | uint32(wait.Err|wait.Hup))
	}
	for step := 0; step < 50000; step++ {
		i := rnd.Intn(len(ms))
		m := ms[i]
		want := uint32(rnd.Uint32())&uint32(both) | 1 | [4]uint32{0, linux.EPOLLET, linux.EPOLLONESHOT, 0}[rnd.Intn(4)]
		switch rnd.Intn(8) {
		case 0:
			e := ep.Ctl(epf, linux.EPOLL_CTL_ADD, int32(i), m.f, want, uint64(i))
			if (e == linux.EEXIST) != m.in {
				t.Fatal(step, e)
			}
			if !m.in {
				m.in, m.want, m.disarmed = true, want, false
				m.pending = current(m) != 0
			}
		case 1:
			e := ep.Ctl(epf, linux.EPOLL_CTL_MOD, int32(i), m.f, want, uint64(i))
			if (e == linux.ENOENT) == m.in {
				t.Fatal(step, e)
			}
			if m.in {
				m.want, m.disarmed = want, false
				m.pending = m.pending || current(m) != 0
			}
		case 2:
			if rnd.Intn(3) == 0 {
				e := ep.Ctl(epf, linux.EPOLL_CTL_DEL, int32(i), m.f, 0, 0)
				if (e == linux.ENOENT) == m.in {
					t.Fatal(step, e)
				}
				m.in, m.pending = false, false
			}
		case 3, 4, 5:
			ev := wait.Events(rnd.Uint32()) & (both | wait.Hup)
			if m.in && !m.disarmed && uint32(ev)&(m.want|uint32(wait.Hup)) != 0 {
				m.pending = true
			}
			m.l.set(ev)
		default:
			seen := map[uint64]bool{}
			for _, g := range collect(t, c, epf, len(ms)) {
				m := ms[g.data]
				if seen[g.data] || g.ev == 0 || g.ev != current(m) {
					t.Fatalf("step %d: item %d reported %x, holds %x", step, g.data, g.ev, current(m))
				}
				if m.want&linux.EPOLLET != 0 && !m.pending {
					t.Fatalf("step %d: item %d reported without an edge", step, g.data)
				}
				seen[g.data] = true
			}
			for j, m := range ms {
				due := current(m) != 0 && (m.want&linux.EPOLLET == 0 || m.pending)
				if due != seen[uint64(j)] {
					t.Fatalf("step %d: item %d due %v, reported %v", step, j, due, seen[uint64(j)])
				}
				m.pending = false
				if seen[uint64(j)] && m.want&linux.EPOLLONESHOT != 0 {
					m.disarmed = true
				}
			}
		}
	}
}

func TestFairnessAndBatches(t *testing.T) {
	c := caller.NewKernelCtx()
	epf := New(user)
	const n = 100
	for i := 0; i < n; i++ {
		l := &lamp{}
		l.set(wait.In)
		if e := Of(epf).Ctl(epf, linux.EPOLL_CTL_ADD, int32(i), vfs.NewFile(l, 0), uint32(wait.In), uint64(i)); e != 0 {
			t.Fatal(e)
		}
	}
	next := uint64(0)
	for round := 0; round < 30; round++ {
		for _, g := range collect(t, c, epf, 70) {
			if g.data != next%n {
				t.Fatal(g.data, next%n)
			}
			next++
		}
	}
	if next != 30*70 {
		t.Fatal(next)
	}
}

func TestFaultKeepsEvents(t *testing.T) {
	c := caller.NewKernelCtx()
	epf := New(user)
	l := &lamp{}
	Of(epf).Ctl(epf, linux.EPOLL_CTL_ADD, 3, vfs.NewFile(l, 0), uint32(wait.In)|linux.EPOLLET|linux.EPOLLONESHOT, 9)
	l.set(wait.In)
	if n, e := Of(epf).Wait(c, make(flat, 5), 0, 1, 0, true); n != 0 || e != linux.EFAULT {
		t.Fatal(n, e)
	}
	if g := collect(t, c, epf, 1); len(g) != 1 || g[0].data != 9 {
		t.Fatal(g)
	}
}

func TestClosedFileVanishes(t *testing.T) {
	c := caller.NewKernelCtx()
	epf := New(user)
	l := &lamp{}
	f := vfs.NewFile(l, 0)
	before := watches.Get().Used()
	Of(epf).Ctl(epf, linux.EPOLL_CTL_ADD, 3, f, uint32(wait.In), 9)
	l.set(wait.In)
	f.Put()
	if !l.released || !l.q.Empty() || Of(epf).items.count != 0 || watches.Get().Used() != before {
		t.Fatal("item stayed")
	}
	if g := collect(t, c, epf, 1); len(g) != 0 {
		t.Fatal(g)
	}
	// The other way round: the instance goes first.
	l = &lamp{}
	f = vfs.NewFile(l, 0)
	Of(epf).Ctl(epf, linux.EPOLL_CTL_ADD, 3, f, uint32(wait.In), 9)
	epf.Put()
	if !l.q.Empty() {
		t.Fatal("listens on")
	}
	l.set(wait.In)
	f.Put()
}

func TestNesting(t *testing.T) {
	c := caller.NewKernelCtx()
	var eps []*vfs.File
	for i := 0; i < 6; i++ {
		eps = append(eps, New(user))
	}
	add := func(outer, inner int) linux.Errno {
		return Of(eps[outer]).Ctl(eps[outer], linux.EPOLL_CTL_ADD, int32(inner), eps[inner], uint32(wait.In), uint64(inner))
	}
	if e := add(0, 0); e != linux.EINVAL {
		t.Fatal(e)
	}
	for i := 0; i < 4; i++ {
		if e := add(i, i+1); e != 0 {
			t.Fatal(i, e)
		}
	}
	if e := add(4, 5); e != linux.ELOOP {
		t.Fatal("too deep:", e)
	}
	for i := 0; i < 4; i++ {
		if e := add(4, i); e != linux.ELOOP {
			t.Fatal("loop:", e)
		}
	}
	l := &lamp{}
	Of(eps[4]).Ctl(eps[4], linux.EPOLL_CTL_ADD, 77, vfs.NewFile(l, 0), uint32(wait.In), 77)
	if g := collect(t, c, eps[0], 4); len(g) != 0 {
		t.Fatal(g)
	}
	l.set(wait.In)
	if g := collect(t, c, eps[0], 4); len(g) != 1 || g[0].data != 1 {
		t.Fatal(g)
	}
	l.set(0)
	if g := collect(t, c, eps[0], 4); len(g) != 0 {
		t.Fatal(g)
	}
	Of(eps[0]).Ctl(eps[0], linux.EPOLL_CTL_DEL, 1, eps[1], 0, 0)
	if e := add(4, 0); e != 0 {
		t.Fatal(e)
	}
}

func TestExclusive(t *testing.T) {
	l := &lamp{}
	f := vfs.NewFile(l, 0)
	var woken atomic.Int32
	var wg sync.WaitGroup
	var eps []*vfs.File
	var threads []*caller.Ctx
	for range 4 {
		epf, c := New(user), caller.NewKernelCtx()
		eps, threads = append(eps, epf), append(threads, c)
		if e := Of(epf).Ctl(epf, linux.EPOLL_CTL_ADD, 1, f, uint32(wait.In)|linux.EPOLLEXCLUSIVE, 0); e != 0 {
			t.Fatal(e)
		}
		if e := Of(epf).Ctl(epf, linux.EPOLL_CTL_MOD, 1, f, uint32(wait.In), 0); e != linux.EINVAL {
			t.Fatal(e)
		}
		wg.Add(1)
		go func() {
			defer wg.Done()
			n, _ := Of(epf).Wait(c, make(flat, 12), 0, 1, wait.NoDeadline, false)
			woken.Add(int32(n))
		}()
	}
	for _, epf := range eps {
		for Of(epf).waiters.Empty() {
			time.Sleep(time.Millisecond)
		}
	}
	l.set(wait.In)
	for woken.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
	time.Sleep(5 * time.Millisecond)
	if n := woken.Load(); n != 1 {
		t.Fatal(n, "woken")
	}
	for _, c := range threads {
		c.SetInterrupted(true)
	}
	wg.Wait()
}

// Many threads collect edge-triggered events that many others make; each
// event's state must be seen, and nobody may hang.
func TestStress(t *testing.T) {
	epf := New(user)
	const files, rounds = 8, 3000
	lamps := make([]*lamp, files)
	var seen [files]atomic.Int64
	for i := range lamps {
		lamps[i] = &lamp{}
		Of(epf).Ctl(epf, linux.EPOLL_CTL_ADD, int32(i), vfs.NewFile(lamps[i], 0), uint32(wait.In)|linux.EPOLLET, uint64(i))
	}
	var stop atomic.Bool
	var collectors, makers sync.WaitGroup
	for i := 0; i < 3; i++ {
		collectors.Add(1)
		go func() {
			defer collectors.Done()
			c := caller.NewKernelCtx()
			m := make(flat, 3*12)
			for !stop.Load() {
				n, e := Of(epf).Wait(c, m, 0, 3, wait.Now()+int64(20*time.Millisecond), false)
				if e != 0 {
					t.Error(e)
				}
				for j := 0; j < n; j++ {
					seen[binary.LittleEndian.Uint64(m[j*12+4:])].Add(1)
				}
			}
		}()
	}
	for i := range lamps {
		makers.Add(1)
		go func() {
			defer makers.Done()
			for r := 0; r < rounds; r++ {
				before := seen[i].Load()
				lamps[i].set(wait.In)
				for limit := wait.Now() + int64(time.Minute); seen[i].Load() == before; {
					if wait.Now() > limit {
						t.Errorf("event of %d lost in round %d", i, r)
						return
					}
					time.Sleep(time.Microsecond)
				}
			}
		}()
	}
	makers.Wait()
	stop.Store(true)
	collectors.Wait()
}

func TestWaitDoesNotAllocate(t *testing.T) {
	c := caller.NewKernelCtx()
	epf := New(user)
	l := &lamp{}
	Of(epf).Ctl(epf, linux.EPOLL_CTL_ADD, 3, vfs.NewFile(l, 0), uint32(wait.In), 9)
	m := uio.Memory(make(flat, 12))
	if n := testing.AllocsPerRun(100, func() {
		l.set(wait.In)
		Of(epf).Wait(c, m, 0, 1, 0, false)
		l.set(0)
		Of(epf).Wait(c, m, 0, 1, 0, true)
	}); n != 0 {
		t.Fatal(n)
	}
}

func TestPollSet(t *testing.T) {
	c := caller.NewKernelCtx()
	a, b := &lamp{}, &lamp{}
	fa, fb := vfs.NewFile(a, 0), vfs.NewFile(b, 0)
	poll := func(deadline int64, now bool) (int, linux.Errno, wait.Events, wait.Events) {
		s, e := NewPollSet(user, 2)
		if e != 0 {
			t.Fatal(e)
		}
		defer s.Free()
		fa.Get()
		fb.Get()
		s.Add(fa, wait.In, 0)
		s.Add(fb, wait.Out, 0)
		n, e := s.Wait(c, deadline, now)
		return n, e, s.Got(0), s.Got(1)
	}
	if n, e, _, _ := poll(0, true); n != 0 || e != 0 {
		t.Fatal(n, e)
	}
	start := wait.Now()
	if n, e, _, _ := poll(start+int64(3*time.Millisecond), false); n != 0 || e != 0 || wait.Now() < start+int64(3*time.Millisecond) {
		t.Fatal(n, e)
	}
	go func() {
		time.Sleep(2 * time.Millisecond)
		b.set(wait.Out | wait.Hup)
	}()
	if n, e, x, y := poll(0, false); n != 1 || e != 0 || x != 0 || y != wait.Out|wait.Hup {
		t.Fatal(n, e, x, y)
	}
	b.set(0)
	c.SetInterrupted(true)
	if n, e, _, _ := poll(0, false); n != 0 || e != linux.EINTR {
		t.Fatal(n, e)
	}
	a.set(wait.In)
	if n, e, _, _ := poll(0, false); n != 1 || e != 0 {
		t.Fatal(n, e)
	}
	if fa.Refs() != 1 || fb.Refs() != 1 || !a.q.Empty() || !b.q.Empty() {
		t.Fatal("references or entries left")
	}
	if n := testing.AllocsPerRun(100, func() { poll(0, true) }); n > 0 {
		t.Fatal(n)
	}
	if _, e := NewPollSet(user, maxSlots+1); e != linux.ENOMEM {
		t.Fatal(e)
	}
}

func BenchmarkEvent(b *testing.B) {
	c := caller.NewKernelCtx()
	epf := New(user)
	l := &lamp{}
	Of(epf).Ctl(epf, linux.EPOLL_CTL_ADD, 3, vfs.NewFile(l, 0), uint32(wait.In), 9)
	m := uio.Memory(make(flat, 12*8))
	for b.Loop() {
		l.set(wait.In)
		Of(epf).Wait(c, m, 0, 8, 0, false)
	}
}

// An event must not go more ways up than Linux lets it.
func TestPathLimits(t *testing.T) {
	const wide = 30
	watches.Get().SetMax(1 << 20)
	add := func(outer, inner *vfs.File, n int) linux.Errno {
		return Of(outer).Ctl(outer, linux.EPOLL_CTL_ADD, int32(n), inner, uint32(wait.In), 0)
	}
	var levels [4][]*vfs.File
	for i := range levels {
		for range wide {
			levels[i] = append(levels[i], New(user))
		}
	}
	for i := 1; i < len(levels); i++ {
		for _, outer := range levels[i] {
			for k, inner := range levels[i-1] {
				if e := add(outer, inner, k); e != 0 {
					t.Fatal(i, e)
				}
			}
		}
	}
	l := vfs.NewFile(&lamp{}, 0)
	if e := add(levels[0][0], l, 1000); e != linux.EINVAL {
		t.Fatal("4 levels:", e)
	}
	// Paths through one instance: any number. Through two: 500.
	for _, ep := range levels[3] {
		if e := add(ep, l, 1000); e != 0 {
			t.Fatal("a level:", e)
		}
	}
	inner := New(user)
	many := vfs.NewFile(&lamp{}, 0)
	if e := add(inner, many, 1); e != 0 {
		t.Fatal(e)
	}
	n := 0
	for ; n < 600; n++ {
		if e := add(New(user), inner, n); e == linux.EINVAL {
			break
		} else if e != 0 {
			t.Fatal(e)
		}
	}
	if n != pathLimits[1] {
		t.Fatal(n, "paths through two")
	}
	if Of(inner).nested.Load() != int32(n) {
		t.Fatal("a refused add left a link")
	}
}
