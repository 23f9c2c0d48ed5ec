// Command collector changes linked structures of all sizes while the collector runs, and
// checks that nothing of them is lost. With an argument it tells how many collections
// there were at least.
package main

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
	"weak"
)

// node has its own number, so that memory which was freed too early shows.
type node struct {
	next *node
	id   uint64
	self *node
}

func link(n int) (head *node) {
	for i := range n {
		head = &node{head, uint64(i), nil}
		head.self = head
	}
	return head
}

func check(what string, head *node, n int) {
	for p := head; p != nil; p = p.next {
		n--
		if p.id != uint64(n) || p.self != p {
			panic(what + ": a node was lost")
		}
	}
	if n != 0 {
		panic(what + ": the list ends too early")
	}
}

// lists moves the rest of each list behind pointers that were scanned already.
func lists(rounds int) {
	for range rounds {
		a, b := link(2000), (*node)(nil)
		for a != nil { // turns it round
			a, a.next, b = a.next, b, a
			if a != nil && a.id%500 == 0 {
				runtime.Gosched()
			}
		}
		for b != nil {
			b, b.next, a = b.next, a, b
		}
		check("list", a, 2000)
	}
}

// arrays have sizes around those at which the collector takes objects apart.
func arrays(rounds int) {
	for _, size := range []int{60, 64, 65, 255, 256, 257, 511, 513, 2047, 2048, 3000, 4000, 4095, 4096, 4097, 9000, 40000, 300000} {
		for range max(1, rounds*500/size) {
			a := make([]*node, size)
			for i := range a {
				a[i] = &node{nil, uint64(i), nil}
				if i >= size/2 { // moved to where a mark may have passed
					a[i-size/2], a[i] = a[i], a[i-size/2]
				}
			}
			seen := make(map[uint64]bool, size)
			for _, p := range a {
				seen[p.id] = true
			}
			if len(seen) != size {
				panic(fmt.Sprint("array of ", size, ": an element was lost"))
			}
		}
	}
}

// structs with a pointer at each end, of sizes with and without a header.
type ends[T any] struct {
	first *node
	_     T
	last  *node
}

func bigs[T any](rounds int) {
	var keep [64]*ends[T]
	for i := range rounds * 64 {
		e := &ends[T]{first: link(3), last: link(5)}
		if old := keep[i%64]; old != nil {
			check("first", old.first, 3)
			check("last", old.last, 5)
		}
		keep[i%64] = e
	}
}

// weaks has weak pointers and clean-ups in numbers.
func weaks(rounds int) {
	var cleaned atomic.Int64
	for range rounds {
		strong := link(300)
		var all []weak.Pointer[node]
		for p := strong; p != nil; p = p.next {
			all = append(all, weak.Make(p))
			runtime.AddCleanup(p, func(int) { cleaned.Add(1) }, 0)
		}
		runtime.Gosched()
		for i, w := range all {
			if p := w.Value(); p == nil || p.id != uint64(299-i) {
				panic("a weak pointer to what lives is nil")
			}
		}
		check("weak", strong, 300)
	}
}

// deep grows and shrinks stacks that hold the only pointers.
func deep(n int, p *node) *node {
	var pad [40]*node
	pad[n%40] = &node{p, uint64(n), nil}
	if n == 0 {
		return pad[0]
	}
	q := deep(n-1, pad[n%40])
	if pad[n%40].id != uint64(n) {
		panic("a stack's node was lost")
	}
	return q
}

// sleepers holds the time for which a goroutine that sleeps is late.
func sleepers(stop *atomic.Bool) {
	for !stop.Load() {
		time.Sleep(200 * time.Microsecond)
		lists(1)
	}
}

func main() {
	rounds := 20
	if len(os.Args) > 1 {
		n, err := strconv.Atoi(os.Args[1])
		if err != nil {
			panic(err)
		}
		rounds = n
	}
	debug.SetGCPercent(20)
	alive := link(100_000)
	var stop atomic.Bool
	var others, all sync.WaitGroup
	others.Go(func() { sleepers(&stop) })
	for _, f := range []func(){
		func() { lists(rounds * 4) },
		func() { arrays(rounds) },
		func() { bigs[[8]byte](rounds * 4) },
		func() { bigs[[480]byte](rounds * 4) },
		func() { bigs[[520]byte](rounds * 4) },
		func() { bigs[[3000]byte](rounds) },
		func() { bigs[[20000]byte](rounds) },
		func() { bigs[[30000]byte](rounds) },
		func() { bigs[[100000]byte](rounds) },
		func() { weaks(rounds) },
		func() {
			for range rounds {
				deep(2000, nil)
			}
		},
	} {
		all.Go(f)
	}
	all.Wait()
	stop.Store(true)
	others.Wait()
	check("alive", alive, 100_000)
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	if m.NumGC < 5 {
		panic(fmt.Sprint("only ", m.NumGC, " collections"))
	}
	// What is garbage goes, though most of it was allocated black.
	alive = nil
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	if m.HeapAlloc > 4<<20 {
		panic(fmt.Sprint(m.HeapAlloc, " bytes are left of what nothing leads to"))
	}
	fmt.Println("ok")
}
