// Package control holds the ways in which the nucleus lets only one CPU, or
// those that do not meet, change its state. A build tag chooses one:
//
//	tag             control
//	nucleus_none    none: one CPU
//	(no tag)        big: one lock around each operation, a CLH queue on processors,
//	                test-and-set on a hypervisor's
//	nucleus_queue   queue: big, with the queue everywhere
//	nucleus_fine    fine: a big-reader lock around, ticket locks on objects
//	nucleus_rtm     rtm: each operation one hardware transaction, else big
//
// Operations are written once, for the finest. They enter a Control and take the
// locks of the objects that they touch, which are nothing in the others;
// operations that change what others take for granted exclude all. What an operation
// wants of the hardware it does before it enters or after it has left: a transaction
// would not survive it, and a lock would be held longer.
//
// Cores are numbered, and run with interrupts off: see the second family of package
// lock.
package control

// Virtual says that the cores are a hypervisor's. It is set before the first operation.
var Virtual bool
