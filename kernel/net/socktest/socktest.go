// Package socktest drives sockets in tests as a program would: by small calls
// on files, with a kernel thread for each goroutine.
package socktest

import (
	"testing"
	"time"

	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/uio"
	"hardtack/kernel/base/wait"
	"hardtack/kernel/fs/vfs"
	"hardtack/kernel/net/sock"
)

// T is one thread of a test program.
type T struct {
	testing.TB
	C *caller.Ctx
}

// New returns a thread.
func New(tb testing.TB) *T {
	c := caller.NewKernelCtx()
	c.PID, c.TID = 100, 100
	return &T{tb, c}
}

// Go runs fn on a thread of its own; the channel closes when it returns.
func (t *T) Go(fn func(t *T)) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		fn(New(t.TB))
	}()
	return done
}

// Wait waits for a thread, at most two minutes.
func (t *T) Wait(done <-chan struct{}) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(2 * time.Minute):
		t.Fatal("the other thread hangs")
	}
}

// S returns a file's socket.
func S(f *vfs.File) sock.Socket { return f.Ops.(sock.Socket) }

// Socket is socket(2).
func (t *T) Socket(domain, typ, proto int32) *vfs.File {
	t.Helper()
	f, e := sock.New(t.C, domain, typ, proto, 0)
	t.OK(e, "socket")
	return f
}

// Pair is socketpair(2).
func (t *T) Pair(typ int32) (a, b *vfs.File) {
	t.Helper()
	a, b, e := sock.NewPair(t.C, linux.AF_UNIX, typ, 0, 0)
	t.OK(e, "socketpair")
	return a, b
}

// OK fails the test unless e is 0.
func (t *T) OK(e linux.Errno, what string) {
	t.Helper()
	if e != 0 {
		t.Fatalf("%s: %v", what, e)
	}
}

// Want fails the test unless e is the error expected.
func (t *T) Want(e, want linux.Errno, what string) {
	t.Helper()
	if e != want {
		t.Fatalf("%s: %v, want %v", what, e, want)
	}
}

// Write is write(2).
func (t *T) Write(f *vfs.File, s string) {
	t.Helper()
	n, e := f.Ops.Write(t.C, f, uio.Bytes([]byte(s)), 0)
	if e != 0 || n != len(s) {
		t.Fatalf("write %q: %d, %v", s, n, e)
	}
}

// WriteErr is write(2) that may fail.
func (t *T) WriteErr(f *vfs.File, s string) (int, linux.Errno) {
	return f.Ops.Write(t.C, f, uio.Bytes([]byte(s)), 0)
}

// Read is read(2) of at most n bytes.
func (t *T) Read(f *vfs.File, n int) string {
	t.Helper()
	b := make([]byte, n)
	m, e := f.Ops.Read(t.C, f, uio.Bytes(b), 0)
	t.OK(e, "read")
	return string(b[:m])
}

// ReadErr is read(2) that may fail.
func (t *T) ReadErr(f *vfs.File, n int) (string, linux.Errno) {
	b := make([]byte, n)
	m, e := f.Ops.Read(t.C, f, uio.Bytes(b), 0)
	return string(b[:max(m, 0)]), e
}

// Recv is recvmsg(2).
func (t *T) Recv(f *vfs.File, n int, flags int32) (string, *sock.Msg, linux.Errno) {
	b := make([]byte, n)
	m := &sock.Msg{V: uio.Bytes(b), Flags: flags, WantFrom: true}
	k, e := S(f).Recv(t.C, f, m)
	return string(b[:min(max(k, 0), n)]), m, e
}

// Send is sendmsg(2).
func (t *T) Send(f *vfs.File, s string, m *sock.Msg) (int, linux.Errno) {
	m.V = uio.Bytes([]byte(s))
	return S(f).Send(t.C, f, m)
}

// Poll waits until one of the events holds, at most two seconds.
func (t *T) Poll(f *vfs.File, ev wait.Events) wait.Events {
	t.Helper()
	deadline := wait.Now() + int64(2*time.Second)
	q := f.Ops.Queue(f)
	q.Add(&t.C.Entry, t.C, ev)
	defer q.Remove(&t.C.Entry)
	for {
		t.C.Arm()
		if got := f.Ops.Ready(f); got&ev != 0 {
			return got
		}
		if t.C.Sleep(deadline) == wait.TimedOut {
			t.Fatalf("poll for %#x timed out, ready %#x", ev, f.Ops.Ready(f))
		}
	}
}

// Ready returns the events that hold now.
func Ready(f *vfs.File) wait.Events { return f.Ops.Ready(f) }

// NonBlock sets O_NONBLOCK.
func NonBlock(f *vfs.File) { f.UpdateFlags(linux.O_NONBLOCK, linux.O_NONBLOCK) }

// Bytes returns an address of raw bytes.
func Bytes(b []byte) *sock.Addr {
	a := new(sock.Addr)
	a.Set(b)
	return a
}

// Abstract returns an abstract AF_UNIX address.
func Abstract(name string) *sock.Addr {
	return Bytes(append([]byte{linux.AF_UNIX, 0, 0}, name...))
}

// In4 returns an AF_INET address.
func In4(a, b, c, d byte, port uint16) *sock.Addr {
	x := make([]byte, linux.SizeofSockaddrIn)
	x[0] = linux.AF_INET
	x[2], x[3] = byte(port>>8), byte(port)
	x[4], x[5], x[6], x[7] = a, b, c, d
	return Bytes(x)
}

// In6 returns an AF_INET6 address.
func In6(ip [16]byte, port uint16) *sock.Addr {
	x := make([]byte, linux.SizeofSockaddrIn6)
	x[0] = linux.AF_INET6
	x[2], x[3] = byte(port>>8), byte(port)
	copy(x[8:], ip[:])
	return Bytes(x)
}

// Port returns the port that getsockname shows.
func (t *T) Port(f *vfs.File) uint16 {
	t.Helper()
	var a sock.Addr
	t.OK(S(f).LocalAddr(&a), "getsockname")
	return uint16(a.B[2])<<8 | uint16(a.B[3])
}
