package lock_test

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"

	"hardtack/lock"
)

// A lock of the package stands where a sync.Mutex would.
func Example() {
	var (
		mu    lock.Elided
		total int
		wg    sync.WaitGroup
	)
	for i := range 4 {
		wg.Go(func() {
			mu.Lock()
			defer mu.Unlock()
			total += i
		})
	}
	wg.Wait()
	fmt.Println(total)
	// Output: 6
}

// Each goroutine that reads has a Reader of its own.
func ExampleBigReader() {
	var (
		mu     lock.BigReader
		prices = map[string]int{"bread": 2}
	)
	reader := mu.NewReader() // one for this goroutine
	defer reader.Close()

	reader.Lock()
	fmt.Println("bread costs", prices["bread"])
	reader.Unlock()

	mu.Lock() // waits until nobody reads
	prices["bread"] = 3
	mu.Unlock()

	reader.Lock()
	fmt.Println("bread costs", prices["bread"])
	reader.Unlock()
	// Output:
	// bread costs 2
	// bread costs 3
}

// A writer that does not want to wait for readers.
func ExampleBigReader_TryLock() {
	var mu lock.BigReader
	reader := mu.NewReader()
	defer reader.Close()

	reader.Lock()
	fmt.Println("while somebody reads:", mu.TryLock())
	reader.Unlock()
	fmt.Println("afterwards:", mu.TryLock())
	mu.Unlock()
	// Output:
	// while somebody reads: false
	// afterwards: true
}

// A reader that has something else to do while the data change.
func ExampleReader_TryLock() {
	var mu lock.BigReader
	reader := mu.NewReader()
	defer reader.Close()

	mu.Lock()
	if !reader.TryLock() {
		fmt.Println("the data change; an older copy will do")
	}
	mu.Unlock()
	// Output: the data change; an older copy will do
}

// Goroutines get the lock in the order in which they ask for it.
func ExampleCLH() {
	var (
		mu    lock.CLH
		order []int
		wg    sync.WaitGroup
	)
	mu.Lock()
	for i := range 3 {
		before := mu.Waiting()
		wg.Go(func() {
			mu.Lock()
			order = append(order, i)
			mu.Unlock()
		})
		for mu.Waiting() == before { // until this one is in the queue
			pause()
		}
	}
	mu.Unlock()
	wg.Wait()
	fmt.Println(order)
	// Output: [0 1 2]
}

// TryLock takes the lock only if nobody has it or waits for it.
func ExampleCLH_TryLock() {
	var mu lock.CLH
	fmt.Println(mu.TryLock())
	fmt.Println(mu.TryLock())
	mu.Unlock()
	// Output:
	// true
	// false
}

// A Ticket takes eight bytes, so that many objects can have a lock each.
func ExampleTicket() {
	type account struct {
		mu      lock.Ticket
		balance int
	}
	accounts := make([]account, 1000)
	deposit := func(i, amount int) {
		a := &accounts[i]
		a.mu.Lock()
		defer a.mu.Unlock()
		a.balance += amount
	}
	deposit(7, 100)
	deposit(7, 20)
	fmt.Println(accounts[7].balance)
	// Output: 120
}

// Every lock is a sync.Locker, and serves a sync.Cond.
func ExampleTicket_cond() {
	var mu lock.Ticket
	ready := false
	changed := sync.NewCond(&mu)
	go func() {
		mu.Lock()
		ready = true
		mu.Unlock()
		changed.Signal()
	}()
	mu.Lock()
	for !ready {
		changed.Wait()
	}
	mu.Unlock()
	fmt.Println("ready")
	// Output: ready
}

// Sections that touch different buckets run at the same time where the processor has
// transactions. Elsewhere the table has one plain lock.
func ExampleElided() {
	var (
		mu      lock.Elided
		buckets [64][]string
		wg      sync.WaitGroup
	)
	for i := range 64 {
		wg.Go(func() {
			word := fmt.Sprint("word ", i) // made before the section: it is short
			mu.Lock()
			buckets[i] = append(buckets[i], word)
			mu.Unlock()
		})
	}
	wg.Wait()
	fmt.Println(buckets[0], buckets[63])
	// Output: [word 0] [word 63]
}

// Locks of higher ranks are taken later. A build with -tags lockcheck panics where that
// is not so; other builds do not check.
func ExampleChecker_SetRank() {
	var table, row lock.Ticket
	table.SetRank(1, "table")
	row.SetRank(2, "row")

	table.Lock()
	row.Lock()
	fmt.Println("in order")
	row.Unlock()
	table.Unlock()
	// Output: in order
}

// A store that publishes: who sees the flag sees all that was written before.
func ExampleStoreRelease32() {
	var (
		text  string
		ready uint32
	)
	go func() {
		text = "written before the flag"
		lock.StoreRelease32(&ready, 1)
	}()
	for atomic.LoadUint32(&ready) == 0 {
		pause()
	}
	fmt.Println(text)
	// Output: written before the flag
}

// pause lets other goroutines run.
func pause() { runtime.Gosched() }
