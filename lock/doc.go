// Package lock holds locks for short critical sections, and stores that publish
// in memory shared with other processes.
//
//	var mu lock.BigReader     // readers do not slow each other down
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
// Start with sync.Mutex. The guide docs/guides/lock.md says when another lock is better,
// and has programs to copy. Each lock is a sync.Locker with TryLock, for any Go program,
// and its zero value is unlocked:
//
//	CLH        a queue: first come, first served, each waiter looks at a line of its own
//	Ticket     two counters: first come, first served, eight bytes
//	BigReader  readers touch only their own line, a writer visits all of them
//	Elided     a critical section is a hardware transaction while that pays, else a
//	           lock that barges as sync.Mutex does
//
// Never use CLH or Ticket with more runnable threads than cores: the thread whose turn it
// is may not be running, and all others wait until it runs. With four threads per core
// the median Lock took 150 µs, and up to 500 µs on a busy machine; sync.Mutex and Elided
// took 50 ns. Threads of other processes count too.
//
// Locks for code on numbered cores outside of the Go scheduler, as a kernel's nucleus
// is, are in package lock/core, which is for this module only.
//
// # Waiting
//
// Waiters spin, then yield their processor to other goroutines, then nap: a waiter that
// keeps spinning takes time from the holder of the lock. Use sync.Mutex, which parks at
// once, for locks that are held while waiting for something else.
//
// # Order
//
// The package imposes no order on locks, except for the ranks that their users set
// (SetRank). Built with -tags lockcheck, every Lock checks that no lock of a higher rank
// is held by the goroutine (locks of one rank are taken by ascending address), that it
// does not hold this lock already, and every Unlock that the goroutine is the owner; what
// is wrong panics and names both locks. A rank of 0 is outside the order. Without the tag
// the checks are not compiled.
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
