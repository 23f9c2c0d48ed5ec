package ipc

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"hardtack/abi/linux"
	"hardtack/test/interleave"

	"pgregory.net/rapid"
)

// expire does what a timer does when it fires, and takes those that are ready then.
func (w *looseWorld) expire(now uint64) {
	for next := w.n.Expire(0, 0, now); next != 0; {
		next = w.n.Expire(0, next, now)
	}
	w.after()
}

// Random operations with and without deadlines. What ends which wait and when is known
// from a list of deadlines; a timer that fires when it was told ends them all in time.
func TestLimits(t *testing.T) {
	expired, woken := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		w := newLoose(t, true)
		n, now := w.n, uint64(100)
		note, _ := n.NewNotification(0)
		until := map[uint32]uint64{} // of those that wait
		for range rapid.IntRange(10, 80).Draw(t, "steps") {
			var ready []uint32
			for i := range uint32(6) {
				if w.ready[i] {
					ready = append(ready, i)
				}
			}
			what := rapid.SampledFrom([]string{"call", "recv", "recv", "reply", "send", "wait", "wait", "signal", "cancel", "close", "time", "time"}).Draw(t, "what")
			if len(ready) == 0 {
				what = "time"
			}
			ep := w.ends[rapid.IntRange(0, 1).Draw(t, "endpoint")]
			switch what {
			case "time":
				now += rapid.Uint64Range(0, 4).Draw(t, "time")
				if now < n.Earliest() {
					break // the timer does not fire
				}
				var over []uint32
				for i, d := range until {
					if d <= now {
						over = append(over, i)
					}
				}
				w.expire(now)
				for _, i := range over {
					if !w.ready[i] || n.Result(i).Err != linux.ETIMEDOUT {
						t.Fatalf("thread %d waits until %d, at %d it is ready: %v, %v", i, until[i], now, w.ready[i], n.Result(i).Err)
					}
					delete(until, i)
					n.Result(i).Err = 0
					expired++
				}
			case "cancel":
				i := rapid.Uint32Range(1, 5).Draw(t, "thread")
				n.Cancel(0, makeID(int(i), n.Thread(i).generation))
				w.after()
			case "close":
				at := rapid.IntRange(0, 1).Draw(t, "closed")
				n.DestroyEndpoint(0, w.ends[at])
				w.after()
				w.ends[at], _ = n.NewEndpoint(0)
			default:
				self := rapid.SampledFrom(ready).Draw(t, "thread")
				deadline := rapid.SampledFrom([]uint64{Forever, Now, 1, now, now + 1, now + 3, now + 9, Forever - 1}).Draw(t, "deadline")
				timed := deadline != Forever && deadline != Now && what != "signal"
				before := n.Earliest()
				if timed && n.Limit(self, deadline) != (deadline < before) {
					t.Fatalf("a limit at %d where the earliest is %d", deadline, before)
				}
				delete(w.ready, self)
				n.Enter(0, self)
				run := self
				switch what {
				case "call":
					run = n.Call(0, ep, 0, 0, deadline).Run
				case "recv":
					run = n.Recv(0, ep, deadline).Run
				case "send":
					run = n.Send(0, ep, 0, 0, deadline).Run
				case "reply":
					run = n.ReplyRecv(0, n.Result(self).Token, 0, ep, deadline).Run
				case "wait":
					run = n.Wait(0, note, deadline).Run
				case "signal":
					n.Signal(0, note, 1)
				}
				switch {
				case run != self && timed:
					until[self] = deadline
				case timed:
					n.Unlimit(self)
				}
				w.after()
			}
			for i := range uint32(6) {
				d, waits := until[i]
				if w.ready[i] && waits {
					delete(until, i)
					if n.Result(i).Err == linux.ETIMEDOUT {
						t.Fatalf("thread %d timed out at %d, its deadline is %d", i, now, d)
					}
					d = 0
					woken++
				}
				if got := n.Thread(i).deadline; got != d {
					t.Fatalf("%s: thread %d has the deadline %d, want %d", what, i, got, d)
				}
				if d != 0 && d < n.Earliest() {
					t.Fatalf("%s: thread %d waits until %d, somebody looks at %d", what, i, d, n.Earliest())
				}
			}
		}
	})
	least := 100
	if testing.Short() { // fewer histories
		least = 20
	}
	if expired < least || woken < least {
		t.Errorf("only %d limits were over and %d not", expired, woken)
	}
}

// Limits of the same length again and again: nobody need be told but about once in
// that time.
func TestLimitsSame(t *testing.T) {
	const length, calls = 1000, 20_000
	n := newNucleus(t, 1)
	n.SetLoose()
	id, _ := n.NewThread(0, 0)
	note, _ := n.NewNotification(0)
	i, told, looks := id.Index(), 0, 0
	for now := uint64(1); now <= calls; now++ {
		if now >= n.Earliest() {
			for next := n.Expire(0, 0, now); next != 0; {
				next = n.Expire(0, next, now)
			}
			looks++
		}
		if n.Limit(i, now+length) {
			told++
		}
		n.Enter(0, i)
		if n.Wait(0, note, now+length).Run == i {
			t.Fatal("it did not wait")
		}
		n.Signal(0, note, 1)
		n.Leave(0)
		for n.Take(0, 0) != 0 {
		}
	}
	if most := calls/length + 1; told > most || looks > most || looks < most/2-1 {
		t.Errorf("%d calls with limits of %d: told %d times, looked %d times", calls, length, told, looks)
	}
}

// Threads on some cores wait with deadlines of all lengths while one core looks when it
// was told to, as a timer does. No deadline may be forgotten, none come early.
func TestLimitsAtOnce(t *testing.T) {
	const cores = 4
	if Control() == "none" {
		t.Skip("one core only")
	}
	n := newNucleus(t, cores)
	n.SetLoose()
	var clock atomic.Uint64
	var busy sync.WaitGroup
	var over atomic.Bool
	var wrong atomic.Pointer[string]
	var woken [MaxThreads]atomic.Bool
	clock.Store(1)
	note, _ := n.NewNotification(0)
	for core := uint32(1); core < cores; core++ {
		id, _ := n.NewThread(core, 0)
		i := id.Index()
		busy.Go(func() {
			for turn := uint64(0); turn < 400; turn++ {
				deadline := clock.Load() + (turn*7+uint64(core)*3)%19
				n.Limit(i, deadline) // who looks reads Earliest all the time
				woken[i].Store(false)
				n.Enter(core, i)
				run := n.Wait(core, note, deadline).Run
				n.Leave(core)
				if run == i {
					n.Unlimit(i)
					continue // a signal was there
				}
				for !woken[i].Load() {
					if wrong.Load() != nil {
						return
					}
					if now := clock.Load(); now > deadline+1_000_000 {
						problem := fmt.Sprintf("a deadline at %d is forgotten at %d, the earliest is %d", deadline, now, n.Earliest())
						wrong.Store(&problem)
						return
					}
					runtime.Gosched()
				}
				if r := n.Result(i); r.Err == linux.ETIMEDOUT && clock.Load() < deadline {
					problem := fmt.Sprintf("a deadline at %d came at %d", deadline, clock.Load())
					wrong.Store(&problem)
					return
				}
			}
		})
	}
	go func() {
		busy.Wait()
		over.Store(true)
	}()
	for turn := 0; !over.Load(); turn++ {
		now := clock.Add(1)
		if now >= n.Earliest() {
			for next := n.Expire(0, 0, now); next != 0; {
				next = n.Expire(0, next, now)
			}
		}
		if turn%64 == 0 {
			n.Signal(0, note, 1)
		}
		n.Put(0) // Signal may have made somebody current
		for i := n.Take(0, 0); i != 0; i = n.Take(0, 0) {
			woken[i].Store(true)
		}
		runtime.Gosched()
	}
	if problem := wrong.Load(); problem != nil {
		t.Error(*problem)
	}
}

// A thread announces its deadline and waits while the threads are looked at, as
// programs for the model of package interleave. In all interleavings it has been woken
// in the end, or the next look comes in time.
func TestLimitAndExpire(t *testing.T) {
	const deadline, earliest, where, thread = 0, 1, 2, 3
	const ready, waits, forever, mine = 0, 1, 9, 5
	type cpu = interleave.CPU
	waiter := func(bug string) func(*cpu) {
		return func(c *cpu) {
			switch c.PC {
			case 0:
				c.PC = 1
				switch bug {
				case "has no fence":
					c.Store(deadline, mine)
				case "looks first":
				default:
					c.Swap(deadline, mine)
				}
			case 1:
				if c.PC = 3; c.Load(earliest) > mine {
					c.PC = 2
				}
			case 2: // lower, and tell
				old := c.Load(earliest)
				c.PC = 6
				c.R[0] = old
			case 3:
				c.PC = 4
				if bug == "looks first" {
					c.Swap(deadline, mine)
				}
			case 4:
				c.PC = interleave.End
				c.Store(where, waits)
			case 6:
				if c.R[0] <= mine {
					c.PC = 3
				} else if c.PC = 2; c.CAS(earliest, c.R[0], mine) {
					c.PC = 3
				}
			}
		}
	}
	// looker is Expire at a time at or after the deadline, or before it.
	looker := func(bug string, now uint8) func(*cpu) {
		return func(c *cpu) {
			switch c.PC {
			case 0:
				c.PC = 1
				if bug != "resets last" {
					c.Swap(earliest, forever)
				}
			case 1:
				if c.Load(thread) != 0 || !c.CAS(thread, 0, 1) {
					c.Wait()
				}
				c.PC = 2
			case 2:
				c.R[1] = c.Load(deadline)
				c.PC = 3
			case 3:
				if c.PC = 6; c.R[1] != 0 && c.R[1] <= now && c.Load(where) == waits {
					c.PC = 4
				}
			case 4:
				c.R[1] = 0
				c.Store(deadline, 0)
				c.PC = 5
			case 5:
				c.Store(where, ready)
				c.PC = 6
			case 6:
				c.Store(thread, 0)
				c.PC = 7
			case 7:
				c.PC = 8
				if bug == "resets last" {
					c.Swap(earliest, forever)
				}
			case 8:
				if c.PC = interleave.End; c.R[1] != 0 {
					c.PC = 9
				}
			case 9:
				c.R[2] = c.Load(earliest)
				if c.PC = 10; c.R[2] <= c.R[1] {
					c.PC = interleave.End
				}
			case 10:
				if c.PC = 9; c.CAS(earliest, c.R[2], c.R[1]) {
					c.PC = interleave.End
				}
			}
		}
	}
	for _, now := range []uint8{mine - 1, mine} {
		for _, bug := range []string{"", "has no fence", "looks first", "resets last"} {
			var s interleave.State
			s.Mem[earliest] = now // why somebody looks
			r, err := interleave.Explore(interleave.Test{
				Start:    s,
				Programs: []func(*cpu){waiter(bug), looker(bug, now), looker(bug, now)},
				Limit:    400_000,
				AtEnd: func(s *interleave.State) error {
					if s.Mem[where] == waits && s.Mem[earliest] > mine {
						return fmt.Errorf("it waits until %d, and the next look is at %d", mine, s.Mem[earliest])
					}
					return nil
				},
			})
			switch {
			case bug == "" && err != nil:
				t.Error(err)
			case bug == "" && r.States < 200:
				t.Errorf("only %d states", r.States)
			case bug != "" && (err == nil || strings.Contains(err.Error(), "more than")):
				t.Errorf("a thread that %s passes: %v", bug, err)
			case bug == "":
				t.Logf("%d states, %d ends", r.States, r.Ends)
			}
		}
	}
}
