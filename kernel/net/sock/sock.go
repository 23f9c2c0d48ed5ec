// Package sock is what all sockets share: the Socket interface that the system
// calls use, options of SOL_SOCKET, blocking, and Flow, the buffer through
// which bytes and messages go between two sockets of this machine. The families
// are in the folders unix, inet and netlink; each registers itself.
//
// Lock order: a socket's own lock (two of one family in the order of their
// Ino), then Flow.mu, then wait.Queue's. User memory is copied under Flow.mu: a
// page fault there must not need a socket.
package sock

import (
	"strconv"
	"sync"
	"sync/atomic"

	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/uio"
	"hardtack/kernel/fs/vfs"
)

// Socket is the Ops of a socket's file.
type Socket interface {
	vfs.Ops
	// SockBase returns what the package holds for the socket.
	SockBase() *Base
	// Bind is bind(2); fs is where a path name is looked up.
	Bind(c *caller.Ctx, f *vfs.File, fs *vfs.FSContext, a *Addr) linux.Errno
	// Listen is listen(2); the backlog is already cut to SOMAXCONN.
	Listen(c *caller.Ctx, backlog int) linux.Errno
	// Accept returns the file of the next connection, blocking unless nonblock.
	Accept(c *caller.Ctx, nonblock bool, flags uint32) (*vfs.File, linux.Errno)
	// Connect is connect(2), blocking unless nonblock.
	Connect(c *caller.Ctx, fs *vfs.FSContext, a *Addr, nonblock bool) linux.Errno
	// Shutdown is shutdown(2); how has been checked.
	Shutdown(c *caller.Ctx, how int32) linux.Errno
	// LocalAddr and PeerAddr are getsockname(2) and getpeername(2).
	LocalAddr(a *Addr) linux.Errno
	PeerAddr(a *Addr) linux.Errno
	// Send and Recv are sendmsg(2) and recvmsg(2) on decoded messages.
	Send(c *caller.Ctx, f *vfs.File, m *Msg) (int, linux.Errno)
	Recv(c *caller.Ctx, f *vfs.File, m *Msg) (int, linux.Errno)
	// SetOpt and GetOpt are setsockopt(2) and getsockopt(2) on copies of the
	// values; GetOpt returns how much of val it filled.
	SetOpt(c *caller.Ctx, level, name int32, val []byte) linux.Errno
	GetOpt(c *caller.Ctx, level, name int32, val []byte) (int, linux.Errno)
}

// Addr is a socket address as programs give it: family first, then what the
// family wants. The zero Addr is none.
type Addr struct {
	Len int
	B   [linux.SizeofSockaddrSpace]byte
}

// Family returns the family of an address of at least two bytes.
func (a *Addr) Family() int {
	if a.Len < 2 {
		return linux.AF_UNSPEC
	}
	return int(a.B[0]) | int(a.B[1])<<8
}

// Bytes returns the address.
func (a *Addr) Bytes() []byte { return a.B[:a.Len] }

// Set copies an address; it is cut to what an Addr holds.
func (a *Addr) Set(b []byte) { a.Len = copy(a.B[:], b) }

// Msg is one message on its way: what sendmsg and recvmsg decode and encode.
type Msg struct {
	// V is the data: from where to send, whereto receive.
	V *uio.Vec
	// Flags are MSG_* of the call.
	Flags int32
	// FS is where a path in To is looked up.
	FS *vfs.FSContext
	// To is the destination on send; nil without.
	To *Addr
	// WantFrom asks Recv to fill From.
	WantFrom bool
	From     Addr

	// OutFlags are MSG_* that Recv reports (MSG_TRUNC, MSG_EOR …).
	OutFlags int32
	// Control goes with the message, both ways.
	Control
}

var msgs = sync.Pool{New: func() any { return new(Msg) }}

// GetMsg returns an empty message about v; PutMsg takes it back.
func GetMsg(v *uio.Vec) *Msg {
	m := msgs.Get().(*Msg)
	m.V = v
	return m
}

// PutMsg ends the use of a message.
func PutMsg(m *Msg) {
	m.V, m.FS, m.To, m.WantFrom = nil, nil, nil, false
	m.Flags, m.OutFlags, m.From.Len = 0, 0, 0
	m.Control.clear()
	msgs.Put(m)
}

// Control is the ancillary part of a message.
type Control struct {
	// Rights are files handed over. On send the references are the message's
	// (Send takes them when it succeeds, the caller drops them when it fails);
	// on receive they are the caller's.
	Rights []*vfs.File
	// MaxFiles is the sender's RLIMIT_NOFILE, on send of Rights.
	MaxFiles uint64
	// Cred are the sender's credentials where HasCred.
	Cred    linux.Ucred
	HasCred bool

	// What a datagram of the Internet families carries.
	HasTimestamp bool
	Timestamp    int64  // CLOCK_REALTIME, ns
	TTL, TOS     int    // -1 for none
	SendTOS      int16  // on send, one more than it is; 0 for none
	Segment      uint16 // on send, UDP_SEGMENT; 0 for none
	V6           bool   // TTL and TOS are of IPv6
	HasInq       bool
	Inq          int32 // TCP_INQ: what else there is to read
	HasOrigDst   bool
	OrigDst      Addr // where a datagram went to
	HasError     bool
	Error        ExtendedError
	HasPktInfo   bool
	PktInfo      PktInfo
	HasStamp     bool
	Stamp        int64 // SO_TIMESTAMPING's: CLOCK_REALTIME, ns
	HasAux       bool
	Aux          [linux.SizeofTpacketAuxdata]byte // PACKET_AUXDATA
}

// clear empties c: what is large only where it was used.
func (c *Control) clear() {
	if c.HasOrigDst || c.HasError || c.HasPktInfo || c.HasAux || c.HasStamp {
		*c = Control{}
		return
	}
	c.Rights, c.MaxFiles = nil, 0
	c.Cred, c.HasCred = linux.Ucred{}, false
	c.HasTimestamp, c.Timestamp = false, 0
	c.TTL, c.TOS, c.V6 = 0, 0, false
	c.SendTOS, c.Segment = 0, 0
	c.HasInq, c.Inq = false, 0
}

// ExtendedError is an error of the network, from a socket's error queue.
type ExtendedError struct {
	Errno              linux.Errno
	Origin, Type, Code uint8
	Info, Data         uint32
	V6                 bool
	Offender           Addr
}

// PktInfo says where a datagram came in or should go out.
type PktInfo struct {
	Index       int32
	V6          bool
	Local, Dest [16]byte // the first 4 bytes for IPv4
}

// Create makes a socket of one family; the type's flags are removed.
type Create func(c *caller.Ctx, domain, typ, protocol int32) (Socket, linux.Errno)

// Pair makes two connected sockets.
type Pair func(c *caller.Ctx, typ, protocol int32) (a, b Socket, e linux.Errno)

type family struct {
	create Create
	pair   Pair
}

var families [linux.AF_MAX]family // immutable after boot

// Register adds a family; pair may be nil. Called while booting, once for each.
func Register(domain int, create Create, pair Pair) {
	if families[domain].create != nil {
		panic("sock: a family is registered twice")
	}
	families[domain] = family{create, pair}
}

// New is socket(2): a file with one reference.
func New(c *caller.Ctx, domain, typ, protocol int32, flags uint32) (*vfs.File, linux.Errno) {
	f, e := familyOf(domain, typ)
	if e != 0 {
		return nil, e
	}
	if f.create == nil {
		return nil, linux.EAFNOSUPPORT
	}
	s, e := f.create(c, domain, typ, protocol)
	if e != 0 {
		return nil, e
	}
	return NewFile(s, flags), 0
}

// NewPair is socketpair(2).
func NewPair(c *caller.Ctx, domain, typ, protocol int32, flags uint32) (a, b *vfs.File, e linux.Errno) {
	f, e := familyOf(domain, typ)
	if e != 0 {
		return nil, nil, e
	}
	if f.create == nil {
		return nil, nil, linux.EAFNOSUPPORT
	}
	if f.pair == nil { // what socket would refuse is refused first
		x, e := f.create(c, domain, typ, protocol)
		if e == 0 {
			NewFile(x, flags).Put()
			e = linux.EOPNOTSUPP
		}
		return nil, nil, e
	}
	x, y, e := f.pair(c, typ, protocol)
	if e != 0 {
		return nil, nil, e
	}
	return NewFile(x, flags), NewFile(y, flags), 0
}

func familyOf(domain, typ int32) (*family, linux.Errno) {
	if domain < 0 || domain >= linux.AF_MAX {
		return nil, linux.EAFNOSUPPORT
	}
	if typ < 0 || typ > linux.SOCK_PACKET {
		return nil, linux.EINVAL
	}
	return &families[domain], 0
}

// Of returns the socket behind an open file. It is one function, not inlined, so
// that all callers share the cache of Go's type assertion.
//
//go:noinline
func Of(f *vfs.File) (Socket, bool) {
	s, ok := f.Ops.(Socket)
	return s, ok
}

// NewFile wraps a socket; flags are O_NONBLOCK at most.
func NewFile(s Socket, flags uint32) *vfs.File {
	f := vfs.NewStream(s, linux.O_RDWR|flags&linux.O_NONBLOCK)
	s.SockBase().file.Store(f)
	return f
}

var lastIno atomic.Uint64

// name is the text of /proc/self/fd/N.
func (b *Base) name() string { return "socket:[" + strconv.FormatUint(b.Ino, 10) + "]" }
