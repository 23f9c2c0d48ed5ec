// Package channel has the files of /dev/cluster (abi/cluster): channels to processes of
// other clusters, which the monitors join (package monitor).
//
// Lock order: file.mu, then the monitor's locks. The monitor tells of changes with its own
// locks held; then only the file's queue is notified.
package channel

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"sync"

	abi "hardtack/abi/cluster"
	"hardtack/abi/linux"
	proto "hardtack/idl/monitor"
	"hardtack/kernel/base/accounts"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/creds"
	"hardtack/kernel/base/ledger"
	"hardtack/kernel/base/mem"
	"hardtack/kernel/base/uio"
	"hardtack/kernel/base/wait"
	"hardtack/kernel/fs/vfs"
	"hardtack/kernel/process/proc"
	"hardtack/monitor"
	"hardtack/msg"
)

// Events of readiness.
const (
	readable = wait.In | wait.RdNorm
	writable = wait.Out | wait.WrNorm
)

// pool is of open files of the device: each may keep two windows of bytes.
var pool = accounts.LatePool{Make: func() *accounts.Pool {
	const frames = 4 * monitor.Window / mem.PageSize
	return accounts.NewPool(int64(min(max(mem.Total()/frames/8, 16), 1024)))
}}

// Device is the device of a kernel.
type Device struct {
	Monitor *monitor.Monitor
	Cluster int // the kernel's own number
}

// Open opens the device.
func (d *Device) Open(c *caller.Ctx, _ uint32) (vfs.Ops, linux.Errno) {
	return d.newFile(c.User())
}

func (d *Device) newFile(u *accounts.User) (*file, linux.Errno) {
	if !pool.Get().Charge(u, 1) {
		return nil, linux.ENFILE
	}
	return &file{d: d, user: u}, 0
}

// file is an open device.
type file struct {
	vfs.BaseOps
	d     *Device
	user  *accounts.User // who is charged
	queue wait.Queue

	mu         sync.Mutex
	connecting bool              // guarded by mu, as all below
	failed     linux.Errno       // why connecting did not succeed
	channel    *monitor.Channel  // set once
	listener   *monitor.Listener // set once
	ringed     bool              // somebody has its rings
	released   bool
}

// what returns what the file has become.
func (x *file) what() (*monitor.Channel, *monitor.Listener) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.channel, x.listener
}

// Holds adds the file and what it has become, with the bytes that wait in a channel.
func (x *file) Holds(s *ledger.Sum) {
	n := ledger.Of[file]()
	ch, l := x.what()
	if ch != nil {
		n += ledger.Of[monitor.Channel]()
		s.Add(ledger.Messages, int64(ch.Kept()))
	}
	if l != nil {
		n += ledger.Of[monitor.Listener]()
	}
	s.Add(ledger.Sockets, n)
}

// sleep waits until ready.
func (x *file) sleep(c *caller.Ctx, ev wait.Events, ready func() bool) linux.Errno {
	x.queue.Add(&c.Entry, &c.Sleeper, ev)
	defer x.queue.Remove(&c.Entry)
	for {
		c.Arm()
		if ready() {
			return 0
		}
		if c.Sleep(wait.NoDeadline) == wait.Interrupted {
			return linux.ERESTARTSYS
		}
	}
}

func errno(err error) linux.Errno {
	switch {
	case err == nil:
		return 0
	case errors.Is(err, msg.ErrNoName), errors.Is(err, proto.ErrNoCluster):
		return linux.ENODEV
	case errors.Is(err, proto.ErrNoName):
		return linux.ENOENT
	case errors.Is(err, proto.ErrBusy):
		return linux.EAGAIN
	case errors.Is(err, monitor.ErrTaken):
		return linux.EADDRINUSE
	case errors.Is(err, monitor.ErrClosed):
		return linux.EPIPE
	}
	return linux.ECONNRESET
}

// Read takes what has come.
func (x *file) Read(c *caller.Ctx, f *vfs.File, v *uio.Vec, _ int64) (int, linux.Errno) {
	ch, _ := x.what()
	if ch == nil {
		return 0, linux.ENOTCONN
	}
	var buf [4096]byte
	for want := buf[:min(len(buf), v.Len())]; len(want) > 0; {
		n, err := ch.Read(want)
		switch {
		case n > 0:
			return v.CopyOut(want[:n])
		case err == io.EOF:
			return 0, 0
		case err != nil:
			return 0, errno(err)
		case f.NonBlock():
			return 0, linux.EAGAIN
		}
		if e := x.sleep(c, readable, func() bool { in, _, _ := ch.Ready(); return in }); e != 0 {
			return 0, e
		}
	}
	return 0, 0
}

// Write puts bytes on their way, all of them unless the file does not block.
func (x *file) Write(c *caller.Ctx, f *vfs.File, v *uio.Vec, _ int64) (done int, e linux.Errno) {
	ch, _ := x.what()
	if ch == nil {
		return 0, linux.ENOTCONN
	}
	var buf [4096]byte
	for v.Len() > 0 && e == 0 {
		n, fault := v.CopyIn(buf[:min(len(buf), v.Len())])
		e = fault
		for b := buf[:n]; len(b) > 0 && e == 0; {
			n, err := ch.Write(b)
			done += n
			switch b = b[n:]; {
			case err != nil:
				e = errno(err)
			case n > 0:
			case f.NonBlock():
				e = linux.EAGAIN
			default:
				e = x.sleep(c, writable, func() bool { _, out, _ := ch.Ready(); return out })
			}
		}
	}
	if done > 0 {
		return done, 0
	}
	return 0, e
}

// Ready is what poll reports.
func (x *file) Ready(*vfs.File) (ev wait.Events) {
	ch, l := x.what()
	switch {
	case ch != nil:
		in, out, gone := ch.Ready()
		if in {
			ev |= readable
		}
		if out {
			ev |= writable
		}
		if gone {
			ev |= wait.Hup
		}
	case l != nil && l.Ready():
		ev = readable
	}
	return ev
}

// Queue is where readiness is announced.
func (x *file) Queue(*vfs.File) *wait.Queue { return &x.queue }

// notify tells of a change.
func (x *file) notify() { x.queue.Notify(readable | writable | wait.Hup) }

// Release ends what the file was.
func (x *file) Release(*vfs.File) {
	x.mu.Lock()
	x.released = true
	ch, l := x.channel, x.listener
	x.mu.Unlock()
	if ch != nil {
		ch.Close()
	}
	if l != nil {
		l.Close()
	}
	pool.Get().Release(x.user, 1)
}

// Ioctl has the requests of abi/cluster.
func (x *file) Ioctl(c *caller.Ctx, f *vfs.File, cmd uint32, arg uint64) (uint64, linux.Errno) {
	switch cmd {
	case abi.Connect, abi.ConnectRings, abi.Listen:
		return 0, x.address(c, cmd, arg)
	case abi.RingPages:
		return x.ringPages()
	case abi.Rings:
		return x.rings(c, arg)
	case abi.Accept:
		return x.accept(c, f, arg)
	case abi.WhoIs:
		b := make([]byte, 0, abi.PeerSize)
		p := [5]uint32{uint32(x.d.Cluster)}
		if ch, _ := x.what(); ch != nil {
			p = [5]uint32{p[0], uint32(ch.Peer()), ch.At.Process, ch.At.User, ch.At.Group}
		}
		for _, w := range p {
			b = binary.LittleEndian.AppendUint32(b, w)
		}
		_, e := c.Mem.CopyOut(uio.Addr(arg), b)
		return 0, e
	}
	return 0, linux.ENOTTY
}

// address has the requests that take one.
func (x *file) address(c *caller.Ctx, cmd uint32, arg uint64) linux.Errno {
	var b [abi.RingAddressSize]byte
	size := abi.AddressSize
	if cmd == abi.ConnectRings {
		size = abi.RingAddressSize
	}
	if _, e := c.Mem.CopyIn(b[:size], uio.Addr(arg)); e != 0 {
		return e
	}
	name, _, _ := bytes.Cut(b[4:abi.AddressSize], []byte{0})
	pages := binary.LittleEndian.Uint32(b[abi.AddressSize:])
	switch {
	case len(name) == 0 || pages > abi.MaxRingPages || cmd == abi.ConnectRings && pages == 0:
		return linux.EINVAL
	case string(name) == abi.Spawn && !c.Cred().Has(creds.CapSysAdmin):
		return linux.EPERM
	case cmd == abi.Listen:
		return x.listen(c, string(name))
	}
	return x.connect(c, int(binary.LittleEndian.Uint32(b[:])), string(name), int(pages))
}

func whoIs(c *caller.Ctx) monitor.Who {
	cred := c.Cred()
	w := monitor.Who{User: cred.EUID, Group: cred.EGID}
	if t := proc.Of(c); t != nil {
		w.Process = uint32(t.Proc.PID)
	}
	return w
}

func (x *file) listen(c *caller.Ctx, name string) linux.Errno {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.connecting || x.channel != nil || x.listener != nil {
		return linux.EINVAL
	}
	l, err := x.d.Monitor.Listen(name, whoIs(c), x.notify)
	if err != nil {
		return errno(err)
	}
	x.listener = l
	return 0
}

// connect waits for the other kernel. If a signal comes it goes on, and calling again
// waits for the same.
func (x *file) connect(c *caller.Ctx, cluster int, name string, pages int) linux.Errno {
	x.mu.Lock()
	if x.channel != nil || x.listener != nil {
		x.mu.Unlock()
		return linux.EISCONN
	}
	if !x.connecting {
		x.connecting, x.failed = true, 0
		go x.open(cluster, name, whoIs(c), pages)
	}
	x.mu.Unlock()
	e := x.sleep(c, writable, func() bool {
		x.mu.Lock()
		defer x.mu.Unlock()
		return !x.connecting
	})
	if e != 0 {
		return e
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.failed
}

func (x *file) open(cluster int, name string, who monitor.Who, pages int) {
	ch, err := x.d.Monitor.Open(cluster, name, who, pages)
	x.mu.Lock()
	x.connecting, x.failed = false, errno(err)
	if err == nil {
		x.channel = ch
		ch.Notify(x.notify)
		if x.released {
			ch.Close()
		}
	}
	x.mu.Unlock()
	x.notify()
}

func (x *file) accept(c *caller.Ctx, f *vfs.File, flags uint64) (uint64, linux.Errno) {
	_, l := x.what()
	t := proc.Of(c)
	if l == nil || t == nil || flags&^(linux.O_NONBLOCK|linux.O_CLOEXEC) != 0 {
		return 0, linux.EINVAL
	}
	y, e := x.d.newFile(c.User())
	if e != 0 {
		return 0, e
	}
	for y.channel == nil {
		if y.channel = l.Accept(); y.channel != nil {
			break
		}
		if e = linux.EAGAIN; !f.NonBlock() {
			e = x.sleep(c, readable, l.Ready)
		}
		if e != 0 {
			y.Release(nil)
			return 0, e
		}
	}
	y.channel.Notify(y.notify)
	made := vfs.NewFile(y, linux.O_RDWR|uint32(flags)&linux.O_NONBLOCK)
	fd, e := t.FDs.Add(made, 0, t.NoFile(), flags&linux.O_CLOEXEC != 0)
	if e != 0 {
		made.Put()
	}
	return uint64(fd), e
}
