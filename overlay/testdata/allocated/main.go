// Command allocated checks the count of bytes that a goroutine has allocated: exact
// for each size, not touched by others, kept across Ps, 0 at the start.
package main

import (
	"fmt"
	"runtime"
	"sync"

	"hardtack/kernel/base/checks"
)

var (
	keepSmall *[64]byte
	keepList  *node
	keepTiny  *int64
	keepLarge []byte
)

type node struct {
	next *node
	_    [5]uint64
}

func main() {
	if !checks.CountsAllocated() {
		panic("built without the topic")
	}
	const n = 1000
	expect("without pointers", n*64, func() {
		for range n {
			keepSmall = new([64]byte)
		}
	})
	expect("with pointers", n*48, func() {
		for range n {
			keepList = new(node)
		}
	})
	expect("large, in whole pages", 13<<13, func() { keepLarge = make([]byte, 100_000) })
	expect("nothing", 0, func() { keepList.next = keepList })
	expect("across Ps, beside others", n*64, func() {
		for range n {
			keepSmall = new([64]byte)
			runtime.Gosched()
		}
	})
	// Two of eight bytes share a block; the last P's may be open already.
	before := *checks.AllocatedCount()
	for i := range int64(n) {
		keepTiny = new(int64)
		*keepTiny = i
	}
	if got := *checks.AllocatedCount() - before; got > n*8+16 || got < n*8-16 {
		panic(fmt.Sprint("tiny: ", got))
	}
	fmt.Println("ok")
}

// expect runs f in a goroutine of its own, among others that allocate and
// collections, and compares what it allocated.
func expect(what string, want uint64, f func()) {
	stop := make(chan struct{})
	var others sync.WaitGroup
	for range 4 {
		others.Go(func() {
			var mine *[64]byte
			for {
				select {
				case <-stop:
					return
				default:
					mine = new([64]byte)
					runtime.Gosched()
				}
				_ = *mine
			}
		})
	}
	got := make(chan uint64)
	go func() {
		count := checks.AllocatedCount()
		if *count != 0 {
			panic(fmt.Sprint("a new goroutine begins at ", *count))
		}
		f()
		got <- *count
	}()
	took := <-got
	close(stop)
	others.Wait()
	runtime.GC()
	if took != want {
		panic(fmt.Sprintf("%s: %d bytes, want %d", what, took, want))
	}
}
