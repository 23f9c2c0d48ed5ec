package nucleus

import (
	"sync/atomic"

	abi "hardtack/abi/ipc"
	"hardtack/abi/linux"
	"hardtack/arch/amd64"
	"hardtack/nucleus/ipc"
)

// User threads rendezvous inside the nucleus. Message calls (abi/ipc) that need only
// registers are carried out there, and the CPU continues with the thread that the call
// has set free, on the same goroutine, without the Go scheduler.
//
// # Goroutines and threads
//
// A thread that waits inside the nucleus has no goroutine. A goroutine that is in RunUser serves whichever thread its CPU runs: RunUser returns with
// another thread's state, and the goroutine serves that thread from then on. If a call
// leaves no thread to run, the goroutine is free. A thread that is woken without being
// switched to goes to the CPU's run queue. A lingering CPU takes it from there
// (linger.go). If none lingers, ServeMessages, which runs soon because RunUser returns,
// gives it to the kernel above, which finds a goroutine for it. A machine with one CPU
// keeps it until the CPU leaves user mode anyway, or until a call leaves no other thread
// to run (dueLater).
//
// A call with a long message or descriptors, or whose descriptor is not remembered, leaves
// user mode. The thread's goroutine packs the message into ipc.Thread and makes the call
// (prepared.go). The thread waits in it without a goroutine all the same. What it receives
// then, its next goroutine unpacks.
//
// A thread that waits inside the nucleus until a deadline has no timer of its own. One
// timer of the kernel above serves all of them (MessageHooks.Deadline, ExpireMessages);
// see ipc.Limit.
//
//	thread                   is in                   belongs to
//	runs, or in the kernel   no queue                its goroutine
//	waits                    an object's queue       the nucleus
//	was woken                a CPU's run queue       the nucleus, then who takes it out
//
// # What must not be missed
//
// To give a thread work, set its Work word, then check whether it waits, and cancel the
// wait. A thread that starts to wait checks Work afterwards, and cancels its own wait.
// The same holds for pollers: a poller sets watched, then checks; a thread that starts to
// wait to send, or sets bits, checks watched afterwards.
//
// Package ipc's lock is taken with no other lock held, and no lock is taken inside it.

// rendezvous is the nucleus's endpoints, notifications and threads.
var rendezvous ipc.Nucleus

// A partner is what the nucleus stores about a thread of package ipc, under its index. It
// belongs to the owner of the thread.
type partner struct {
	state uintptr // *amd64.UserState; 0: no such thread
	space uintptr // *AddressSpace
	gen   uintptr // of its generation
	root  uint64
	id    ipc.ID

	// Recently used descriptors, by their last bits (Remember). They are valid while the
	// descriptor table's count of changes equals seen.
	changes uintptr // *uint64
	seen    uint64
	known   [knownTargets]known

	since, waited int64 // ticks: waits since, has waited in all

	call prepared // while Work says so

	told told

	_ [144]byte // a power of two
}

// known is a descriptor that was used.
type known struct {
	key   uint64 // TargetKind.key; 0: none
	id    ipc.ID
	badge uint64
	at    uintptr // *ipc.Endpoint
}

const knownTargets = 8

var partners [ipc.MaxThreads]partner

// A Target is what a descriptor means in a message call.
type Target struct {
	FD    uint32
	Kind  TargetKind
	ID    ipc.ID
	Badge uint64
}

// TargetKind is what a descriptor can be used for.
type TargetKind uint8

// Kinds of targets.
const (
	NoTarget TargetKind = iota
	SendTarget
	ReceiveTarget
	NotificationTarget
)

// key combines a descriptor and its kind. No value of a register gives the same key for
// another kind.
func (k TargetKind) key(rdi uint64) uint64 { return uint64(uint32(rdi)) | uint64(k)<<32 }

// callShape describes a message call: the kind of its descriptor, whether it has a
// deadline in RDX, and a message in RSI.
type callShape struct {
	kind         TargetKind
	timed, sends bool
}

var callShapes = [8]callShape{
	abi.Send - abi.Base:      {SendTarget, true, true},
	abi.Recv - abi.Base:      {ReceiveTarget, true, false},
	abi.Call - abi.Base:      {SendTarget, true, true},
	abi.Reply - abi.Base:     {NoTarget, false, true},
	abi.ReplyRecv - abi.Base: {ReceiveTarget, true, true},
	abi.Signal - abi.Base:    {NotificationTarget, false, false},
	abi.Wait - abi.Base:      {NotificationTarget, true, false},
	// The badge of SignalWait's target is the notification that is signalled.
	abi.SignalWait - abi.Base: {NotificationTarget, true, false},
}

// MessageTarget returns which kind of descriptor a message call, less abi.Base, needs.
func MessageTarget(op uint32) TargetKind { return callShapes[op%8].kind }

// attention is read by a thread's goroutine, with one load (Attention), each time it
// leaves user mode.
var attention struct {
	// due says that ServeMessages has something to do: threads in run queues, objects
	// that are marked, an earlier deadline.
	due atomic.Uint32
	// short: the kernel's reserve of frames is running out.
	short atomic.Uint32
	_     [0]atomic.Uint64 // for the alignment
}

// Bits of due. Threads that a CPU has woken can wait there until it leaves user mode, if
// there is no other or the running thread will wait soon: if it waits first, the nucleus
// continues with them.
const dueNow = 1

// dueLater is the bit that says so of a CPU; 0: it has none, and can keep nobody.
func dueLater(c *amd64.CPU) uint32 { return 2 << c.Index }

// MessagesDue tells whether ServeMessages has something to do when the thread has left user
// mode. What another CPU keeps for its own thread is not taken away.
func (u *UserContext) MessagesDue() bool {
	return attention.due.Load()&(dueNow|2<<uint32(u.LastCPU.Load())) != 0
}

// An observed object is polled; making it ready marks it.
type observed struct{ watched, marked atomic.Uint32 }

var (
	watchedEndpoints     [ipc.MaxEndpoints]observed
	watchedNotifications [ipc.MaxNotifications]observed
)

// mark says that an object became ready.
func (o *observed) mark() {
	if o.watched.Add(0) != 0 { // locked: after the store that made it ready
		o.marked.Store(1)
		marks.Store(1)
		attention.due.Store(dueNow)
	}
}

// marks says that some object is marked.
var marks atomic.Uint32

// MessageHooks is what the kernel above does with threads and objects that
// ServeMessages hands it.
type MessageHooks struct {
	// Woken is told that a thread of an index was woken.
	Woken func(i uint32)
	// EndpointReady and NotificationReady are told that watched objects became so.
	EndpointReady, NotificationReady func(i uint32)
	// Deadline is told a time, in the nanoseconds of the runtime's monotonic clock,
	// after which ExpireMessages is to be called; MaxUint64: none. It may be the same
	// as before. What is told later and is later does not replace it.
	Deadline func(at uint64)
}

var messageHooks MessageHooks

// HookMessages sets the hooks, once, before the first thread runs.
func HookMessages(h MessageHooks) {
	if messageHooks.Woken != nil {
		panic("nucleus: the hooks of messages are set twice")
	}
	messageHooks = h
}

// InitMessages prepares for the CPUs that run now. There are no message calls before it.
func InitMessages() error {
	if err := rendezvous.Init(NumCPU()); err != nil {
		return err
	}
	rendezvous.SetLoose()
	return nil
}

func messageCall(what, a, b uint64) (uint64, linux.Errno) {
	r := amd64.Syscall(sysMessage, what, a, b)
	if r > ^uint64(4095) {
		return 0, linux.Errno(-r)
	}
	return r, 0
}

// ServeMessages hands over threads that were woken and objects that became ready. Call it
// when user mode was left with TrapMessage or without a thread, and after the functions
// here that say so.
func ServeMessages() {
	for attention.due.Load() != 0 {
		attention.due.Store(0)
		for {
			woken := amd64.Syscall(sysMessage, messageTake, 0, 0)
			for w := woken; w != 0; w >>= 16 {
				i := uint32(w & 0xffff)
				messageHooks.Woken(i)
			}
			if woken>>48 == 0 {
				break
			}
		}
		messageHooks.Deadline(rendezvous.Earliest())
		if marks.Swap(0) == 0 {
			continue
		}
		for i := range watchedEndpoints {
			if watchedEndpoints[i].marked.Swap(0) != 0 {
				messageHooks.EndpointReady(uint32(i))
			}
		}
		for i := range watchedNotifications {
			if watchedNotifications[i].marked.Swap(0) != 0 {
				messageHooks.NotificationReady(uint32(i))
			}
		}
	}
}

// ExpireMessages ends the waits whose deadline has come at a time. ServeMessages is to
// be called afterwards.
func ExpireMessages(now int64) {
	for first := uint64(0); ; {
		first, _ = messageCall(messageExpire, uint64(now), first)
		if first == 0 {
			break
		}
	}
	attention.due.Store(dueNow) // MessageHooks.Deadline wants to know what is left
}

// Join lets a thread make message calls, and returns its name. The thread's goroutine
// calls it.
func (u *UserContext) Join(as *AddressSpace) (ipc.ID, linux.Errno) {
	r, e := messageCall(messageNewThread, 0, 0)
	if e != 0 {
		return 0, e
	}
	id := ipc.ID(r)
	partners[id.Index()] = partner{state: stateAddr(&u.UserState), space: spaceAddr(as), gen: counterAddr(&as.Gen), root: as.Root, id: id}
	rendezvous.Direct(id.Index(), u.Registers())
	u.Partner = id.Index()
	return id, 0
}

// Leave ends Join: callers that wait for a reply from the thread get EPIPE. The thread's
// goroutine calls it, and ServeMessages afterwards.
func (u *UserContext) Leave() {
	p := &partners[u.Partner]
	id := p.id
	rendezvous.Direct(u.Partner, nil)
	u.Partner, *p = 0, partner{}
	messageCall(messageEndThread, uint64(id), 0) // from here on the place is another's
}

// Remember tells the nucleus what a descriptor means to a thread, while the descriptor
// table's count of changes equals seen. at is the call's first descriptor, plus one for
// its second, so that the two never collide. The thread's goroutine calls it.
func (u *UserContext) Remember(at uint32, t Target, changes *atomic.Uint64, seen uint64) {
	p := &partners[u.Partner]
	if at := counterAddr(changes); p.changes != at || p.seen != seen {
		p.known = [knownTargets]known{}
		p.changes, p.seen = at, seen
	}
	k := known{key: t.Kind.key(uint64(t.FD)), id: t.ID, badge: t.Badge}
	if t.Kind != NotificationTarget {
		k.at = endpointAddr(rendezvous.EndpointAt(t.ID))
	}
	p.known[at%knownTargets] = k
}

// Forget ends all Remember: the thread gets another descriptor table.
func (u *UserContext) Forget() { partners[u.Partner].known = [knownTargets]known{} }

// MessageState is a thread's part in package ipc: the message and the result.
func (u *UserContext) MessageState() (*ipc.Thread, *ipc.Result) {
	return rendezvous.Thread(u.Partner), rendezvous.Result(u.Partner)
}

// TakeResult puts the result of a message call into the registers. It reports false
// if it is a long message, descriptors, or a call to be repeated.
func (u *UserContext) TakeResult() bool {
	return take(&u.UserState, u.Partner, rendezvous.Result(u.Partner))
}

// PutResult puts the result into the registers in any case; of a long message its
// first words, in ipc.Thread.Short.
func (u *UserContext) PutResult() {
	th, r := u.MessageState()
	put(&u.UserState, th, r)
}

// Woken says that a thread that waited has a goroutine again. Its Trap says then that
// the result of its call is to be fetched.
func (u *UserContext) Woken() {
	p := &partners[u.Partner]
	p.waited += int64(amd64.TSC()) - p.since
	p.since = 0
	u.Trap.Kind, u.Trap.Error = TrapMessage, 1
}

// Waited returns how long, in ticks, a thread has waited inside the nucleus without a
// goroutine, and whether it does now.
func Waited(i uint32, now int64) (ticks int64, waits bool) {
	p := &partners[i%ipc.MaxThreads]
	since := p.since
	if since != 0 && now > since {
		return p.waited + now - since, true
	}
	return p.waited, since != 0
}

// CancelWait ends a thread's wait because it has something to do: its Work word says
// so already. ServeMessages is to be called afterwards.
func CancelWait(id ipc.ID) {
	if rendezvous.Blocked(id.Index()) {
		messageCall(messageCancel, uint64(id), 0)
	}
}

// NewEndpoint and NewNotification make objects, EndEndpoint and EndNotification end
// them: who waits there gets EPIPE, ServeMessages is to be called afterwards.
func NewEndpoint() (ipc.ID, linux.Errno) {
	r, e := messageCall(messageNewEndpoint, 0, 0)
	return ipc.ID(r), e
}

func NewNotification() (ipc.ID, linux.Errno) {
	r, e := messageCall(messageNewNotification, 0, 0)
	return ipc.ID(r), e
}

func EndEndpoint(id ipc.ID)     { messageCall(messageEndEndpoint, uint64(id), 0) }
func EndNotification(id ipc.ID) { messageCall(messageEndNotification, uint64(id), 0) }

// WatchEndpoint and WatchNotification make EndpointReady and NotificationReady hear
// of an object from now on, as long as it lives.
func WatchEndpoint(id ipc.ID)     { watchedEndpoints[id.Index()].watched.Store(1) }
func WatchNotification(id ipc.ID) { watchedNotifications[id.Index()].watched.Store(1) }

// SenderWaits tells whether somebody waits to send to an endpoint, BitsSet whether a
// notification has bits, at this moment.
func SenderWaits(id ipc.ID) bool { return rendezvous.Senders(id) }
func BitsSet(id ipc.ID) bool     { return rendezvous.Bits(id) != 0 }
