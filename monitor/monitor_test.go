package monitor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"hardtack/idl/monitor"
	"hardtack/monitor/broker"
	"hardtack/msg"
)

// testHost is a kernel for tests.
type testHost struct {
	cpus    uint32
	stopped atomic.Int32
	rung    atomic.Int32           // how often it was interrupted
	ringing atomic.Pointer[func()] // called before each time
	hang    chan struct{}          // Stop waits for its end
	broker.Kernel
	kernelFrames
}

func (h *testHost) Health() monitor.HealthReply { return monitor.HealthReply{Processors: h.cpus} }

func (h *testHost) Stop(status uint8) error {
	h.stopped.Store(int32(status) + 1)
	if h.hang != nil {
		<-h.hang
	}
	return nil
}

var kernels atomic.Int32

// pair makes two kernels with a link each way, and returns the areas too.
func pair(t *testing.T) (a, b *Monitor, hosts [2]*testHost, areas [2][]byte) {
	t.Helper()
	ms, hs, list := machine(t, 2)
	return ms[0], ms[1], [2]*testHost(hs), list[1]
}

// machine makes n kernels. The first one has links with each of the others, and areas are theirs.
func machine(t *testing.T, n int) (ms []*Monitor, hosts []*testHost, areas [][2][]byte) {
	t.Helper()
	number, ram := kernels.Add(1), newRAM(t)
	for i := range n {
		h := &testHost{cpus: uint32(i + 1), kernelFrames: kernelFrames{ram, i}}
		m, err := start(h, fmt.Sprintf("test%d-%d", number, i))
		if err != nil {
			t.Fatal(err)
		}
		ms, hosts = append(ms, m), append(hosts, h)
	}
	// What interrupts a kernel: its bottom half runs in a goroutine of its own.
	bells := make([]chan struct{}, n)
	for i := range bells {
		bells[i] = make(chan struct{}, 1)
		go func() {
			for range bells[i] {
				ms[i].Rung(atOnce)
			}
		}()
	}
	bell := func(i int) func() {
		return func() {
			hosts[i].rung.Add(1)
			if f := hosts[i].ringing.Load(); f != nil {
				(*f)()
			}
			select {
			case bells[i] <- struct{}{}:
			default:
			}
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	areas = make([][2][]byte, n)
	var wg sync.WaitGroup
	for i := 1; i < n; i++ {
		areas[i] = [2][]byte{pages(AreaPages), pages(AreaPages)}
		for side, m := range []*Monitor{ms[0], ms[i]} {
			there := []int{i, 0}[side]
			wg.Go(func() {
				out := NewLink("out", areas[i][side], side, bell(there))
				in := NewLink("in", areas[i][1-side], side, bell(there))
				if err := m.Join(ctx, there, out, in); err != nil {
					t.Error(err)
				}
			})
		}
	}
	wg.Wait()
	return ms, hosts, areas
}

func client(t *testing.T, m *Monitor, index int) *monitor.Client {
	t.Helper()
	c, err := m.Peer(index)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Both kernels call each other at the same time.
func TestCalls(t *testing.T) {
	a, b, hosts, _ := pair(t)
	ctx := context.Background()
	var wg sync.WaitGroup
	for i, m := range []*Monitor{a, b} {
		c := client(t, m, 1-i)
		for g := range 4 {
			wg.Add(1)
			go func() {
				defer wg.Done()
				for n := range uint64(500) {
					if out, err := c.Ping(ctx, monitor.PingCall{Number: n + uint64(g)<<32}); err != nil || out.Same != n+uint64(g)<<32 {
						t.Errorf("ping %d: %d, %v", n, out.Same, err)
						return
					}
				}
			}()
		}
	}
	wg.Wait()
	if h, err := client(t, a, 1).Health(ctx, monitor.HealthCall{}); err != nil || h.Processors != 2 {
		t.Errorf("health of b: %+v, %v", h, err)
	}
	if _, err := client(t, b, 0).Stop(ctx, monitor.StopCall{Status: 7}); err != nil || hosts[0].stopped.Load() != 8 {
		t.Errorf("stop: %v, status %d", err, hosts[0].stopped.Load()-1)
	}
	if _, err := a.Peer(5); !errors.Is(err, msg.ErrNoName) {
		t.Errorf("a cluster that is not there: %v", err)
	}
}

// A call in flight ends when the peer's kernel does.
func TestDeath(t *testing.T) {
	a, _, hosts, _ := pair(t)
	hosts[1].hang = make(chan struct{})
	defer close(hosts[1].hang)
	done := make(chan error, 1)
	go func() {
		_, err := client(t, a, 1).Stop(context.Background(), monitor.StopCall{})
		done <- err
	}()
	select {
	case err := <-done:
		t.Fatalf("a call of a silent kernel ended: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	a.mu.Lock()
	for _, l := range a.links {
		l.Die()
	}
	a.mu.Unlock()
	if err := <-done; err == nil {
		t.Error("a call of a dead kernel succeeded")
	}
}

// Frames of any length arrive whole and in order, and those before the end before it.
func TestFrames(t *testing.T) {
	mem := pages(AreaPages)
	var a, b *Link
	a = NewLink("a", mem, 0, func() { go b.Rung(atOnce) })
	b = NewLink("b", mem, 1, func() { go a.Rung(atOnce) })
	ctx := context.Background()
	r := rand.New(rand.NewPCG(1, 2))
	var sent [][]byte
	for i := range 300 {
		f := make([]byte, []int{r.IntN(100), r.IntN(frameBytes), r.IntN(msg.MaxFrame + 1)}[i%3])
		for j := range f {
			f[j] = byte(r.Uint32())
		}
		sent = append(sent, f)
	}
	go func() {
		for _, f := range sent {
			if err := a.Send(ctx, f, nil); err != nil {
				t.Error(err)
			}
		}
		a.Close()
	}()
	for i, want := range sent {
		got, _, err := b.Recv(ctx)
		if err != nil || !bytes.Equal(got, want) {
			t.Fatalf("frame %d: %d bytes of %d, %v", i, len(got), len(want), err)
		}
	}
	if _, _, err := b.Recv(ctx); err != io.EOF {
		t.Errorf("behind the last frame: %v", err)
	}
	if err := b.Send(ctx, []byte("x"), nil); err != io.EOF {
		t.Errorf("to who has closed: %v", err)
	}
	if err := a.Send(ctx, []byte("x"), nil); !errors.Is(err, msg.ErrClosed) {
		t.Errorf("after closing: %v", err)
	}
}

// A receiver, and a sender without room, wait no longer than their context.
func TestContexts(t *testing.T) {
	mem := pages(AreaPages)
	a := NewLink("a", mem, 0, func() {})
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	if _, _, err := a.Recv(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("nothing to receive: %v", err)
	}
	if err := a.Send(ctx, make([]byte, 3*frameBytes), nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("no room: %v", err)
	}
}

// What joins after its cluster has left stays away.
func TestLeaveFirst(t *testing.T) {
	a, _, _, _ := pair(t)
	out := NewLink("out", pages(AreaPages), 0, func() {})
	in := NewLink("in", pages(AreaPages), 0, func() {})
	a.Leave(2, out, in)
	if err := a.Join(context.Background(), 2, out, in); !errors.Is(err, msg.ErrPeerGone) {
		t.Errorf("joined: %v", err)
	}
	if _, err := a.Peer(2); err == nil || len(a.links) != 2 {
		t.Errorf("the cluster is there: %v, %d links", err, len(a.links))
	}
}

func atOnce() time.Duration { return 0 }
