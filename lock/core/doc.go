// Package core is for code of this module that runs outside of the Go scheduler. It has
// locks among numbered cores with interrupts off (a kernel's nucleus), without pointers,
// allocation or calls of the runtime, and instructions that Go cannot express. Programs
// use package lock instead.
//
//	Queue    a CLH queue among cores, first come, first served
//	Ticket   two counters
//	Readers  readers touch only their own line
//	Elided   a critical section is a hardware transaction, else under a Queue
//
// Each type says what order of memory accesses it needs, as those of package lock do;
// protocol_test.go there checks the protocols. Code outside of the scheduler has no
// goroutine and is not checked by -tags lockcheck.
package core
