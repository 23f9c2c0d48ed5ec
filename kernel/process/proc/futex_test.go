package proc

import (
	"sync"
	"sync/atomic"
	"testing"

	"hardtack/abi/linux"
	"hardtack/kernel/base/uio"
	"hardtack/kernel/base/wait"
	"hardtack/kernel/mm/vm"
)

// words is a fake address space: some words, by address.
type words struct {
	id uint64
	w  [64]atomic.Uint32
}

func (m *words) at(a uio.Addr) *atomic.Uint32 { return &m.w[a/4] }

func (m *words) LoadU32(a uio.Addr) (uint32, linux.Errno) {
	if int(a/4) >= len(m.w) {
		return 0, linux.EFAULT
	}
	return m.at(a).Load(), 0
}

func (m *words) CASU32(a uio.Addr, old, n uint32) (uint32, linux.Errno) {
	for {
		v := m.at(a).Load()
		if v != old {
			return v, 0
		}
		if m.at(a).CompareAndSwap(old, n) {
			return old, 0
		}
	}
}

func (m *words) FutexKey(a uio.Addr, private, write bool) (vm.Key, linux.Errno) {
	if a&3 != 0 {
		return vm.Key{}, linux.EINVAL
	}
	return vm.Key{ID: m.id, Off: uint64(a)}, 0
}

type waiter struct {
	wait.Sleeper
	w    futexWaiter
	done chan linux.Errno
}

func (m *words) wait(t *testing.T, a uio.Addr, bitset uint32, deadline int64) *waiter {
	x := &waiter{done: make(chan linux.Errno, 1)}
	v := m.at(a).Load()
	go func() { x.done <- futexWait(m, &x.Sleeper, &x.w, a, true, v, bitset, deadline) }()
	eventually(t, "wait", func() bool { return x.w.bucket.Load() != nil || len(x.done) > 0 })
	return x
}

const anyBit = linux.FUTEX_BITSET_MATCH_ANY

func TestFutexWakeAndBitset(t *testing.T) {
	m := &words{id: 1}
	a := m.wait(t, 0, 1, 0)
	b := m.wait(t, 0, 2, 0)
	c := m.wait(t, 4, anyBit, 0)
	if n, _ := futexWake(m, 0, true, 10, 2); n != 1 {
		t.Errorf("%d woken", n)
	}
	if e := <-b.done; e != 0 {
		t.Error(e)
	}
	if n, _ := futexWake(m, 0, true, 10, anyBit); n != 1 || <-a.done != 0 {
		t.Errorf("%d woken", n)
	}
	if n, _ := futexWake(m, 4, true, 1, anyBit); n != 1 || <-c.done != 0 {
		t.Errorf("%d woken", n)
	}
}

func TestFutexErrors(t *testing.T) {
	m := &words{id: 2}
	m.at(0).Store(5)
	var x waiter
	if e := futexWait(m, &x.Sleeper, &x.w, 0, true, 4, anyBit, 0); e != linux.EAGAIN {
		t.Error(e)
	}
	if e := futexWait(m, &x.Sleeper, &x.w, 2, true, 4, anyBit, 0); e != linux.EINVAL {
		t.Error(e)
	}
	if e := futexWait(m, &x.Sleeper, &x.w, 4000, true, 4, anyBit, 0); e != linux.EFAULT {
		t.Error(e)
	}
	if e := futexWait(m, &x.Sleeper, &x.w, 0, true, 5, anyBit, wait.Now()+1e6); e != linux.ETIMEDOUT {
		t.Error(e)
	}
	y := m.wait(t, 0, anyBit, 0)
	y.SetInterrupted(true)
	if e := <-y.done; e != linux.ERESTARTSYS {
		t.Error(e)
	}
	for i := range futexes {
		if futexes[i].first != nil {
			t.Fatal("somebody is left in a bucket")
		}
	}
}

func TestFutexRequeue(t *testing.T) {
	m := &words{id: 3}
	var ws []*waiter
	for range 5 {
		ws = append(ws, m.wait(t, 0, anyBit, 0))
	}
	if _, _, e := futexRequeue(m, 0, 4, true, 1, 2, true, 99); e != linux.EAGAIN {
		t.Error(e)
	}
	woken, moved, e := futexRequeue(m, 0, 4, true, 1, 3, true, 0)
	if woken != 1 || moved != 3 || e != 0 {
		t.Errorf("%d %d %v", woken, moved, e)
	}
	if e := <-ws[0].done; e != 0 {
		t.Error(e)
	}
	if n, _ := futexWake(m, 4, true, 10, anyBit); n != 3 {
		t.Errorf("%d at the second word", n)
	}
	if n, _ := futexWake(m, 0, true, 10, anyBit); n != 1 {
		t.Errorf("%d at the first word", n)
	}
	// A moved waiter times out where it is.
	for left := int64(20e6); ; left *= 2 {
		x := m.wait(t, 0, anyBit, wait.Now()+left)
		_, moved, _ := futexRequeue(m, 0, 8, true, 0, 1, false, 0)
		if e := <-x.done; e != linux.ETIMEDOUT {
			t.Error(e)
		}
		if moved == 1 {
			break
		}
		if left > 10e9 { // else it timed out before
			t.Fatal("not moved")
		}
	}
}

func TestFutexWakeOp(t *testing.T) {
	op := func(op, cmp, oparg, cmparg uint32) uint32 {
		return op<<28 | cmp<<24 | oparg&0xfff<<12 | cmparg&0xfff
	}
	for _, x := range []struct {
		op         uint32
		old, value uint32
		second     bool
	}{
		{op(0, 0, 7, 3), 3, 7, true},
		{op(1, 1, 2, 3), 3, 5, false},
		{op(1, 2, 0xfff, 4), 3, 2, true}, // add -1; 3 < 4
		{op(2, 4, 4, 3), 3, 7, false},
		{op(3, 5, 1, 3), 3, 2, true},
		{op(4, 3, 1, 2), 3, 2, false},
		{op(8|2, 0, 5, 0), 0, 32, true}, // or 1<<5
	} {
		m := &words{id: 4}
		a := m.wait(t, 0, anyBit, 0)
		b := m.wait(t, 4, anyBit, 0)
		m.at(4).Store(x.old)
		n, e := futexWakeOp(m, 0, 4, true, 1, 1, x.op)
		want := 1
		if x.second {
			want = 2
		}
		if n != want || e != 0 || m.at(4).Load() != x.value {
			t.Errorf("%#x: %d %v value %d", x.op, n, e, m.at(4).Load())
		}
		futexWake(m, 0, true, 9, anyBit)
		futexWake(m, 4, true, 9, anyBit)
		<-a.done
		<-b.done
	}
}

func TestFutexWaitV(t *testing.T) {
	m := &words{id: 6}
	var s wait.Sleeper
	list := []FutexWord{{Addr: 0, Private: true}, {Addr: 4, Private: true}, {Addr: 8, Private: true}}
	done := make(chan int, 1)
	go func() {
		n, e := futexWaitV(m, &s, list, 0)
		if e != 0 {
			t.Error(e)
		}
		done <- n
	}()
	eventually(t, "wake", func() bool {
		n, _ := futexWake(m, 4, true, 1, anyBit)
		return n == 1
	})
	if n := <-done; n != 1 {
		t.Errorf("word %d", n)
	}
	m.at(8).Store(1)
	if _, e := futexWaitV(m, &s, list, 0); e != linux.EAGAIN {
		t.Error(e)
	}
	m.at(8).Store(0)
	if _, e := futexWaitV(m, &s, list, wait.Now()+1e6); e != linux.ETIMEDOUT {
		t.Error(e)
	}
	for i := range futexes {
		if futexes[i].first != nil {
			t.Fatal("somebody is left in a bucket")
		}
	}
}

// A mutex built on futexes: no wake-up is lost.
func TestFutexMutex(t *testing.T) {
	m := &words{id: 5}
	word := m.at(0)
	count := 0
	var wg sync.WaitGroup
	for range 4 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			var x waiter
			for range 2000 {
				if !word.CompareAndSwap(0, 1) {
					for word.Swap(2) != 0 {
						futexWait(m, &x.Sleeper, &x.w, 0, true, 2, anyBit, 0)
					}
				}
				count++
				if word.Swap(0) == 2 {
					futexWake(m, 0, true, 1, anyBit)
				}
			}
		}()
	}
	wg.Wait()
	if count != 8000 {
		t.Error(count)
	}
}

// Robust lists and clear_child_tid tell the waiters of a dying thread.
func TestThreadDeathWakes(t *testing.T) {
	asInit(func(c *Thread) {
		pid := c.spawn(t, fork, func(c *Thread) {
			p := c.page(t, 4096)
			const head, lock, clear = 0, 64, 128
			store := func(off, v uint64) { c.Space.StoreU64(uio.Addr(p+off), v) }
			store(head, p+lock) // one entry, whose next is the head
			store(lock, p+head)
			store(head+8, 8) // the lock word is 8 behind the entry
			gate := make(chan bool)
			tid := c.spawn(t, CloneArgs{Flags: threadFlags, Stack: 4096}, func(c *Thread) {
				c.SetRobustList(p + head)
				c.SetClearTID(p + clear)
				<-gate
			})
			word := uint32(tid) | linux.FUTEX_WAITERS
			c.Space.StoreU32(uio.Addr(p+lock+8), word)
			c.Space.StoreU32(uio.Addr(p+clear), uint32(tid))
			close(gate)
			if e := c.FutexWait(uio.Addr(p+lock+8), false, word, anyBit, wait.Now()+60e9); e != 0 && e != linux.EAGAIN {
				t.Error(e)
			}
			if v, _ := c.Space.LoadU32(uio.Addr(p + lock + 8)); v != linux.FUTEX_WAITERS|linux.FUTEX_OWNER_DIED {
				t.Errorf("lock word %#x", v)
			}
			if e := c.FutexWait(uio.Addr(p+clear), false, uint32(tid), anyBit, wait.Now()+60e9); e != 0 && e != linux.EAGAIN {
				t.Error(e)
			}
			if v, _ := c.Space.LoadU32(uio.Addr(p + clear)); v != 0 {
				t.Errorf("clear_child_tid %#x", v)
			}
			// A list in circles ends, too.
			store(lock, p+lock)
			c.SetRobustList(p + head)
		})
		c.waitFor(t, pid)
	})
}
