package futex

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
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

// testThread is a thread without a process.
type testThread struct {
	caller.Ctx
	Thread
	done chan linux.Errno
}

func newThread() *testThread {
	x := &testThread{done: make(chan linux.Errno, 1)}
	x.Init(&x.Ctx)
	return x
}

func (m *words) wait(t *testing.T, a uio.Addr, bitset uint32, deadline int64) *testThread {
	x := newThread()
	v := m.at(a).Load()
	go func() { x.done <- x.Wait(m, a, true, v, bitset, deadline) }()
	eventually(t, "wait", func() bool { return x.q.bucket.Load() != nil || len(x.done) > 0 })
	return x
}

const anyBit = linux.FUTEX_BITSET_MATCH_ANY

func TestWakeAndBitset(t *testing.T) {
	m := &words{id: 1}
	a := m.wait(t, 0, 1, 0)
	b := m.wait(t, 0, 2, 0)
	c := m.wait(t, 4, anyBit, 0)
	if n, _ := Wake(m, 0, true, 10, 2); n != 1 {
		t.Errorf("%d woken", n)
	}
	if e := <-b.done; e != 0 {
		t.Error(e)
	}
	if n, _ := Wake(m, 0, true, 10, anyBit); n != 1 || <-a.done != 0 {
		t.Errorf("%d woken", n)
	}
	if n, _ := Wake(m, 4, true, 1, anyBit); n != 1 || <-c.done != 0 {
		t.Errorf("%d woken", n)
	}
}

func TestErrors(t *testing.T) {
	m := &words{id: 2}
	m.at(0).Store(5)
	x := newThread()
	if e := x.Wait(m, 0, true, 4, anyBit, 0); e != linux.EAGAIN {
		t.Error(e)
	}
	if e := x.Wait(m, 2, true, 4, anyBit, 0); e != linux.EINVAL {
		t.Error(e)
	}
	if e := x.Wait(m, 4000, true, 4, anyBit, 0); e != linux.EFAULT {
		t.Error(e)
	}
	if e := x.Wait(m, 0, true, 5, anyBit, wait.Now()+1e6); e != linux.ETIMEDOUT {
		t.Error(e)
	}
	y := m.wait(t, 0, anyBit, 0)
	y.SetInterrupted(true)
	if e := <-y.done; e != linux.ERESTARTSYS {
		t.Error(e)
	}
	for i := range table {
		if table[i].first != nil {
			t.Fatal("somebody is left in a bucket")
		}
	}
}

func TestRequeue(t *testing.T) {
	m := &words{id: 3}
	var ws []*testThread
	for range 5 {
		ws = append(ws, m.wait(t, 0, anyBit, 0))
	}
	if _, _, e := Requeue(m, 0, 4, true, 1, 2, true, 99); e != linux.EAGAIN {
		t.Error(e)
	}
	woken, moved, e := Requeue(m, 0, 4, true, 1, 3, true, 0)
	if woken != 1 || moved != 3 || e != 0 {
		t.Errorf("%d %d %v", woken, moved, e)
	}
	if e := <-ws[0].done; e != 0 {
		t.Error(e)
	}
	if n, _ := Wake(m, 4, true, 10, anyBit); n != 3 {
		t.Errorf("%d at the second word", n)
	}
	if n, _ := Wake(m, 0, true, 10, anyBit); n != 1 {
		t.Errorf("%d at the first word", n)
	}
	// A moved waiter times out where it is.
	for left := int64(20e6); ; left *= 2 {
		x := m.wait(t, 0, anyBit, wait.Now()+left)
		_, moved, _ := Requeue(m, 0, 8, true, 0, 1, false, 0)
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

func TestWakeOp(t *testing.T) {
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
		n, e := WakeOp(m, 0, 4, true, 1, 1, x.op)
		want := 1
		if x.second {
			want = 2
		}
		if n != want || e != 0 || m.at(4).Load() != x.value {
			t.Errorf("%#x: %d %v value %d", x.op, n, e, m.at(4).Load())
		}
		Wake(m, 0, true, 9, anyBit)
		Wake(m, 4, true, 9, anyBit)
		<-a.done
		<-b.done
	}
}

func TestWaitV(t *testing.T) {
	m := &words{id: 6}
	s := newThread()
	list := []Word{{Addr: 0, Private: true}, {Addr: 4, Private: true}, {Addr: 8, Private: true}}
	done := make(chan int, 1)
	go func() {
		n, e := s.WaitV(m, list, 0)
		if e != 0 {
			t.Error(e)
		}
		done <- n
	}()
	eventually(t, "wake", func() bool {
		n, _ := Wake(m, 4, true, 1, anyBit)
		return n == 1
	})
	if n := <-done; n != 1 {
		t.Errorf("word %d", n)
	}
	m.at(8).Store(1)
	if _, e := s.WaitV(m, list, 0); e != linux.EAGAIN {
		t.Error(e)
	}
	m.at(8).Store(0)
	if _, e := s.WaitV(m, list, wait.Now()+1e6); e != linux.ETIMEDOUT {
		t.Error(e)
	}
	for i := range table {
		if table[i].first != nil {
			t.Fatal("somebody is left in a bucket")
		}
	}
}

// A mutex built on futexes: no wake-up is lost.
func TestMutex(t *testing.T) {
	m := &words{id: 5}
	word := m.at(0)
	count := 0
	var wg sync.WaitGroup
	for range 4 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			x := newThread()
			for range 2000 {
				if !word.CompareAndSwap(0, 1) {
					for word.Swap(2) != 0 {
						x.Wait(m, 0, true, 2, anyBit, 0)
					}
				}
				count++
				if word.Swap(0) == 2 {
					Wake(m, 0, true, 1, anyBit)
				}
			}
		}()
	}
	wg.Wait()
	if count != 8000 {
		t.Error(count)
	}
}

// eventually waits until ok.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !ok(); time.Sleep(50 * time.Microsecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: never", what)
		}
	}
}
