package service

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"sync"

	"hardtack/abi/linux"
	"hardtack/kernel/base/accounts"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/creds"
	"hardtack/kernel/base/ledger"
	"hardtack/kernel/base/mem"
	"hardtack/kernel/base/uio"
	"hardtack/kernel/base/wait"
	"hardtack/kernel/fs/vfs"
	"hardtack/kernel/process/proc"
	"hardtack/msg"
)

// Events of readiness.
const (
	readable = wait.In | wait.RdNorm
	writable = wait.Out | wait.WrNorm
)

// Sizes. A frame of a near link (msg.Near) is no longer, and fits into a buffer with its length.
const (
	headBytes   = 4
	maxFrame    = 8 << 10
	bufferBytes = maxFrame + headBytes
)

// What a connection takes beside its file: the rings, frames and goroutines of package msg (baseBytes),
// and memory for long messages in each direction that has had one. TestServices in test/guest compares
// it with the heap.
const (
	baseBytes = 112 << 10
	longBytes = 64 << 10
)

// pool is of connections.
var pool = accounts.LatePool{Make: func() *accounts.Pool {
	const frames = (baseBytes + 2*longBytes) / mem.PageSize
	return accounts.NewPool(int64(min(max(mem.Total()/frames/16, 16), 1024)))
}}

// Client is a program's connection to a service: the open file on one side, a link of msg on the
// other. Both write into buffers of a fixed size, and whoever finds one full waits.
type Client struct {
	vfs.BaseOps
	Cred   *creds.Cred  // of who has opened the file; immutable
	PID    int32        // immutable
	Origin *proc.Origin // what programs that it starts inherit; immutable
	user   *accounts.User
	s      *listener
	addr   string
	queue  wait.Queue
	wake   chan struct{} // full when Recv or Send is to look again
	room   chan struct{}
	sendMu sync.Mutex // one frame at a time
	readMu sync.Mutex // one reader at a time, who takes what he could copy

	mu      sync.Mutex
	up      buffer // to the service; guarded by mu, as all below
	down    buffer // to the program
	gone    bool   // the file was closed
	over    bool   // the link was
	serving int    // who uses it beside both
	settled bool
	long    [2]bool
	holds   func(*ledger.Sum) // what the service keeps for it

	frame []byte // of the last Recv
}

// buffer is a queue of bytes.
type buffer struct {
	b     [bufferBytes]byte
	at, n int
}

func (q *buffer) room() int { return len(q.b) - q.n }

func (q *buffer) put(p []byte) {
	end := (q.at + q.n) % len(q.b)
	n := copy(q.b[end:], p)
	copy(q.b[:], p[n:])
	q.n += len(p)
}

// peek fills p with the first bytes.
func (q *buffer) peek(p []byte) {
	n := copy(p, q.b[q.at:])
	copy(p[n:], q.b[:])
}

func (q *buffer) take(p []byte) {
	q.peek(p)
	q.drop(len(p))
}

func (q *buffer) drop(n int) { q.at, q.n = (q.at+n)%len(q.b), q.n-n }

func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Hold has f add to the ledger what the service keeps for the client.
func (x *Client) Hold(f func(*ledger.Sum)) {
	x.mu.Lock()
	x.holds = f
	x.mu.Unlock()
}

// Holds adds the connection.
func (x *Client) Holds(s *ledger.Sum) {
	x.mu.Lock()
	over, long, more := x.over, x.long, x.holds
	x.mu.Unlock()
	s.Add(ledger.Sockets, ledger.Of[Client]())
	if over {
		return
	}
	s.Add(ledger.Sockets, baseBytes)
	for _, l := range long {
		if l {
			s.Add(ledger.Messages, longBytes)
		}
	}
	if more != nil {
		more(s)
	}
}

// sleep waits until ready.
func (x *Client) sleep(c *caller.Ctx, ev wait.Events, ready wait.Events) linux.Errno {
	x.queue.Add(&c.Entry, &c.Sleeper, ev)
	defer x.queue.Remove(&c.Entry)
	for {
		c.Arm()
		if x.Ready(nil)&(ready|wait.Hup) != 0 {
			return 0
		}
		if c.Sleep(wait.NoDeadline) == wait.Interrupted {
			return linux.ERESTARTSYS
		}
	}
}

// Read takes what the service has sent, and at the end of the connection nothing. What cannot be copied
// to the program stays.
func (x *Client) Read(c *caller.Ctx, f *vfs.File, v *uio.Vec, _ int64) (int, linux.Errno) {
	for v.Len() > 0 {
		n, over, e := x.read(v)
		switch {
		case n > 0:
			poke(x.room)
			return n, 0
		case e != 0 || over:
			return 0, e
		case f.NonBlock():
			return 0, linux.EAGAIN
		}
		if e := x.sleep(c, readable, readable); e != 0 {
			return 0, e
		}
	}
	return 0, 0
}

// read moves what is there to v, and tells whether nothing more comes.
func (x *Client) read(v *uio.Vec) (n int, over bool, e linux.Errno) {
	var buf [2048]byte
	x.readMu.Lock()
	defer x.readMu.Unlock()
	x.mu.Lock()
	n, over = min(x.down.n, v.Len(), len(buf)), x.over
	x.down.peek(buf[:n])
	x.mu.Unlock()
	if n == 0 {
		return 0, over, 0
	}
	n, e = v.CopyOut(buf[:n])
	x.mu.Lock()
	x.down.drop(n)
	x.mu.Unlock()
	return n, false, e
}

// Write gives the service bytes, all of them unless the file does not block.
func (x *Client) Write(c *caller.Ctx, f *vfs.File, v *uio.Vec, _ int64) (done int, e linux.Errno) {
	var buf [2048]byte
	for v.Len() > 0 && e == 0 {
		n, fault := v.CopyIn(buf[:min(len(buf), v.Len())])
		e = fault
		for b := buf[:n]; len(b) > 0 && e == 0; {
			x.mu.Lock()
			n, over := min(x.up.room(), len(b)), x.over
			if !over {
				x.up.put(b[:n])
			}
			x.mu.Unlock()
			switch {
			case over:
				e = linux.EPIPE
			case n > 0:
				done, b = done+n, b[n:]
				poke(x.wake)
			case f.NonBlock():
				e = linux.EAGAIN
			default:
				e = x.sleep(c, writable, writable)
			}
		}
	}
	if done > 0 {
		return done, 0
	}
	return 0, e
}

// Ready is what poll reports.
func (x *Client) Ready(*vfs.File) (ev wait.Events) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.over {
		return readable | writable | wait.Hup
	}
	if x.down.n > 0 {
		ev |= readable
	}
	if x.up.room() > 0 {
		ev |= writable
	}
	return ev
}

// Queue is where readiness is announced.
func (x *Client) Queue(*vfs.File) *wait.Queue { return &x.queue }

// Release ends the connection: the program has closed it, or has ended.
func (x *Client) Release(*vfs.File) {
	x.mu.Lock()
	x.gone = true
	x.settle()
	x.mu.Unlock()
	poke(x.wake)
	poke(x.room)
}

// settle gives back what the connection was charged for when neither the file nor the link nor
// a handler needs it; mu is held.
func (x *Client) settle() {
	if x.gone && x.over && x.serving == 0 && !x.settled {
		x.settled = true
		if x.Origin != nil {
			x.Origin.Release()
		}
		pool.Get().Release(x.user, 1)
	}
}

// enter keeps it until leave.
func (x *Client) enter() {
	x.mu.Lock()
	x.serving++
	x.mu.Unlock()
}

func (x *Client) leave() {
	x.mu.Lock()
	x.serving--
	x.settle()
	x.mu.Unlock()
}

// Recv implements msg.Link.
func (x *Client) Recv(ctx context.Context) ([]byte, []*os.File, error) {
	for {
		x.mu.Lock()
		ok, err := x.next()
		x.mu.Unlock()
		if ok {
			x.queue.Notify(writable)
			return x.frame, nil, nil
		}
		if err != nil {
			x.Close()
			return nil, nil, err
		}
		select {
		case <-x.wake:
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		}
	}
}

// next takes a whole frame, if one is there; mu is held.
func (x *Client) next() (bool, error) {
	if x.over {
		return false, msg.ErrClosed
	}
	if x.up.n >= headBytes {
		var head [headBytes]byte
		x.up.peek(head[:])
		n := binary.LittleEndian.Uint32(head[:])
		if n > maxFrame {
			return false, &msg.PeerError{Reason: fmt.Sprintf("a frame of %d bytes", n)}
		}
		if x.up.n >= headBytes+int(n) {
			x.up.take(head[:])
			if cap(x.frame) < int(n) {
				x.frame = make([]byte, n)
			}
			x.frame = x.frame[:n]
			x.up.take(x.frame)
			x.long[0] = x.long[0] || n > msg.BulkBytes
			return true, nil
		}
	}
	if x.gone {
		return false, io.EOF
	}
	return false, nil
}

// Send implements msg.Link.
func (x *Client) Send(ctx context.Context, frame []byte, files []*os.File) error {
	if len(files) > 0 {
		return msg.ErrNoCaps
	}
	if len(frame) > maxFrame {
		return fmt.Errorf("service: a frame of %d bytes", len(frame))
	}
	x.sendMu.Lock()
	defer x.sendMu.Unlock()
	var head [headBytes]byte
	binary.LittleEndian.PutUint32(head[:], uint32(len(frame)))
	for {
		x.mu.Lock()
		err := error(nil)
		fits := x.down.room() >= headBytes+len(frame)
		switch {
		case x.over:
			err = msg.ErrClosed
		case x.gone:
			err = io.EOF
		case fits:
			x.down.put(head[:])
			x.down.put(frame)
			x.long[1] = x.long[1] || len(frame) > msg.BulkBytes
		}
		x.mu.Unlock()
		if err != nil || fits {
			x.queue.Notify(readable)
			return err
		}
		select {
		case <-x.room:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Near implements msg.Near.
func (x *Client) Near() bool { return true }

// CanPass implements msg.Link: services take no descriptors.
func (x *Client) CanPass() bool { return false }

// Peer implements msg.Link: who has opened the file.
func (x *Client) Peer() msg.Peer {
	return msg.Peer{PID: int(x.PID), UID: int(x.Cred.EUID), GID: int(x.Cred.EGID), Scheme: Scheme, Addr: x.addr}
}

// Shared implements msg.Link.
func (x *Client) Shared() msg.Shared { return nil }

// Close implements msg.Link. What was sent can still be read.
func (x *Client) Close() error {
	x.mu.Lock()
	x.over = true
	x.settle()
	x.mu.Unlock()
	x.s.forget(x)
	poke(x.wake)
	poke(x.room)
	x.queue.Notify(readable | writable | wait.Hup)
	return nil
}
