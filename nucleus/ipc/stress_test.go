package ipc

import (
	"math/rand/v2"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"hardtack/abi/linux"
	"hardtack/lock/core"
)

// machine plays some cores with goroutines. Each runs what the nucleus says: its
// threads are small programs, clients that call and servers that answer. One more
// core runs no threads; it kills, cancels and closes.
type machine struct {
	n     *Nucleus
	cores uint32
	ipi   [MaxCores]atomic.Bool
	user  [MaxCores]sync.Mutex // held while the core runs a thread; who kills needs it
	clock atomic.Uint64
	ep    atomic.Uint64 // the endpoint in use
	note  atomic.Uint64
	prog  [MaxThreads]program
	calm  atomic.Bool // nobody is killed, nothing times out
	stop  atomic.Bool

	good, bad, notes atomic.Int64
	wrong            atomic.Pointer[string]
}

type program struct {
	server, waiter bool
	pending        bool // an operation's result is to be looked at
	sent           uint64
	owes           Token // the reply is on its way with the operation
	goods          int64 // since it is calm
}

func (m *machine) fail(what string) { m.wrong.CompareAndSwap(nil, &what) }

func (m *machine) deliver(fx Effects) uint32 {
	for c := range m.cores {
		if fx.IPI>>c&1 == 1 {
			m.ipi[c].Store(true)
		}
	}
	return fx.Run
}

func (m *machine) core(core uint32) {
	random := rand.New(rand.NewPCG(uint64(core), 99))
	run := uint32(0)
	for turn := 0; !m.stop.Load(); turn++ {
		switch {
		case m.ipi[core].Swap(false), turn%17 == 0:
			run = m.deliver(m.n.Tick(core, m.clock.Add(1)))
		case run == 0, turn%41 == 0:
			run = m.deliver(m.n.Yield(core))
		}
		if turn%61 == 0 {
			runtime.Gosched() // to the one that kills
		}
		if run == 0 {
			runtime.Gosched()
			continue
		}
		m.user[core].Lock()
		run = m.deliver(m.step(core, run, random))
		m.user[core].Unlock()
	}
}

// step runs one thread up to its next operation.
func (m *machine) step(core, i uint32, random *rand.Rand) Effects {
	n := m.n
	if n.Current(core) != i {
		return Effects{Run: n.Current(core)} // killed since; the interrupt is on its way
	}
	p, t, r := &m.prog[i], n.Thread(i), *n.Result(i)
	deadline := uint64(Forever)
	if !m.calm.Load() && random.IntN(4) == 0 {
		deadline = m.clock.Load() + random.Uint64N(20)
	}
	ep := ID(m.ep.Load())
	if p.waiter {
		if p.pending && r.Err == 0 {
			if r.Badge == 0 {
				m.fail("a notification without bits")
			}
			m.notes.Add(1)
		}
		p.pending = true
		return n.Wait(core, ID(m.note.Load()), deadline)
	}
	if p.server {
		if p.pending && r.Err == linux.EBADF && p.owes != 0 {
			// The endpoint was closed in between, and nothing was done.
			tok := p.owes
			p.owes, p.pending = 0, false
			return n.Reply(core, tok, MakeInfo(16, 0))
		}
		p.owes = 0
		if p.pending && r.Err == 0 && r.Token != 0 {
			p.owes = r.Token
			if r.Info.Bytes() != 16 || t.Short[0] != ^t.Short[1] {
				m.fail("a server received half of a message")
			}
			for _, d := range t.In[:t.Came] {
				if d != t.Short[0] {
					m.fail("a descriptor of another message")
				}
			}
			t.Out, t.Came = t.In, 0
			return n.ReplyRecv(core, r.Token, r.Info, ep, deadline)
		}
		p.pending = true
		return n.Recv(core, ep, deadline)
	}
	if p.pending {
		switch r.Err {
		case 0:
			if t.Short[0] != p.sent || t.Short[1] != ^p.sent {
				m.fail("a client got another's reply")
			}
			m.good.Add(1)
			if m.calm.Load() {
				atomic.AddInt64(&p.goods, 1)
			}
		case linux.EPIPE, linux.EBADF, linux.ETIMEDOUT, linux.EINTR, linux.ERESTARTSYS, linux.EAGAIN:
			m.bad.Add(1)
		default:
			m.fail("a client got " + r.Err.Error())
		}
	}
	p.pending = true
	p.sent = random.Uint64() | 1
	t.Short[0], t.Short[1] = p.sent, ^p.sent
	t.Out = [MaxDescriptors]uint64{p.sent, p.sent, p.sent, p.sent}
	t.Came = 0
	return n.Call(core, ep, 1, MakeInfo(16, random.IntN(3)), deadline)
}

// Many calls over cores, at first with deaths, cancelled waits, timeouts and
// endpoints that are closed; then in peace, when every client must get on.
func TestStress(t *testing.T) {
	core.Yield = runtime.Gosched
	defer func() { core.Yield = nil }()
	if Control() == "none" {
		t.Skip("one core only")
	}
	const perCore = 5
	m := &machine{n: newNucleus(t, 4), cores: 3}
	killer := m.cores // a core without threads
	random := rand.New(rand.NewPCG(7, 8))
	ep, _ := m.n.NewEndpoint(killer)
	note, _ := m.n.NewNotification(killer)
	m.ep.Store(uint64(ep))
	m.note.Store(uint64(note))
	var ids []ID
	start := func(k int) {
		home := uint32(k) % m.cores
		id, err := m.n.NewThread(killer, home)
		if err != 0 {
			t.Fatal(err)
		}
		m.user[home].Lock()
		m.prog[id.index()] = program{server: k%perCore == 0, waiter: k%perCore == 1}
		m.user[home].Unlock()
		ids[k] = id
		fx, err := m.n.Start(killer, id)
		if err != 0 {
			t.Fatal(err)
		}
		m.deliver(fx)
	}
	ids = make([]ID, int(m.cores)*perCore)
	for k := range ids {
		start(k)
	}
	var wg sync.WaitGroup
	for core := range m.cores {
		wg.Go(func() { m.core(core) })
	}
	length := 300 * time.Millisecond
	if d, err := time.ParseDuration(os.Getenv("NUCLEUS_STRESS")); err == nil {
		length = d
	}
	signals, kills := 0, 0
	for end := time.Now().Add(length); time.Now().Before(end) && m.wrong.Load() == nil; {
		k := random.IntN(len(ids))
		switch random.IntN(16) {
		case 0:
			home := uint32(k) % m.cores
			m.user[home].Lock()
			fx, d, err := m.n.DestroyThread(killer, ids[k])
			m.user[home].Unlock()
			if err != 0 || d.N > 2*MaxDescriptors {
				t.Errorf("destroy: %v, %d dropped", err, d.N)
			}
			m.deliver(fx)
			start(k)
			kills++
		case 1:
			fresh, err := m.n.NewEndpoint(killer)
			if err != 0 {
				t.Fatal(err)
			}
			old := ID(m.ep.Swap(uint64(fresh)))
			fx, _ := m.n.DestroyEndpoint(killer, old)
			m.deliver(fx)
		case 2, 3, 4:
			fx, _ := m.n.Cancel(killer, ids[k])
			m.deliver(fx)
		default:
			fx, err := m.n.Signal(killer, note, 1<<random.IntN(8))
			if err != 0 {
				t.Errorf("signal: %v", err)
			}
			m.deliver(fx)
			signals++
		}
		core.Pause(uint32(random.IntN(100)))
		runtime.Gosched()
	}
	m.calm.Store(true)
	// Everybody gets on: no wake-up was lost. A slow machine only makes it longer.
	behind := func() (n int) {
		for k, id := range ids {
			if k%perCore > 1 && atomic.LoadInt64(&m.prog[id.index()].goods) < 20 {
				n++
			}
		}
		return n
	}
	limit := time.Now().Add(2 * time.Minute)
	for behind() > 0 && m.wrong.Load() == nil && time.Now().Before(limit) {
		time.Sleep(time.Millisecond)
	}
	if n := behind(); n > 0 {
		t.Errorf("%d clients do not get on", n)
		for k, id := range ids {
			th := m.n.Thread(id.index())
			t.Logf("thread %d of core %d, server %v: %v on %d, deadline %d, goods %d; result %+v", id.index(), th.core,
				k%perCore == 0, th.where.state(), th.where.object(), th.deadline, m.prog[id.index()].goods, th.result)
		}
		for c := range m.cores {
			k := m.n.core(c)
			t.Logf("core %d runs %d, queue %+v, idle %v, interrupt %v", c, k.current, k.run, k.idle, m.ipi[c].Load())
		}
		t.Logf("endpoint %d %+v", ID(m.ep.Load()).index(), m.n.endpoints[ID(m.ep.Load()).index()].queue)
	}
	m.stop.Store(true)
	wg.Wait()
	if what := m.wrong.Load(); what != nil {
		t.Error(*what)
	}
	t.Logf("%d calls, %d ended by an error, %d kills, %d signals, %d received", m.good.Load(), m.bad.Load(), kills, signals, m.notes.Load())
	if m.good.Load() == 0 || m.bad.Load() == 0 || m.notes.Load() == 0 {
		t.Error("something never happened")
	}
}
