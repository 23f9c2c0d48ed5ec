package eventfd

import (
	"encoding/binary"
	"sync"
	"testing"
	"time"

	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/uio"
	"hardtack/kernel/base/wait"
	"hardtack/kernel/fs/vfs"
)

func read(c *caller.Ctx, f *vfs.File) (uint64, linux.Errno) {
	b := make([]byte, 8)
	_, e := f.Ops.Read(c, f, uio.Bytes(b), 0)
	return binary.LittleEndian.Uint64(b), e
}

func write(c *caller.Ctx, f *vfs.File, n uint64) linux.Errno {
	_, e := f.Ops.Write(c, f, uio.Bytes(binary.LittleEndian.AppendUint64(nil, n)), 0)
	return e
}

func TestCounter(t *testing.T) {
	c := caller.NewKernelCtx()
	f := New(3, linux.EFD_NONBLOCK)
	if ev := f.Ops.Ready(f); ev != wait.In|wait.Out {
		t.Fatal(ev)
	}
	write(c, f, 4)
	if n, e := read(c, f); n != 7 || e != 0 {
		t.Fatal(n, e)
	}
	if _, e := read(c, f); e != linux.EAGAIN {
		t.Fatal(e)
	}
	if e := write(c, f, ^uint64(0)); e != linux.EINVAL {
		t.Fatal(e)
	}
	if e := write(c, f, maxCount); e != 0 || f.Ops.Ready(f)&wait.Out != 0 {
		t.Fatal(e)
	}
	if e := write(c, f, 1); e != linux.EAGAIN {
		t.Fatal(e)
	}
	if _, e := f.Ops.Read(c, f, uio.Bytes(make([]byte, 7)), 0); e != linux.EINVAL {
		t.Fatal(e)
	}
}

func TestSemaphore(t *testing.T) {
	c := caller.NewKernelCtx()
	f := New(2, linux.EFD_NONBLOCK|linux.EFD_SEMAPHORE)
	for range 2 {
		if n, e := read(c, f); n != 1 || e != 0 {
			t.Fatal(n, e)
		}
	}
	if _, e := read(c, f); e != linux.EAGAIN {
		t.Fatal(e)
	}
}

// What several writers add, several blocking readers take: no more, no less.
func TestBlocking(t *testing.T) {
	f := New(0, 0)
	const workers, rounds = 4, 500
	var sum, taken uint64
	var mu sync.Mutex
	var wg sync.WaitGroup
	stop := make(chan *caller.Ctx, workers)
	for range workers {
		wg.Add(2)
		go func() {
			defer wg.Done()
			c := caller.NewKernelCtx()
			for i := range uint64(rounds) {
				if e := write(c, f, i); e != 0 {
					t.Error(e)
				}
				mu.Lock()
				sum += i
				mu.Unlock()
			}
		}()
		c := caller.NewKernelCtx()
		stop <- c
		go func() {
			defer wg.Done()
			for {
				n, e := read(c, f)
				if e != 0 {
					return
				}
				mu.Lock()
				taken += n
				mu.Unlock()
			}
		}()
	}
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		mu.Lock()
		done := sum == workers*rounds*(rounds-1)/2 && taken == sum
		mu.Unlock()
		if done {
			break
		}
		if time.Now().After(end) {
			t.Fatal(sum, taken)
		}
	}
	close(stop)
	for c := range stop {
		c.SetInterrupted(true)
	}
	wg.Wait()
}
