package msg

import (
	"context"
	"os"
	"time"
)

// The contract of a transport, all of it.
//
// A driver makes links; a link joins two processes while it lives. It carries
// frames: short byte strings that arrive whole, once and in the order sent, or
// not at all, in which case Recv fails from then on. The connection above does
// the rest: what frames mean, credentials of a session, sequence numbers,
// sending again after a link was lost, binding again over another driver.
//
// A link over which both ends reach the same memory says so by Shared; then
// messages do not travel in frames but in that memory, and the link also wakes
// the peer. Everything else passes as frames: the hello, descriptors, the end.

// Driver makes links of one kind.
type Driver interface {
	// Scheme is what addresses of the driver start with, before the colon:
	// "unix" of UMP, "inproc", "nats".
	Scheme() string
	// Dial connects to addr, which Listener.Addr of another process returned.
	Dial(ctx context.Context, addr string) (Link, error)
	// Listen makes an address at which name can be reached. hint is the
	// resolver's wish (a path, a subject), or "".
	Listen(ctx context.Context, name, hint string) (Listener, error)
}

// Rings says what the rings of a link should be.
type Rings struct {
	Pages int  // pages of 4 KiB each
	Try   int  // of so many the fastest; 0 and 1 try none
	Long  bool // messages of the interface can be so long that they need bulk memory
}

// Ringed is a Driver of links with common memory, for which rings can be chosen.
type Ringed interface {
	DialRings(ctx context.Context, addr string, r Rings) (Link, error)
}

// Listener is a place where links arrive.
type Listener interface {
	// Accept waits for the next link. It fails when the listener was closed
	// or ctx is done; any other failure of one link is the driver's to skip.
	Accept(ctx context.Context) (Link, error)
	// Addr is the full address, scheme included.
	Addr() string
	Close() error
}

// Link joins two ends. Send may be called by several goroutines at a time, as
// may Close and Wake; Recv and Park by one each.
type Link interface {
	// Send sends one frame of at most MaxFrame bytes. It may block while the
	// peer does not receive. files are passed along where CanPass says so;
	// they stay the caller's.
	Send(ctx context.Context, frame []byte, files []*os.File) error
	// Recv waits for the next frame; it is valid until the next call. The
	// files are the caller's to close. io.EOF says that the peer has closed
	// or is dead; a link that may come back by itself does not say so.
	Recv(ctx context.Context) (frame []byte, files []*os.File, err error)
	// CanPass reports whether files can be sent.
	CanPass() bool
	// Peer says who is at the other end, as the operating system vouches.
	Peer() Peer
	// Shared returns the common memory, or nil if there is none. It is asked
	// once, after the exchange of hellos.
	Shared() Shared
	// Close ends the link, and makes the peer's Recv return io.EOF once it
	// has had what was sent before.
	Close() error
}

// Notifier is a Link for which no goroutine need wait in Recv.
type Notifier interface {
	// TryRecv is Recv, but returns ErrNoFrame rather than wait.
	TryRecv() (frame []byte, files []*os.File, err error)
	// Notify has f called, once and in a goroutine of its own, as soon as
	// TryRecv would not return ErrNoFrame. It reports whether it can. nil is
	// what f was the last time.
	Notify(f func()) bool
}

// Near is a Link to the same machine that bounds what it keeps. If it is near, few messages are
// under way, and the frames sent over it have at most 8 KiB.
type Near interface{ Near() bool }

// MaxFrame is the longest frame.
const MaxFrame = 64 << 10

// Shared is memory that both ends of a link reach. Wake and Kick may be called
// by anybody at any time and never block; Park by two goroutines at a time, one
// that waits for a message and one that waits for room.
type Shared interface {
	// Pages are the two rings, the one that this end writes first.
	Pages() (tx, rx []byte)
	// Wake makes the peer's Parks look again.
	Wake()
	// Kick makes this end's own Parks look again.
	Kick()
	// Park blocks until ready reports true. It calls ready before it sleeps
	// and then at least once after every Wake of the peer and Kick; whoever does
	// these may call it, but no two at a time.
	Park(ready func() bool) error
	// Barrier orders the stores of this thread before its later loads, and the
	// same for every thread of the peer. An end calls it between storing that
	// it will sleep and looking for the last time. Pages are zero at first.
	Barrier()
	// Barriers reports whether Barrier reaches the peer's threads. If not, the
	// peer is told to use a full barrier with every message.
	Barriers() bool
	// Futex reports whether the peer is a process that naps in, and wakes by,
	// futex(2) on a word of the rings.
	Futex() bool
	// NewBulk makes n bytes of memory for sending, MapBulk maps a peer's for
	// reading; the file is what passes between, nil if the peer is in this
	// process. MapBulk checks that the file cannot shrink.
	NewBulk(n int) (Region, *os.File, error)
	MapBulk(file *os.File, n int) (Region, error)
	// MapSend maps what NewBulk made in another process, to go on sending.
	MapSend(file *os.File, n int) (Region, error)
}

// Handing is a Shared on a kernel that hands the processor from one process to
// another (LMP, package ump): an end that waits where its peer waits naps at a
// notification of its own, which the peer signals.
type Handing interface {
	// Hands reports whether the kernel does so.
	Hands() bool
	// Hand reports whether this end can nap so. The first time it gives the peer
	// what it needs for Rouse, and the peer's end must be a Handing too.
	Hand() bool
	// Await sleeps until the peer's Rouse or this end's Kick, at most about d. One
	// that came before counts. It belongs to the receiving owner.
	Await(d time.Duration)
	// Rouse ends the peer's Await.
	Rouse()
}

// Region is memory that stays mapped while Keep is reachable. File is its own
// descriptor of the memory, for moving the end; nil if the driver did not keep one.
type Region struct {
	Mem  []byte
	Keep any
	File *os.File
}

// Peer is the process at the other end.
type Peer struct {
	PID      int    // 0 if not known
	UID, GID int    // -1 if not known
	Scheme   string // the driver's
	Addr     string // where it is, for people
}

// Opener is a Listener that lets only its own user in until OpenToUsers lets others dial;
// who of them is served is then Options.Users.
type Opener interface{ OpenToUsers() error }
