// Package ipc is the interface of Hardtack's own system calls: endpoints, on which
// threads of different processes meet, and notifications. Linux has none of these
// numbers, and answers ENOSYS. All are made with a plain SYSCALL instruction.
//
// # Objects are descriptors
//
// An endpoint has a receiving descriptor and sending ones; a notification has one
// kind. They are duplicated, passed (SCM_RIGHTS, or in a message), inherited, polled
// and closed as all descriptors. A sending descriptor carries a badge, a number that
// the receiver of a message is given and the sender cannot choose: 0, or what Mint
// said. When the last receiving descriptor of an endpoint is closed the endpoint
// ends: EPIPE for those that wait and for all who send later.
//
//	poll            readable                  writable
//	receiving       a sender waits            never
//	sending         never                     always; POLLERR when the endpoint has ended
//	notification    bits are set              always
//
// # Ordinary calls
//
// Endpoint, Mint and Notification pass arguments as Linux's calls do (RDI, RSI, RDX)
// and change no other register than RAX, RCX and R11.
//
//	Endpoint(int fds[2], flags)     0: fds[0] receives, fds[1] sends, badge 0
//	Mint(fd, badge, flags)          a new sending descriptor with the badge; fd is a
//	                                receiving one, or a sending one with badge 0 (else
//	                                EPERM)
//	Notification(flags)             a new notification's descriptor, without bits
//
// The flags are 0 or CloseOnExec; else EINVAL.
//
// # Message calls
//
// These have registers of their own:
//
//	in   RAX  number
//	     EDI  descriptor (Reply: not used)
//	     ESI  the message's Info; Recv and Wait: not used; Signal: flags; SignalWait:
//	          the descriptor that is signalled
//	     RDX  deadline: Now, Forever, or nanoseconds of CLOCK_MONOTONIC (Signal: the bits)
//	     R10  token of the call that is replied to (Reply, ReplyRecv)
//	     RBX  address of a Buffer, or 0
//	     R8 R9 R12 R13 R14 R15  the message, if it is not longer than ShortBytes;
//	          SignalWait: R8 is the bits to signal
//	out  RAX  Info of the message received, or 0; -errno
//	     RDX  the badge of whoever sent it; Wait and SignalWait: the bits
//	     R10  token for the reply; 0: none is wanted
//	     R8 R9 R12 R13 R14 R15  the message, if it is not longer than ShortBytes
//
// All six message registers may reach the receiver, whatever the length: what he shall
// not see does not belong there.
//
// RDI, RSI, RBX, RBP and RSP are kept. All other registers are destroyed, as by a
// function: RCX, R11, the flags, the vector registers, and those of the x87, which are
// empty then; its control word and MXCSR are kept. When a call fails RDX, R10 and the message registers have any value.
//
//	Send       EDI sends. Waits until somebody receives the message.
//	Recv       EDI receives. Waits for a message.
//	Call       EDI sends. Send, and waits for the reply; one deadline for both.
//	Reply      answers a call, once, from the thread that received it. Does not wait.
//	ReplyRecv  EDI receives. Reply and Recv in one; token 0: no reply. A reply to a
//	           caller that waits no longer is dropped without an error.
//	Signal     EDI a notification. Sets bits of it. Does not wait. ESI is 0, or Soon:
//	           the caller will wait in a moment, and who is woken may wait for that
//	           until it runs on the same CPU, some microseconds at most.
//	Wait       EDI a notification. Takes the bits that are set, waiting until some are.
//	           Deadline Now polls.
//	SignalWait EDI and ESI notifications. Signal of ESI, and Wait for EDI. The bits are
//	           signalled once, whatever becomes of the wait: a handler with SA_RESTART
//	           makes it a Wait.
//
// Bits that are signalled several times before a Wait count once.
//
// # Long messages and descriptors
//
// A message longer than ShortBytes is in the Buffer that RBX points at, from its
// first byte on, and the message registers have no meaning. So do the descriptors to
// be passed. A message is received into the Buffer in the same way; without one
// (RBX 0) what does not fit the registers is lost: of a long message they then
// hold the first ShortBytes, and Info tells the length it had; as if there were none if
// it cannot be written. Descriptors received
// are new ones, close-on-exec; Info tells how many: those for which there is no
// Buffer, or no room under RLIMIT_NOFILE, are closed.
//
// # Errors
//
//	EBADF      EDI is not an open descriptor, or not of the kind that the call wants
//	EMSGSIZE   Info says more than LongBytes or MaxDescriptors
//	EFAULT     the Buffer cannot be read, or is 0 and needed to send
//	EAGAIN     it would wait, and the deadline is Now
//	ETIMEDOUT  the deadline has passed. A call may have been received: its reply
//	           will be dropped
//	EPIPE      the endpoint has ended; Call: the server that had received the call
//	           died; Reply: the caller waits no longer. No SIGPIPE
//	EINTR      a signal's handler ran while the thread waited. Not with SA_RESTART,
//	           which makes the call go on, unless the call had been received already:
//	           it cannot be made twice. Such a call ends so, too, when the thread is
//	           stopped (SIGSTOP)
//	EINVAL     a token, bits (0 to signal) or flags that cannot be
//	ENFILE     too many endpoints, notifications, or threads that use them
//	EMFILE     no free descriptor
//	EPERM      Mint from a sending descriptor with a badge
//	ENOSYS     another number
//
// A wait ends at its deadline or later, never before: as late as the scheduler lets a
// timer be. A deadline in the past is one that has just come.
//
// An operation that fails with another error than ETIMEDOUT, EINTR and EPIPE has
// done nothing; but SignalWait that fails with EAGAIN has signalled.
//
// # Who goes first
//
// Senders and receivers are served in the order in which they came. A call to a
// server that waits in Recv or ReplyRecv, with a short message without descriptors, runs the server at once on the caller's CPU, and ReplyRecv the
// caller again, without a scheduler in between. SignalWait runs the thread that got the
// bits at once in the same way, if it waits itself. On a machine with one CPU the same
// holds for a thread that is woken by Signal, Send or Reply, as soon as who woke it
// waits. Everything else gives the same results more slowly.
package ipc

import "math"

// Call numbers: RAX.
const (
	Base = 0x48540000

	Send         = Base + 0
	Recv         = Base + 1
	Call         = Base + 2
	Reply        = Base + 3
	ReplyRecv    = Base + 4
	Signal       = Base + 5
	Wait         = Base + 6
	SignalWait   = Base + 7
	Endpoint     = Base + 8
	Mint         = Base + 9
	Notification = Base + 10
)

// Limits of a message.
const (
	ShortWords     = 6 // R8 R9 R12 R13 R14 R15
	ShortBytes     = ShortWords * 8
	LongBytes      = 512
	MaxDescriptors = 4
)

// Soon is a flag of Signal.
const Soon = 1

// Deadlines that are no times.
const (
	Now     = 0              // do not wait
	Forever = math.MaxUint64 // no limit
)

// CloseOnExec is the flag of calls that make descriptors (O_CLOEXEC).
const CloseOnExec = 0o2000000

// Buffer is what RBX points at: 528 bytes, aligned to 8.
type Buffer struct {
	Data [LongBytes]byte
	FDs  [MaxDescriptors]int32
}

// Info describes a message: bytes | descriptors << 16.
func Info(bytes, descriptors int) uint32 { return uint32(bytes | descriptors<<16) }

// Bytes is the length of the message that an Info describes.
func Bytes(info uint32) int { return int(info & 0xffff) }

// Descriptors is how many come with it.
func Descriptors(info uint32) int { return int(info >> 16) }
