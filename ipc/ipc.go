// Package ipc is Hardtack's endpoints and notifications for Go programs: how threads
// of different processes meet in the kernel, without a queue or a buffer between
// them. Package abi/ipc says what each call does and which errors it has; this
// package makes them. On other kernels every call fails with ErrElsewhere.
//
//	recv, send, err := ipc.New(0)        hand send to another process
//	server   for err = recv.Recv(m, ipc.Forever); err == nil; err = recv.ReplyRecv(m, ipc.Forever) { … }
//	client   err := send.Call(m, ipc.Forever)
//
// Go's signal handlers have SA_RESTART, so a waiting call continues after a signal. The
// exception is a call that was already received, which is not repeated: Call fails with
// EINTR, and the reply is dropped. The signal with which the runtime preempts goroutines
// has this effect on a CallRaw that waits for 10 ms or more.
//
// # Descriptors
//
// Receiver, Sender and Notification are numbers of descriptors, as those of package unix
// are: they may be passed, duplicated and polled. Before closing one, make sure that no
// other goroutine uses it.
//
// # Go's scheduler
//
// Go's scheduler knows of a call that waits, as of any system call: other goroutines
// continue on another thread. That costs some instructions (docs/bench/ipc.md), so each
// call has a raw form, which keeps the thread's processor: no other goroutine runs there
// until the call returns, and a garbage collection that begins meanwhile waits for it
// too. Use it if the peer answers at once, as a server on the same processor does.
//
// The token of a call belongs to the thread that received it. A server that replies
// must not have changed threads in between: it calls runtime.LockOSThread first.
//
// No call allocates.
package ipc

import (
	"fmt"
	"math"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"hardtack/abi/ipc"
	"hardtack/lock/core"
)

// Limits of a message.
const (
	ShortBytes     = ipc.ShortBytes
	LongBytes      = ipc.LongBytes
	MaxDescriptors = ipc.MaxDescriptors
)

// CloseOnExec is the one flag of the calls that make descriptors.
const CloseOnExec = ipc.CloseOnExec

// ErrElsewhere is the error of all calls on another kernel.
var ErrElsewhere error = elsewhere{}

type elsewhere struct{}

func (elsewhere) Error() string        { return "ipc: not on Hardtack" }
func (elsewhere) Is(target error) bool { return target == syscall.ENOSYS }

// Here reports whether this kernel is Hardtack's. Only one that says so by its name is
// asked: a filter of system calls may end a process for a number that it does not know.
var Here = sync.OnceValue(func() bool {
	var u unix.Utsname
	if unix.Uname(&u) != nil || !hardtack(unix.ByteSliceToString(u.Release[:])) {
		return false
	}
	m := NewMessage()
	return Receiver(-1).RecvRaw(m, Now) == syscall.EBADF
})

// Deadline is when a call stops waiting: Now, Forever, or nanoseconds of
// CLOCK_MONOTONIC, as After gives them.
type Deadline uint64

const (
	Now     Deadline = ipc.Now
	Forever Deadline = ipc.Forever
)

// epoch is a moment on both of the clocks.
var epoch = sync.OnceValue(func() (e struct {
	mono int64
	at   time.Time
}) {
	var ts unix.Timespec
	unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts)
	e.mono, e.at = ts.Nano(), time.Now()
	return e
})

// After is the deadline d from now.
func After(d time.Duration) Deadline {
	if d <= 0 {
		return Now
	}
	e := epoch()
	since := e.mono + int64(time.Since(e.at))
	if int64(d) > math.MaxInt64-since {
		return Forever
	}
	return Deadline(since + int64(d))
}

// Receiver is a descriptor that receives from an endpoint.
type Receiver int

// Sender is a descriptor that sends to an endpoint, with a badge.
type Sender int

// Notification is a descriptor of a notification.
type Notification int

// New makes an endpoint. When the last duplicate of the Receiver is closed it ends.
func New(flags int) (Receiver, Sender, error) {
	var fds [2]int32
	err := makeEndpoint(&fds, flags)
	return Receiver(fds[0]), Sender(fds[1]), err
}

// Mint makes a sender of the endpoint with a badge, which comes with what it sends.
func (r Receiver) Mint(badge uint64, flags int) (Sender, error) { return mint(int(r), badge, flags) }

// Mint makes a sender with a badge of one without.
func (s Sender) Mint(badge uint64, flags int) (Sender, error) { return mint(int(s), badge, flags) }

func mint(fd int, badge uint64, flags int) (Sender, error) {
	got, _, e := syscall.RawSyscall(ipc.Mint, uintptr(fd), uintptr(badge), uintptr(flags))
	return Sender(int32(got)), failure(e)
}

// NewNotification makes a notification without bits.
func NewNotification(flags int) (Notification, error) {
	got, _, e := syscall.RawSyscall(ipc.Notification, uintptr(flags), 0, 0)
	return Notification(int32(got)), failure(e)
}

func (r Receiver) Close() error     { return unix.Close(int(r)) }
func (s Sender) Close() error       { return unix.Close(int(s)) }
func (n Notification) Close() error { return unix.Close(int(n)) }

// Send sends m and waits until it is received.
func (s Sender) Send(m *Message, d Deadline) error { return m.do(ipc.Send, int(s), d) }

// SendRaw is Send for peers that wait already.
func (s Sender) SendRaw(m *Message, d Deadline) error { return m.doRaw(ipc.Send, int(s), d) }

// Call sends m and waits for the reply, which is then in m.
func (s Sender) Call(m *Message, d Deadline) error { return m.do(ipc.Call, int(s), d) }

// CallRaw is Call for peers that answer at once.
func (s Sender) CallRaw(m *Message, d Deadline) error { return m.doRaw(ipc.Call, int(s), d) }

// Recv waits for a message.
func (r Receiver) Recv(m *Message, d Deadline) error { return m.do(ipc.Recv, int(r), d) }

// RecvRaw is Recv for peers that send at once.
func (r Receiver) RecvRaw(m *Message, d Deadline) error { return m.doRaw(ipc.Recv, int(r), d) }

// Reply replies with m to the call whose token m has, and does not wait.
func (m *Message) Reply() error { return m.doRaw(ipc.Reply, -1, Now) }

// ReplyRecv is Reply and Recv in one, of which a reply that nobody waits for any more
// is no error. Without a token it is Recv.
func (r Receiver) ReplyRecv(m *Message, d Deadline) error { return m.do(ipc.ReplyRecv, int(r), d) }

// ReplyRecvRaw is ReplyRecv for peers that call again at once.
func (r Receiver) ReplyRecvRaw(m *Message, d Deadline) error {
	return m.doRaw(ipc.ReplyRecv, int(r), d)
}

// Signal sets bits.
func (n Notification) Signal(bits uint64) error {
	r := core.Registers{RAX: ipc.Signal, RDI: uint64(n), RDX: bits}
	core.Syscall(&r)
	return result(r.RAX)
}

// SignalSoon is Signal by a thread that will wait in a moment: who is woken may wait for
// that, some microseconds at most, to run on the same processor.
func (n Notification) SignalSoon(bits uint64) error {
	r := core.Registers{RAX: ipc.Signal, RDI: uint64(n), RSI: ipc.Soon, RDX: bits}
	core.Syscall(&r)
	return result(r.RAX)
}

// Wait takes the bits that are set, waiting until some are.
func (n Notification) Wait(d Deadline) (bits uint64, err error) {
	r := core.Registers{RAX: ipc.Wait, RDI: uint64(n), RDX: uint64(d)}
	core.SyscallBlocking(&r)
	return r.RDX, result(r.RAX)
}

// WaitRaw is Wait for peers that signal at once.
func (n Notification) WaitRaw(d Deadline) (bits uint64, err error) {
	r := core.Registers{RAX: ipc.Wait, RDI: uint64(n), RDX: uint64(d)}
	core.Syscall(&r)
	return r.RDX, result(r.RAX)
}

// SignalWait is n.Wait after a Signal of another notification, in one call: who waits
// there runs at once if this thread has to wait. The bits are set even if the wait fails.
func (n Notification) SignalWait(to Notification, set uint64, d Deadline) (bits uint64, err error) {
	r := n.signalWait(to, set, d)
	core.SyscallBlocking(&r)
	return r.RDX, result(r.RAX)
}

// SignalWaitRaw is SignalWait for peers that signal at once.
func (n Notification) SignalWaitRaw(to Notification, set uint64, d Deadline) (bits uint64, err error) {
	r := n.signalWait(to, set, d)
	core.Syscall(&r)
	return r.RDX, result(r.RAX)
}

func (n Notification) signalWait(to Notification, set uint64, d Deadline) (r core.Registers) {
	r.RAX, r.RDI, r.RSI, r.RDX, r.More[0] = ipc.SignalWait, uint64(n), uint64(to), uint64(d), set
	return r
}

// result is the error of a call that answered rax.
func result(rax uint64) error {
	if int64(rax) >= 0 {
		return nil
	}
	return failure(syscall.Errno(-int64(rax)))
}

func failure(e syscall.Errno) error {
	switch e {
	case 0:
		return nil
	case syscall.ENOSYS:
		return ErrElsewhere
	}
	return e
}

// Message is what is sent and received, in place: after each call it is what was
// received, or empty. NewMessage makes one, which has room for long ones; the zero
// value sends and receives short messages without descriptors. It belongs to one
// goroutine at a time.
type Message struct {
	// Badge is the number of the sender that the message received came through.
	Badge uint64
	// Token is the right to reply to the call received, once; 0: it is no call.
	Token uint64

	length, files int
	regs          core.Registers // More is the content of a short message
	buffer        *ipc.Buffer
}

// Len is the length of the message in bytes. What was received into a Message
// without room has its true length, and only its first ShortBytes.
func (m *Message) Len() int { return m.length }

// Set makes b, at most LongBytes, the content, without descriptors.
func (m *Message) Set(b []byte) error {
	if len(b) > LongBytes || len(b) > ShortBytes && m.buffer == nil {
		return fmt.Errorf("ipc: a message of %d bytes: %w", len(b), syscall.EMSGSIZE)
	}
	m.length, m.files = len(b), 0
	copy(m.Bytes(), b)
	return nil
}

// Resize makes the content n bytes long, which the caller then writes into Bytes or,
// up to ShortBytes, Words; without descriptors. More than LongBytes is refused by the
// kernel.
func (m *Message) Resize(n int) { m.length, m.files = n, 0 }

// Bytes is the content, until the message is used again.
func (m *Message) Bytes() []byte {
	if m.length > ShortBytes && m.buffer != nil {
		return m.buffer.Data[:min(m.length, LongBytes)]
	}
	return m.short()[:min(m.length, ShortBytes)]
}

// Words is the content of a message of up to ShortBytes.
func (m *Message) Words() *[ipc.ShortWords]uint64 { return &m.regs.More }

// Attach sends duplicates of descriptors with the message.
func (m *Message) Attach(fds ...int) error {
	if len(fds) > MaxDescriptors || len(fds) > 0 && m.buffer == nil {
		return fmt.Errorf("ipc: %d descriptors: %w", len(fds), syscall.EMSGSIZE)
	}
	m.files = len(fds)
	for i, fd := range fds {
		m.buffer.FDs[i] = int32(fd)
	}
	return nil
}

// Files is how many descriptors came with the message, FD the number of one of them.
// They are the caller's to close.
func (m *Message) Files() int { return m.files }

// FD is descriptor i of those that came.
func (m *Message) FD(i int) int { return int(m.buffer.FDs[i]) }

func (m *Message) do(number uint64, fd int, d Deadline) error {
	m.in(number, fd, d)
	core.SyscallBlocking(&m.regs)
	return m.out(number)
}

func (m *Message) doRaw(number uint64, fd int, d Deadline) error {
	m.in(number, fd, d)
	core.Syscall(&m.regs)
	return m.out(number)
}

func (m *Message) in(number uint64, fd int, d Deadline) {
	r := &m.regs
	r.RAX, r.RDI, r.RDX, r.R10 = number, uint64(fd), uint64(d), m.Token
	r.RSI = uint64(ipc.Info(m.length, m.files))
	r.RBX = m.address()
}

// out takes in what came of a call: the message received, or none.
func (m *Message) out(number uint64) error {
	r := &m.regs
	switch number {
	case ipc.Reply:
		m.Token = 0
		fallthrough
	case ipc.Send:
		m.length, m.files = 0, 0
		return result(r.RAX)
	}
	m.Badge, m.Token, m.length, m.files = 0, 0, 0, 0
	if err := result(r.RAX); err != nil {
		return err
	}
	m.Badge, m.Token = r.RDX, r.R10
	m.length, m.files = ipc.Bytes(uint32(r.RAX)), ipc.Descriptors(uint32(r.RAX))
	return nil
}
