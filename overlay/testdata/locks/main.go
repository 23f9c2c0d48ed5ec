// Command locks takes locks in right and wrong orders and says what the runtime's
// checker counted; the checker itself prints to standard error.
package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"

	"hardtack/kernel/base/checks"
)

type account struct {
	mu   sync.Mutex
	data sync.RWMutex
	last sync.Mutex
}

// counted is a number of the checker's.
func counted(name string) int {
	for _, line := range strings.Split(string(checks.LocksText()), "\n") {
		if rest, ok := strings.CutPrefix(line, name+" "); ok {
			n, _ := strconv.Atoi(rest)
			return n
		}
	}
	return -1
}

// expect runs f in a goroutine of its own and compares what was counted.
func expect(what string, inversions int, f func()) {
	before := counted("inversions")
	done := make(chan bool)
	go func() { defer close(done); f() }()
	<-done
	if n := counted("inversions") - before; n != inversions {
		fmt.Printf("%s: %d inversions, want %d\n", what, n, inversions)
		os.Exit(1)
	}
}

// Three places that take locks of one class, which nothing tells at first.

//go:noinline
func lockX(a *account) { a.mu.Lock() }

//go:noinline
func lockY(a *account) { a.mu.Lock() }

//go:noinline
func lockZ(a *account) { a.mu.Lock() }

//go:noinline
func lockData(a *account) { a.data.RLock() }

func main() {
	if !checks.ChecksLocks() {
		panic("built without the topic")
	}
	var a, b, c account
	expect("one order", 0, func() {
		a.mu.Lock()
		a.data.RLock()
		a.data.RUnlock()
		a.mu.Unlock()
	})
	expect("the same in another object, which no place has seen", 0, func() {
		b.mu.Lock()
		b.data.Lock()
		b.last.Lock()
		b.last.Unlock()
		b.data.Unlock()
		b.mu.Unlock()
	})
	expect("two of a class", 0, func() {
		a.mu.Lock()
		b.mu.Lock()
		a.mu.Unlock()
		b.mu.Unlock()
	})
	expect("what cannot wait", 0, func() {
		c.last.Lock()
		if !c.data.TryRLock() {
			panic("it is free")
		}
		c.data.RUnlock()
		c.last.Unlock()
	})
	// Until here the places of a and b are strangers: no lock has been taken at two.
	expect("the same place, another lock", 0, func() {
		lockData(&a)
		a.data.RUnlock()
	})
	expect("two places turn out to be one class, and the order is wrong", 1, func() {
		lockData(&a)
		a.mu.Lock()
		a.mu.Unlock()
		a.data.RUnlock()
	})
	expect("the same again is not told twice", 0, func() {
		lockData(&a)
		a.mu.Lock()
		a.mu.Unlock()
		a.data.RUnlock()
	})
	expect("a way of two orders", 1, func() {
		lockData(&b) // of b's class from here on
		b.data.RUnlock()
		for _, first := range []*account{&b} {
			first.last.Lock()
			first.mu.Lock()
			first.mu.Unlock()
			first.last.Unlock()
		}
	})
	expect("one lock twice", 1, func() {
		lockData(&c)
		c.data.RLock()
		c.data.RUnlock()
		c.data.RUnlock()
	})
	expect("orders among three places that turn out to be one class", 0, func() {
		var x, y, z account
		lockX(&x)
		lockY(&y)
		x.mu.Unlock()
		lockZ(&z)
		y.mu.Unlock()
		z.mu.Unlock()
		for _, lock := range []func(*account){lockY, lockZ} {
			lock(&x)
			x.mu.Unlock()
		}
	})
	expect("more locks than are noted", 0, func() {
		many := make([]account, 40)
		for i := range many {
			many[i].mu.Lock()
		}
		for i := range many {
			many[i].mu.Unlock()
		}
	})
	if counted("foreign") != 0 {
		fmt.Println("a lock beyond those that are noted was counted as another's")
		os.Exit(1)
	}
	a.mu.Lock()
	done := make(chan bool)
	go func() { a.mu.Unlock(); close(done) }()
	<-done
	if counted("foreign") != 1 {
		fmt.Println("a release by another goroutine was not counted")
		os.Exit(1)
	}
	fmt.Println("ok")
}
