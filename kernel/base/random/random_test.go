package random

import (
	"bytes"
	"math/rand/v2"
	"testing"
	"time"

	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/wait"
)

// fresh gives the test a pool without entropy.
func fresh(t *testing.T) {
	pool.gen = rand.NewChaCha8([32]byte{})
	pool.credit.Store(0)
}

func read() []byte {
	b := make([]byte, 64)
	Read(b)
	return b
}

// Every piece of entropy changes the stream, whatever it is said to be worth; the same
// pieces give the same stream.
func TestStir(t *testing.T) {
	seen := map[string]string{}
	for _, pieces := range [][]string{{}, {""}, {"a"}, {"b"}, {"a", "b"}, {"b", "a"}, {"ab"}} {
		var got [2][]byte
		for i := range got {
			fresh(t)
			for _, p := range pieces {
				Stir([]byte(p), 0)
			}
			got[i] = read()
		}
		if !bytes.Equal(got[0], got[1]) {
			t.Errorf("%q: two streams", pieces)
		}
		if other, twice := seen[string(got[0])]; twice {
			t.Errorf("%q gives the stream of %s", pieces, other)
		}
		seen[string(got[0])] = "another"
		if Ready() {
			t.Errorf("%q: ready without entropy", pieces)
		}
	}
}

// TestStale: whoever reads when the entropy is old asks for more, once each time it gets
// old, and nobody waits for that.
func TestStale(t *testing.T) {
	asked := func() bool {
		select {
		case <-Stale:
			return true
		default:
			return false
		}
	}
	Stir([]byte("fresh"), 0)
	asked()
	var b [8]byte
	if Read(b[:]); asked() {
		t.Error("asked for more right after some came")
	}
	old := func() {
		pool.mu.Lock()
		pool.stirred = wait.Now() - maxAge - 1
		pool.mu.Unlock()
	}
	old()
	if Read(b[:]); !asked() {
		t.Error("nobody asked for more")
	}
	if Read(b[:]); asked() {
		t.Error("asked twice")
	}
	for range 3 { // nobody answers
		old()
		Read(b[:])
	}
	if !asked() || asked() {
		t.Error("there is not one request")
	}
}

func TestReady(t *testing.T) {
	fresh(t)
	done := make(chan bool)
	go func() {
		Await(caller.NewKernelCtx())
		done <- Ready()
	}()
	for range readyBits/8 - 1 {
		Stir([]byte{1}, 8)
	}
	select {
	case <-done:
		t.Fatal("ready too early")
	case <-time.After(20 * time.Millisecond):
	}
	Stir([]byte{1}, 8)
	if !<-done {
		t.Error("woken, and not ready")
	}
}

func TestUint64N(t *testing.T) {
	fresh(t)
	var seen [10]int
	for range 10000 {
		seen[Uint64N(10)]++
	}
	for i, n := range seen {
		if n < 800 || n > 1200 {
			t.Errorf("%d came %d times of 10000", i, n)
		}
	}
}
