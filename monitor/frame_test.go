package monitor

import (
	"bytes"
	"context"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"hardtack/idl/monitor"
)

// testNet keeps what comes.
type testNet struct {
	frames chan []byte
	ended  chan int
	hold   chan struct{} // Receive waits for its end
}

func newNet() *testNet {
	return &testNet{frames: make(chan []byte, 10000), ended: make(chan int, 10), hold: make(chan struct{})}
}

// Pieces of a frame that never ends are not kept.
func TestEndless(t *testing.T) {
	a, b, _, _ := pair(t)
	n := newNet()
	close(n.hold)
	b.SetNet(n)
	for i := range 1001 {
		m := &monitor.Frame{More: 1, Bytes: make([]byte, chunk)}
		if i == 1000 {
			m.More = 0
		}
		if err := a.conns[1].Send(context.Background(), m); err != nil {
			t.Fatal(err)
		}
	}
	if f := next(t, n.frames); len(f) > MaxFrame {
		t.Errorf("a frame of %d bytes", len(f))
	}
}

func (n *testNet) Receive(_ int, frame []byte) {
	<-n.hold
	n.frames <- bytes.Clone(frame)
}

func (n *testNet) Ended(index int) { n.ended <- index }

// next is what comes first.
func next[T any](t *testing.T, c chan T) (v T) {
	t.Helper()
	select {
	case v = <-c:
	case <-time.After(time.Minute):
		t.Fatal("nothing came for a minute")
	}
	return v
}

// Frames arrive whole and in order; who sends more than there is room for is told so, and
// does not wait.
func TestEthernet(t *testing.T) {
	a, b, _, _ := pair(t)
	n := newNet()
	b.SetNet(n)
	if !a.SendFrame(7, [][]byte{{1}}) || !a.SendFrame(1, [][]byte{make([]byte, MaxFrame+1)}) {
		t.Error("what cannot arrive ever is to be sent again")
	}
	r := rand.New(rand.NewPCG(1, 2))
	sent, full := [][]byte{}, false
	send := func() bool {
		f := noise(r, 1+r.IntN(MaxFrame))
		cut := r.IntN(len(f))
		ok := a.SendFrame(1, [][]byte{f[:cut], f[cut:]})
		if ok {
			sent = append(sent, f)
		}
		return ok
	}
	for range 2000 {
		if full = !send(); full {
			break
		}
	}
	if !full {
		t.Error("2,000 frames found room where nobody reads")
	}
	close(n.hold)
	for range 1000 {
		for !send() {
			runtime.Gosched()
		}
	}
	for i, want := range sent {
		if got := next(t, n.frames); !bytes.Equal(got, want) {
			t.Fatalf("frame %d of %d has %d bytes, want %d", i, len(sent), len(got), len(want))
		}
	}
}

// Only the first kernel is believed when it says that another one has ended.
func TestEnded(t *testing.T) {
	a, b, _, _ := pair(t)
	na, nb := newNet(), newNet()
	close(na.hold)
	close(nb.hold)
	a.SetNet(na)
	b.SetNet(nb)
	say := func(m *Monitor, to, index int) {
		if err := m.conns[to].Send(context.Background(), &monitor.Ended{Index: uint32(index)}); err != nil {
			t.Fatal(err)
		}
	}
	say(b, 0, 3)
	b.SendFrame(0, [][]byte{{9}})
	next(t, na.frames) // behind the message
	say(a, 1, 0)
	say(a, 1, maxClusters)
	a.tell(5)
	if got := next(t, nb.ended); got != 5 {
		t.Errorf("cluster %d has ended, want 5", got)
	}
	if got := next(t, na.ended); got != 5 {
		t.Errorf("cluster %d has ended, want 5", got)
	}
	a.Leave(1)
	if got := next(t, na.ended); got != 1 {
		t.Errorf("cluster %d has ended, want 1", got)
	}
}
