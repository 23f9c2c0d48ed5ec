// Package ipc is the nucleus as a microkernel: threads, endpoints at which they
// rendezvous, notifications, and a run queue for each core. It decides which thread runs,
// and moves messages. Registers, address spaces and interrupts are the caller's. It is
// plain Go over package lock, so the same code runs in ring 0 with interrupts off and on
// Linux, driven by OS threads that play the cores.
//
// # Operations
//
// The current thread of a core sends, receives, calls (sends and waits for the reply),
// replies, signals and waits. Each operation is given the core, runs to its end without
// waiting for anything but locks, and returns Effects: which thread the core runs now,
// and which cores want an interrupt. The caller does that hardware work afterwards, when
// the locks are released. The outcome of an operation is in the thread's Result, at once
// or when it runs again.
//
// Operations have two phases, as in seL4: first everything that can fail is
// checked, then what is to happen is done, without failing. An operation that
// fails has changed nothing but its thread's Result.
//
// A message is up to ShortBytes in Thread.Short, which a kernel keeps in registers,
// or up to LongBytes in Thread.Long; with it go up to MaxDescriptors descriptors,
// numbers that mean something to the caller. They belong to the sender until the
// message is received, then to the receiver.
//
// # Life
//
// A thread is Free, Stopped (made, not started), Ready (current on its core or in
// its run queue) or blocked: Sending or Receiving (in an endpoint's queue),
// Replying (its call was received, the reply is awaited), Waiting (in a
// notification's queue). Threads change cores only while they are stopped. The table
// steps says which operation leads from which state to which.
//
// Names from outside are IDs: an index and a generation; a stale one is EBADF.
// Index 0 is nobody. Inside, indices are safe: objects are destroyed only under the
// exclusive form of the concurrency control, which unlinks them everywhere.
//
//	who dies           who is told
//	sender, caller     nobody: its message is gone; a reply to it is dropped
//	server             each caller whose call it has received: EPIPE
//	endpoint           all in its queue: EPIPE; received calls go on
//	notification       all in its queue: EPIPE
//
// # Concurrency
//
// One of four controls is compiled in, by build tag: package control. The operations
// are written once, for the finest: they name the locks of objects, which are nothing
// in the other three.
//
// Lock order: endpoint or notification, then a thread, then a run queue; never two of a
// kind. Guards:
//
//	endpoint's lock    its queue, and the threads in it: state, message, links
//	thread's lock      its state and message while it waits for a reply, or is stopped
//	run queue's lock   the queue, links of the threads in it, whether the core is idle
//	the core alone     its current thread, its list of deadlines
//	exclusive          whether objects exist, generations, a thread's core
//	nobody             earliest, and the deadline of a loose thread that runs
//
// So an operation that finds the other thread in the endpoint's queue wants no lock of
// the thread, and one that replies wants the caller's. A core's current thread is its
// own, up to the store that publishes it as blocked (type where); from there on it
// belongs to whoever holds the lock that guards it, also if that was changed to another by a
// store of where. Whoever wants a thread without having found it in a queue (interrupt)
// looks at where, takes the lock that this says, and looks again. seL4 locks an endpoint
// and two threads.
//
// # Nucleus rules
//
// All state is integers in fixed arrays: no allocation, no maps, and no pointers but
// those to threads' registers (Direct), which operations only read; a test holds that.
// Bounded work: an operation touches at most three threads, but Destroy looks at all
// of them, Tick at those of its core that have deadlines, Expire at 64 in one call.
package ipc
