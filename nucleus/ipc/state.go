package ipc

import (
	"math"
	"sync/atomic"

	"hardtack/abi/linux"
	"hardtack/nucleus/control"
)

// Sizes. Powers of two, so that a masked index needs no check.
const (
	MaxThreads       = 512
	MaxEndpoints     = 256
	MaxNotifications = 256
	MaxCores         = 64

	ShortWords     = 6 // as many as the system call ABI has argument registers
	LongWords      = 64
	ShortBytes     = ShortWords * 8
	LongBytes      = LongWords * 8
	MaxDescriptors = 4

	line = control.Line // what is behind it is on a cache line of its own
)

// ID names an object from outside: index | generation << 16. Whoever has a stale one
// may keep it as long as he likes, so a generation must not come again: in a machine's
// life 48 bits do not run out, where 16 did within a second.
type ID uint64

func (id ID) index() uint32      { return uint32(id) & 0xffff }
func (id ID) generation() uint64 { return uint64(id >> 16) }

// Errno is a Linux error number; 0 is success. An operation on a core without a
// current thread, for one that another core has destroyed, has no result.
//
//	EINTR      Cancel of a call that was received; ERESTARTSYS of anything else
//	EBADF      no such object
//	EAGAIN     it would block, and was not to; Cancel: the thread is not blocked
//	EBUSY      descriptors received earlier have not been taken; a thread is not stopped
//	EINVAL     a core or a caller that cannot be, no bits
//	ENFILE     the table is full
//	EPIPE      the other side is gone
//	EMSGSIZE   more than LongBytes or MaxDescriptors
//	ETIMEDOUT  the deadline has passed
type Errno = linux.Errno

// State is a thread's (steps.go).
type State uint32

// String is for tests and messages.
func (s State) String() string { return states[s%State(len(states))].name }

// where is a thread's state and what it is blocked on: state << 16 | index of the
// endpoint or notification or, Replying, of the thread that has the call. One word,
// so that a core can publish that its current thread is blocked without the thread's
// lock: all else is written before, and only who has read it as blocked, under the
// locks that belong to this state, may change the thread.
type where uint32

func at(s State, object uint16) where { return where(s)<<16 | where(object) }

func (w where) state() State   { return State(w >> 16) }
func (w where) object() uint16 { return uint16(w) }

func load(w *where) where { return where(atomic.LoadUint32((*uint32)(w))) }

// Info describes a message: bytes | descriptors << 16.
type Info uint32

// MakeInfo describes a message of some bytes and descriptors.
func MakeInfo(bytes, descriptors int) Info { return Info(bytes | descriptors<<16) }

// Bytes is the length of the message.
func (i Info) Bytes() int { return int(i & 0xffff) }

// Descriptors is how many come with it.
func (i Info) Descriptors() int { return int(i >> 16) }

func (i Info) ok() bool { return i.Bytes() <= LongBytes && i.Descriptors() <= MaxDescriptors }

// Forever is a deadline that does not come, Now one that has passed: the operation
// does not wait. Others are in the unit of Tick.
const (
	Now     = 0
	Forever = math.MaxUint64
)

// Token is the right to reply to one call, once: the caller's index and the number
// of its call. 0 is none.
type Token uint64

// Result is what came of a thread's last operation.
type Result struct {
	Err   Errno
	Info  Info   // the message received
	Token Token  // received from a call: for the reply
	Badge uint64 // received: what the sender's descriptor says; waited: the bits
}

// Thread is a thread's state. The message to send is put into Short or Long and Out
// before the operation, and a received one is found in Short or Long and In after
// it, by whoever runs the thread.
type Thread struct {
	lock objectLock

	where where
	link  struct{ next, prev uint16 } // in a run queue or an object's queue
	timed struct{ next, prev uint16 } // in its core's list of deadlines
	core  uint16

	generation uint64
	exists     bool
	hasTimer   bool // is in the list of deadlines
	calls      bool // Sending: wants a reply

	info     Info // Sending: the message
	badge    uint64
	call     uint64 // number of its calls
	deadline uint64 // 0: none; a loose thread's: see Limit

	result Result

	Short [ShortWords]uint64
	Out   [MaxDescriptors]uint64
	In    [MaxDescriptors]uint64
	Came  uint32 // how many of In have not been taken: their taker sets it to 0
	Long  [LongWords]uint64
	_     [line]byte
}

type queue struct{ head, tail uint16 }

// object is what endpoints and notifications have in common: threads that wait.
type object struct {
	lock       objectLock
	queue      queue
	receivers  bool // of an endpoint: the queue's kind, when it is not empty
	exists     bool
	generation uint64
}

// is reports whether the object is the one that the id names.
func (o *object) is(id ID) bool { return o.exists && o.generation == id.generation() }

// Endpoint is where threads meet. All in the queue are of one kind. Outside the package
// it is an address only.
type Endpoint struct {
	object
	_ [line]byte
}

type notification struct {
	object
	bits uint64
	_    [line]byte
}

// coreState is a core's.
type coreState struct {
	// The core's own.
	current  uint32
	timers   uint16 // first thread in the list of deadlines
	earliest uint64 // no deadline in the list is before
	_        [line]byte

	// Under lock.
	lock objectLock
	run  queue
	idle bool
	_    [line]byte
}

// Nucleus is all state. Its zero value wants Init.
type Nucleus struct {
	regs          [MaxThreads]*Registers // see Direct; first, so that the collector looks no further
	control       guard
	cores         [MaxCores]coreState
	ncores        uint32
	loose         bool   // threads belong to no core: see SetLoose
	used          uint32 // no thread was ever made from this index on; under exclusive
	earliest      uint64 // of loose threads: see Limit
	threads       [MaxThreads]Thread
	endpoints     [MaxEndpoints]Endpoint
	notifications [MaxNotifications]notification
}

// Effects is what the caller has to do after an operation.
type Effects struct {
	Run uint32 // the index of the core's current thread; 0: none, the core idles
	IPI uint64 // these cores have something to run, or must stop what they run
}

// Init prepares the nucleus for cores 0 to cores-1, all of them idle. It fails
// where the concurrency control that was compiled in cannot work.
func (n *Nucleus) Init(cores int) error {
	if err := control.Works(cores, MaxCores); err != nil {
		return err
	}
	n.ncores, n.earliest = uint32(cores), Forever
	n.control.SetCores(uint32(cores))
	for i := range n.cores {
		n.cores[i].idle = true
		n.cores[i].earliest = Forever
	}
	return nil
}

// Control is the name of the concurrency control that was compiled in.
func Control() string { return control.Name }

// Current is the index of the core's current thread; 0: none.
func (n *Nucleus) Current(core uint32) uint32 { return n.cores[core%MaxCores].current }

// Thread is the thread with an index, for its messages. Only who runs it may look.
func (n *Nucleus) Thread(index uint32) *Thread { return &n.threads[index%MaxThreads] }

// Result is what came of the last operation of a thread that runs.
func (n *Nucleus) Result(index uint32) *Result { return &n.threads[index%MaxThreads].result }

func (n *Nucleus) thread(i uint16) *Thread { return &n.threads[i%MaxThreads] }

func (n *Nucleus) core(i uint32) *coreState { return &n.cores[i%MaxCores] }

// endpoint gives the endpoint of an ID, and its index.
func (n *Nucleus) endpoint(id ID) (*Endpoint, uint16, Errno) {
	e := &n.endpoints[id.index()%MaxEndpoints]
	if id.index() >= MaxEndpoints || !e.is(id) {
		return nil, 0, linux.EBADF
	}
	return e, uint16(id.index()), 0
}

func (n *Nucleus) notification(id ID) (*notification, uint16, Errno) {
	o := &n.notifications[id.index()%MaxNotifications]
	if id.index() >= MaxNotifications || !o.is(id) {
		return nil, 0, linux.EBADF
	}
	return o, uint16(id.index()), 0
}

// waitsAt is the object in whose queue a blocked thread is, or nil: it waits for a
// reply, or is not blocked.
func (n *Nucleus) waitsAt(w where) *object {
	switch states[w.state()%State(len(states))].queue {
	case endpointQueue:
		return &n.endpoints[w.object()%MaxEndpoints].object
	case notificationQueue:
		return &n.notifications[w.object()%MaxNotifications].object
	}
	return nil
}

func (n *Nucleus) threadOf(id ID) (*Thread, uint16, Errno) {
	t := &n.threads[id.index()%MaxThreads]
	if id.index() >= MaxThreads || id.index() == 0 || !t.exists || t.generation != id.generation() {
		return nil, 0, linux.EBADF
	}
	return t, uint16(id.index()), 0
}
