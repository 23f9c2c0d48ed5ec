package core

import (
	"errors"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// A writer waits for no core that was said not to come.
func TestSetCores(t *testing.T) {
	for _, c := range []struct{ n, visited uint32 }{{0, MaxCores}, {1, 1}, {4, 4}, {MaxCores, MaxCores}, {MaxCores + 1, MaxCores}} {
		var l Readers
		l.SetCores(c.n)
		if c.visited < MaxCores {
			l.RAcquire(c.visited) // for ever
		}
		l.Acquire(0)
		l.Release(0)
		// The last one that may come is waited for.
		l.RAcquire(c.visited - 1)
		done := make(chan bool)
		go func() { l.Acquire(0); close(done) }()
		select {
		case <-done:
			t.Errorf("%d cores: a writer beside reader %d", c.n, c.visited-1)
		case <-time.After(time.Millisecond):
			l.RRelease(c.visited - 1)
			<-done
		}
	}
}

// Locks for numbered cores, each core a goroutine.
func TestCores(t *testing.T) {
	const cores, rounds = 4, 2000
	Yield = runtime.Gosched
	defer func() { Yield = nil }()
	run := func(name string, section func(core uint32, i int)) {
		var wg sync.WaitGroup
		for core := range uint32(cores) {
			wg.Go(func() {
				for i := range rounds {
					section(core, i)
					if i%8 == 0 {
						runtime.Gosched() // or few sections meet on few processors
					}
				}
			})
		}
		wg.Wait()
	}
	var q Queue
	count := 0
	run("Queue", func(core uint32, i int) {
		q.Acquire(core)
		count++
		q.Release(core)
	})
	if want := cores * rounds; count != want {
		t.Errorf("Queue: %d of %d", count, want)
	}

	var rw Readers
	rw.SetCores(cores)
	x, y := 0, 0
	run("Readers", func(core uint32, i int) {
		if i%16 == 0 {
			rw.Acquire(core)
			x++
			y++
			rw.Release(core)
			return
		}
		rw.RAcquire(core)
		if x != y {
			t.Error("half of a change")
		}
		rw.RRelease(core)
	})
	if want := cores * ((rounds + 15) / 16); x != want {
		t.Errorf("Readers: %d of %d", x, want)
	}

	var virtual Ticket
	count = 0
	failed := int64(0)
	run("Ticket, seized", func(core uint32, i int) {
		if i%2 == 0 {
			virtual.AwaitSeize()
		} else if !virtual.Seize() {
			atomic.AddInt64(&failed, 1)
			return
		}
		count++
		virtual.Release()
	})
	if want := cores*rounds - int(failed); count != want {
		t.Errorf("Ticket: %d of %d", count, want)
	}

	var seized Queue
	count, failed = 0, 0
	run("Seize", func(core uint32, i int) {
		if i%2 == 0 {
			seized.AwaitSeize()
		} else if !seized.Seize() {
			atomic.AddInt64(&failed, 1)
			return
		}
		count++
		seized.Release(core)
	})
	if want := cores*rounds - int(failed); count != want {
		t.Errorf("Seize: %d of %d", count, want)
	}

	var ticket Ticket
	count = 0
	run("Ticket", func(uint32, int) {
		ticket.Spin()
		count++
		ticket.Release()
	})
	if count != cores*rounds {
		t.Errorf("Ticket: %d of %d", count, cores*rounds)
	}

	var e Elided
	count = 0
	run("Elided", func(core uint32, i int) {
		txn := e.Acquire(core)
		count++
		e.Release(core, txn)
	})
	if count != cores*rounds {
		t.Errorf("Elided: %d of %d", count, cores*rounds)
	}
}

// The turns of a Queue's nodes run over.
func TestQueueTurns(t *testing.T) {
	var q Queue
	q.cores[0].next = (1<<24 - 3) << 8 // turn -2 of node 1
	for i := range 10 {
		if q.Acquire(0); q.Join(1) {
			t.Fatalf("turn %d: the lock was given twice", i)
		}
		q.Release(0)
		q.Await(1)
		q.Release(1)
	}
}

// The instructions themselves, in a process of their own: processors without RTM do
// not know XBEGIN, those where it is switched off abort every transaction at once.
func TestInstructions(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("amd64 only")
	}
	if os.Getenv("LOCK_TEST_XBEGIN") != "" {
		word := uint32(0)
		commits := 0
		for range 1000 {
			if xbegin(&word) == Started {
				xend()
				commits++
			}
		}
		held := uint32(1)
		if status := xbegin(&held); status == Started {
			t.Fatal("a transaction began though the word was held")
		} else if commits > 0 && !WasHeld(status) {
			t.Logf("status %#x with the word held", status) // another reason came first
		}
		t.Logf("%d of 1000 transactions committed", commits)
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestInstructions$", "-test.v")
	cmd.Env = append(os.Environ(), "LOCK_TEST_XBEGIN=1")
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && (strings.Contains(string(out), "SIGILL") ||
		errors.As(err, &exit) && exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGILL) {
		t.Skip("this processor does not know XBEGIN")
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, "committed") || strings.Contains(line, "status") {
			t.Log(strings.TrimSpace(line))
		}
	}
}
