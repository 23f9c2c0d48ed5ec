package ump

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"hardtack/msg"
	"hardtack/msg/internal/barrier"
)

// Frames of the driver itself.
const (
	frameMemory = 0xf0
	frameWake   = 0xf1
	frameBell   = 0xf2
	framePlace  = 0xf3
)

// link is one end of a link.
//
// Lock order: sending, then nothing else.
type link struct {
	sock io.Closer
	raw  syscall.RawConn
	peer msg.Peer

	mem      *mapping
	pages    int
	accepted bool     // peer.Addr is this end's
	second   bool     // this end's sending ring is the second in the file
	file     *os.File // the memory file, if it was kept

	closed  atomic.Bool
	sending turn    // one frame at a time
	frame   *[]byte // handed out by Recv, from frames; Recv's alone

	gate  gate
	bell  atomic.Pointer[bell]   // this end's
	rings atomic.Pointer[ringer] // the peer's bell
	parks atomic.Int32

	// hand.go's, of ends that wait on one processor of a Hardtack.
	place   atomic.Pointer[Place] // this end's
	theirs  atomic.Pointer[Place] // the peer's
	noPlace atomic.Bool

	// The porter's (porter.go).
	id     atomic.Uint64
	armed  atomic.Bool // callee is to be called
	callee func()      // set before armed
}

// frames are buffers for received frames; an idle link has none.
var frames = sync.Pool{New: func() any { b := make([]byte, msg.MaxFrame); return &b }}

// controls are buffers for control messages of received frames.
var controls = sync.Pool{New: func() any { b := make([]byte, unix.CmsgSpace(4*maxFiles)); return &b }}

const maxFiles = 64

func newLink(c *net.UnixConn, addr string) (*link, error) {
	raw, err := c.SyscallConn()
	if err != nil {
		c.Close()
		return nil, err
	}
	return makeLink(c, raw, addr)
}

func fileLink(f *os.File, addr string) (*link, error) {
	raw, err := f.SyscallConn()
	if err != nil {
		f.Close()
		return nil, err
	}
	return makeLink(f, raw, addr)
}

func makeLink(sock io.Closer, raw syscall.RawConn, addr string) (*link, error) {
	l := &link{sock: sock, raw: raw, sending: make(turn, 1), peer: msg.Peer{UID: -1, GID: -1, Scheme: scheme, Addr: addr}}
	var cred *unix.Ucred
	var err error
	cerr := raw.Control(func(fd uintptr) { cred, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) })
	if err = errors.Join(cerr, err); err != nil {
		sock.Close()
		return nil, err
	}
	l.peer.PID, l.peer.UID, l.peer.GID = int(cred.Pid), int(cred.Uid), int(cred.Gid)
	return l, nil
}

// kept counts the memory files that are kept open, so that an end can be moved.
// They may take a quarter of the descriptors that the process may have.
var kept atomic.Int64

var keepMax = sync.OnceValue(func() int64 {
	var lim unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &lim) != nil {
		return 0
	}
	return int64(min(lim.Cur, 1<<20) / 4)
})

// keep keeps the memory file or closes it.
func (l *link) keep(f *os.File) {
	if kept.Add(1) > keepMax() {
		kept.Add(-1)
		f.Close()
		return
	}
	l.file = f
}

func (l *link) unkeep() {
	if l.file != nil {
		kept.Add(-1)
		l.file.Close()
	}
}

// offer makes the memory and sends it.
func (l *link) offer(ctx context.Context, r msg.Rings) error {
	f, m, err := place(r)
	if err != nil {
		return err
	}
	l.mem, l.pages = m, r.Pages
	err = l.Send(ctx, []byte{frameMemory, byte(r.Pages)}, []*os.File{f})
	l.keep(f)
	return err
}

// accept waits for the memory and maps it.
func (l *link) accept(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() { l.Close() })
	defer stop()
	b, files, err := l.packet(true)
	if err == nil && (len(b) != 2 || b[0] != frameMemory || b[1] < 1 || b[1] > 8 || len(files) != 1) {
		err = errors.New("ump: the first packet is not the memory")
	}
	if err == nil {
		l.pages = int(b[1])
		err = l.adopt(files[0], true)
	}
	if err != nil {
		closeAll(files)
	}
	return err
}

// adopt maps the rings in a peer's file. Without an error the file is the link's.
func (l *link) adopt(f *os.File, second bool) error {
	n := 2 * l.pages * pageBytes
	if err := checkMemory(f, n); err != nil {
		return err
	}
	var err error
	if l.mem, err = mapFile(f, n, unix.PROT_READ|unix.PROT_WRITE); err != nil {
		return err
	}
	l.second = second
	l.keep(f)
	return nil
}

func closeAll(files []*os.File) {
	for _, f := range files {
		f.Close()
	}
}

// Send sends a frame as one packet.
func (l *link) Send(ctx context.Context, frame []byte, files []*os.File) error {
	if len(frame) > msg.MaxFrame || len(files) > maxFiles {
		return fmt.Errorf("%w: a frame of %d bytes and %d files", msg.ErrTooLarge, len(frame), len(files))
	}
	if err := l.sending.lock(ctx); err != nil {
		return err
	}
	defer l.sending.unlock()
	if l.closed.Load() {
		return msg.ErrClosed
	}
	return withFDs(files, nil, func(fds []int) error {
		var control []byte
		if len(fds) > 0 {
			control = unix.UnixRights(fds...)
		}
		return l.send(ctx, frame, control)
	})
}

// send sends a packet, waiting while the peer does not take the earlier ones.
func (l *link) send(ctx context.Context, frame, control []byte) error {
	var err error
	for wait := 20 * time.Microsecond; ; wait = min(2*wait, 10*time.Millisecond) {
		cerr := l.raw.Control(func(fd uintptr) {
			err = unix.Sendmsg(int(fd), frame, control, nil, unix.MSG_NOSIGNAL|unix.MSG_DONTWAIT)
		})
		if cerr != nil {
			return cerr
		}
		switch {
		case err == nil:
			return nil
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.EPIPE), errors.Is(err, unix.ECONNRESET):
			return io.EOF
		case !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.ETOOMANYREFS):
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(wait):
		}
	}
}

// packet waits for a packet, or if wait is false returns msg.ErrNoFrame if none
// is there. Its bytes are valid until the next call.
func (l *link) packet(wait bool) (b []byte, files []*os.File, err error) {
	l.giveBack()
	var n, oobn, flags int
	take := func(fd uintptr) bool {
		buf, oob := frames.Get().(*[]byte), controls.Get().(*[]byte)
		defer controls.Put(oob)
		for {
			n, oobn, flags, _, err = unix.Recvmsg(int(fd), *buf, *oob, unix.MSG_CMSG_CLOEXEC|unix.MSG_DONTWAIT)
			// A peer that died with frames unread resets the connection. That is
			// said once; what it had sent is still there, and then the end.
			if err != unix.EINTR && err != unix.ECONNRESET {
				break
			}
		}
		if err == unix.EAGAIN {
			frames.Put(buf)
			return false
		}
		l.frame = buf
		if err == nil {
			files, err = rights((*oob)[:oobn])
		}
		return true
	}
	var cerr error
	if wait {
		cerr = l.raw.Read(take)
	} else {
		cerr = l.raw.Control(func(fd uintptr) { take(fd) })
	}
	switch {
	case cerr == nil && err == unix.EAGAIN:
		return nil, nil, msg.ErrNoFrame
	case cerr != nil:
		return nil, nil, cerr
	case err != nil:
		return nil, nil, err
	case flags&(unix.MSG_TRUNC|unix.MSG_CTRUNC) != 0:
		closeAll(files)
		return nil, nil, fmt.Errorf("ump: a packet that is too large, or more descriptors than this process may have")
	case n == 0:
		closeAll(files)
		return nil, nil, io.EOF
	}
	return (*l.frame)[:n], files, nil
}

// giveBack returns the buffer of the frame handed out last.
func (l *link) giveBack() {
	if l.frame != nil {
		frames.Put(l.frame)
		l.frame = nil
	}
}

// rights takes the descriptors out of a control message.
func rights(oob []byte) (files []*os.File, err error) {
	if len(oob) == 0 {
		return nil, nil
	}
	all, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return nil, err
	}
	for i := range all {
		fds, err := unix.ParseUnixRights(&all[i])
		if err != nil {
			continue // credentials or the like, which nobody asked for
		}
		for _, fd := range fds {
			files = append(files, os.NewFile(uintptr(fd), "received"))
		}
	}
	return files, nil
}

// Recv waits for a frame that is not the driver's own.
func (l *link) Recv(context.Context) ([]byte, []*os.File, error) { return l.recv(true) }

// TryRecv implements msg.Notifier.
func (l *link) TryRecv() ([]byte, []*os.File, error) { return l.recv(false) }

func (l *link) recv(wait bool) ([]byte, []*os.File, error) {
	for {
		b, files, err := l.packet(wait)
		switch {
		case err == msg.ErrNoFrame:
			return nil, nil, err
		case err != nil:
			if l.closed.Load() {
				err = msg.ErrClosed
			}
			return nil, nil, err
		case b[0] < frameMemory:
			return b, files, nil
		case b[0] == frameWake && len(files) == 0:
			l.Kick()
		case b[0] == frameBell && len(files) == 1 && l.rings.Load() == nil:
			if err := l.takeBell(files[0]); err != nil {
				return nil, nil, &msg.PeerError{Reason: err.Error()}
			}
		case b[0] == framePlace && len(files) == 1 && handsOver():
			if err := l.takePlace(files[0]); err != nil {
				return nil, nil, &msg.PeerError{Reason: err.Error()}
			}
		default:
			closeAll(files)
			return nil, nil, &msg.PeerError{Reason: fmt.Sprintf("frame of kind %#x", b[0])}
		}
	}
}

// takeBell keeps a duplicate of the peer's bell, and closes f.
func (l *link) takeBell(f *os.File) error {
	defer f.Close()
	r, err := newRinger(f)
	if err != nil {
		return err
	}
	l.rings.Store(r)
	if l.closed.Load() {
		r.close()
	}
	return nil
}

func (l *link) CanPass() bool { return true }

func (l *link) Peer() msg.Peer {
	p := l.peer
	if l.accepted {
		p.Addr = fmt.Sprintf("%s, process %d", p.Addr, p.PID)
	}
	return p
}

func (l *link) Shared() msg.Shared { return l }

// Close closes what the kernel keeps of the link. The memory stays as long as
// somebody uses it.
func (l *link) Close() error {
	if l.closed.Swap(true) {
		return nil
	}
	l.leave()
	err := l.sock.Close()
	l.call()
	l.gate.kick()
	if b := l.bell.Load(); b != nil {
		b.close()
	}
	l.closePlaces()
	l.sending.lock(context.Background())
	defer l.sending.unlock()
	if r := l.rings.Swap(nil); r != nil {
		r.close()
	}
	l.unkeep()
	return err
}

// Pages are the rings.
func (l *link) Pages() (tx, rx []byte) {
	half := l.pages * pageBytes
	tx, rx = l.mem.mem[:half:half], l.mem.mem[half:]
	if l.second {
		tx, rx = rx, tx
	}
	return tx, rx
}

func (l *link) Barrier()       { barrier.All() }
func (l *link) Barriers() bool { return barrier.Works() }
func (l *link) Futex() bool    { return true }

func (l *link) NewBulk(n int) (msg.Region, *os.File, error) {
	f, err := newMemory(n)
	if err != nil {
		return msg.Region{}, nil, err
	}
	m, err := mapFile(f, n, unix.PROT_READ|unix.PROT_WRITE)
	if err != nil {
		f.Close()
		return msg.Region{}, nil, err
	}
	return m.region(f), f, nil
}

func (l *link) MapBulk(f *os.File, n int) (msg.Region, error) {
	if f == nil {
		return msg.Region{}, errMemory
	}
	if err := checkMemory(f, n); err != nil {
		return msg.Region{}, err
	}
	m, err := mapFile(f, n, unix.PROT_READ)
	if err != nil {
		return msg.Region{}, err
	}
	return m.region(f), nil
}

// MapSend maps the memory for sending that another process made.
func (l *link) MapSend(f *os.File, n int) (msg.Region, error) {
	if err := checkMemory(f, n); err != nil {
		return msg.Region{}, err
	}
	m, err := mapFile(f, n, unix.PROT_READ|unix.PROT_WRITE)
	if err != nil {
		return msg.Region{}, err
	}
	return m.region(f), nil
}

// Detach gives up the link without closing it for the peer.
func (l *link) Detach() (state []byte, files []*os.File, err error) {
	l.sending.lock(context.Background())
	defer l.sending.unlock()
	if l.file == nil {
		return nil, nil, errors.New("ump: this process had too many connections to keep what moving an end takes")
	}
	if l.closed.Load() {
		return nil, nil, msg.ErrClosed
	}
	sock, err := l.dupSocket()
	if err != nil {
		return nil, nil, err
	}
	state = []byte{byte(l.pages), 0, 0}
	if l.second {
		state[1] = 1
	}
	files = []*os.File{sock, l.file}
	// The peer rings a bell that is this process's; it goes along, as does the
	// peer's.
	if b := l.bell.Load(); b != nil {
		state[2] |= 1
		f, err := dupFile(b.file)
		if err != nil {
			sock.Close()
			return nil, nil, err
		}
		files = append(files, f)
		b.close()
	}
	if r := l.rings.Swap(nil); r != nil {
		state[2] |= 2
		files = append(files, r.file())
	}
	// The peer's place goes along. This end's does not: the next owner gives one of
	// his own, if he naps at all.
	if p := l.theirs.Load(); p != nil {
		if f, err := p.File(); err == nil {
			state[2] |= 4
			files = append(files, f)
		}
	}
	l.closePlaces()
	if l.file != nil {
		kept.Add(-1)
		l.file = nil
	}
	l.closed.Store(true)
	l.leave()
	l.sock.Close()
	l.call()
	l.gate.kick()
	return state, files, nil
}

func (l *link) dupSocket() (*os.File, error) { return dup(l.raw, "link") }

func dupFile(f *os.File) (*os.File, error) {
	raw, err := f.SyscallConn()
	if err != nil {
		return nil, err
	}
	return dup(raw, f.Name())
}

func dup(raw syscall.RawConn, name string) (f *os.File, err error) {
	fd := -1
	cerr := raw.Control(func(p uintptr) { fd, err = unix.FcntlInt(p, unix.F_DUPFD_CLOEXEC, 0) })
	if err = errors.Join(cerr, err); err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), name), nil
}

// Attach takes up a link that Detach gave up, perhaps in another process, which
// is not trusted.
func (Driver) Attach(state []byte, files []*os.File) (msg.Link, error) {
	want := 2
	if len(state) == 3 {
		want += bits.OnesCount8(state[2] & 7)
	}
	if len(state) != 3 || state[0] < 1 || state[0] > 8 || len(files) != want {
		closeAll(files)
		return nil, errors.New("ump: not the state of a link")
	}
	if err := checkSocket(files[0]); err != nil {
		closeAll(files)
		return nil, err
	}
	l, err := fileLink(files[0], "moved")
	if err != nil {
		closeAll(files[1:])
		return nil, err
	}
	l.pages = int(state[0])
	if err := l.adopt(files[1], state[1] != 0); err != nil {
		l.sock.Close()
		closeAll(files[1:])
		return nil, err
	}
	rest := files[2:]
	if state[2]&1 != 0 {
		b, err := openBell(rest[0])
		if err != nil {
			l.Close()
			closeAll(rest)
			return nil, err
		}
		l.bell.Store(b)
		rest = rest[1:]
	}
	if state[2]&2 != 0 {
		if err := l.takeBell(rest[0]); err != nil {
			l.Close()
			closeAll(rest[1:])
			return nil, err
		}
		rest = rest[1:]
	}
	if state[2]&4 != 0 {
		if err := l.takePlace(rest[0]); err != nil {
			l.Close()
			return nil, err
		}
	}
	return l, nil
}

// checkSocket checks that a file is a connected Unix socket of packets.
func checkSocket(f *os.File) error {
	return withFD(f, func(fd int) error {
		for _, want := range [][2]int{{unix.SO_DOMAIN, unix.AF_UNIX}, {unix.SO_TYPE, unix.SOCK_SEQPACKET}, {unix.SO_ACCEPTCONN, 0}} {
			if v, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, want[0]); err != nil || v != want[1] {
				return errors.New("ump: a link's socket is none")
			}
		}
		return unix.SetNonblock(fd, true)
	})
}
