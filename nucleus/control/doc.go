// Package control holds the nucleus's concurrency controls: how CPUs that change its
// state exclude each other. A build tag chooses one:
//
//	tag             control
//	nucleus_none    none: one CPU
//	(no tag)        big: one lock around each operation, a CLH queue on processors,
//	                test-and-set on a hypervisor's
//	nucleus_queue   queue: big, with the queue everywhere
//	nucleus_fine    fine: a big-reader lock around, ticket locks on objects
//	nucleus_rtm     rtm: each operation one hardware transaction, else big
//
// Operations are written once, for the finest control. They enter a Control and take the
// locks of the objects that they touch, which are empty in the other controls. Operations
// that change what others rely on exclude all others. An operation accesses hardware
// before it enters or after it leaves: hardware access would abort a transaction, and
// would hold a lock longer.
//
// Cores are numbered, and run with interrupts off: see the second family of package
// lock.
package control

// Virtual says that the cores are a hypervisor's. It is set before the first operation.
var Virtual bool
