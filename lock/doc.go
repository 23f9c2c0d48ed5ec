// Package lock holds locks for short critical sections, and stores that publish
// in memory shared with other processes.
//
//	var mu lock.BigReader     // readers do not slow one another down
//
//	reader := mu.NewReader()  // one for each goroutine that reads
//	reader.Lock()
//	price := prices["bread"]
//	reader.Unlock()
//
//	mu.Lock()                 // waits until nobody reads
//	prices["bread"] = 3
//	mu.Unlock()
//
// Begin with sync.Mutex; the guide docs/guides/lock.md tells when another lock is
// better, and has programs to copy. Each lock is a sync.Locker with TryLock, for any Go
// program, and its zero value is unlocked:
//
//	CLH        a queue: first come, first served, each waiter looks at a line of its own
//	Ticket     two counters: first come, first served, eight bytes
//	BigReader  readers touch only their own line, a writer visits all of them
//	Elided     a critical section is a hardware transaction while that pays, else a
//	           lock that barges as sync.Mutex does
//
// CLH and Ticket are never for more runnable threads than cores: the one whose turn
// it is may not be running, and all others wait until it does. With four threads for
// each core a median Lock took 150 µs, and up to 500 µs on a busy machine, where
// sync.Mutex and Elided took 50 ns. Threads of other processes count too.
//
// Locks for code on numbered cores outside of the Go scheduler, as a kernel's nucleus
// is, are in package lock/core, which is for this module only.
//
// # Waiting
//
// Waiters spin, then give their processor to other goroutines, then nap: a waiter
// that spins on costs whoever would release the lock its time slice. Locks that are
// held across a wait for something else want sync.Mutex, which parks at once.
//
// # Order
//
// Locks of the package keep no order among themselves but the one their users
// give them: SetRank. Built with -tags lockcheck, every Lock checks that no lock of
// a higher rank is held by the goroutine (locks of one rank are taken by ascending
// address), that it does not hold this lock already, and every Unlock that the
// goroutine is the owner; what is wrong panics and names both locks. A rank of 0 is
// outside the order. Without the tag the checks are not compiled.
//
// # Memory order
//
// Release is a plain store (StoreRelease32) wherever nobody has to be woken: on
// amd64 stores are not reordered with earlier loads or stores (Intel SDM volume 3A,
// 8.2.2), so all of the critical section is visible before it. Acquisition is a
// locked instruction, which no later load passes (8.2.3.9), or a load that sees the
// release store. Elsewhere, and under the race detector, both are operations of
// sync/atomic, sequentially consistent. Each type says what else its argument
// needs; protocol_test.go checks the protocols on a machine with store buffers in
// all interleavings of small configurations.
package lock
