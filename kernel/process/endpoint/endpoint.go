// Package endpoint is the kernel's side of message calls (abi/ipc): their system calls,
// the threads that make them, and the files of endpoints and notifications. The nucleus
// has the objects (nucleus/ipc) and transfers messages; a file keeps an object alive and
// reports its readiness.
//
// Lock order: the table's lock is a leaf. The nucleus hands over woken threads while
// any lock of kernel/process/proc may be held, so EndpointReady only notifies a queue.
package endpoint

import (
	"sync"
	"sync/atomic"

	"hardtack/abi/linux"
	"hardtack/kernel/base/accounts"
	"hardtack/kernel/base/wait"
	"hardtack/kernel/fs/vfs"
	"hardtack/kernel/process/proc"
	"hardtack/nucleus"
	core "hardtack/nucleus/ipc"
)

// object is an endpoint or a notification.
type object struct {
	id    core.ID        // immutable
	user  *accounts.User // who is charged; immutable
	ended atomic.Bool    // the nucleus has it no more
	queue wait.Queue
}

// file is what its three kinds have in common.
type file struct {
	vfs.BaseOps
	o *object // immutable
}

type (
	receiver     struct{ file }
	notification struct{ file }
	// sender is a sending descriptor's; the badge is immutable.
	sender struct {
		file
		badge uint64
	}
)

// endpoints and notifications find the object of an index, for readiness.
var (
	endpoints     [core.MaxEndpoints]atomic.Pointer[object]
	notifications [core.MaxNotifications]atomic.Pointer[object]
)

// The machine has few of both (place 0 is nobody's), and users share them.
var (
	endpointPool     = accounts.NewPool(core.MaxEndpoints - 1)
	notificationPool = accounts.NewPool(core.MaxNotifications - 1)
)

// EndpointReady wakes those that poll the endpoint i of the nucleus.
func EndpointReady(i uint32) { ready(endpoints[i].Load()) }

// NotificationReady wakes those that poll a notification.
func NotificationReady(i uint32) { ready(notifications[i].Load()) }

func ready(o *object) {
	if o != nil {
		o.queue.Notify(wait.In | wait.RdNorm)
	}
}

// newEndpoint returns the two files of a user's new endpoint.
func newEndpoint(u *accounts.User) (receive, send *vfs.File, e linux.Errno) {
	o, e := newObject(u, endpointPool, nucleus.NewEndpoint)
	if e != 0 {
		return nil, nil, e
	}
	id := o.id
	endpoints[id.Index()].Store(o)
	return newFile(&receiver{file{o: o}}, linux.O_RDONLY), newFile(&sender{file: file{o: o}}, linux.O_WRONLY), 0
}

// newObject takes an object of the nucleus for a user; ENFILE when there is none, or
// the user has many.
func newObject(u *accounts.User, pool *accounts.Pool, make func() (core.ID, linux.Errno)) (*object, linux.Errno) {
	if !pool.Charge(u, 1) {
		return nil, linux.ENFILE
	}
	id, e := make()
	if e != 0 {
		pool.Release(u, 1)
		return nil, e
	}
	return &object{id: id, user: u}, 0
}

// newNotification returns the file of a user's new notification.
func newNotification(u *accounts.User) (*vfs.File, linux.Errno) {
	o, e := newObject(u, notificationPool, nucleus.NewNotification)
	if e != 0 {
		return nil, e
	}
	notifications[o.id.Index()].Store(o)
	return newFile(&notification{file{o: o}}, linux.O_RDWR), 0
}

// mint returns another sending file of f's endpoint, with a badge.
func mint(f *vfs.File, badge uint64) (*vfs.File, linux.Errno) {
	switch x := f.Ops.(type) {
	case *receiver:
		return newFile(&sender{file{o: x.o}, badge}, linux.O_WRONLY), 0
	case *sender:
		if x.badge != 0 {
			return nil, linux.EPERM
		}
		return newFile(&sender{file{o: x.o}, badge}, linux.O_WRONLY), 0
	}
	return nil, linux.EBADF
}

func newFile(ops vfs.Ops, flags uint32) *vfs.File {
	f := vfs.NewFile(ops, flags)
	f.SetRemembered()
	return f
}

// targetOf says what a file is to message calls. EBADF: it is no endpoint or
// notification; EPIPE: the endpoint has ended.
func targetOf(f *vfs.File) (t nucleus.Target, e linux.Errno) {
	var o *object
	switch x := f.Ops.(type) {
	case *receiver:
		o, t.Kind = x.o, nucleus.ReceiveTarget
	case *sender:
		o, t.Kind, t.Badge = x.o, nucleus.SendTarget, x.badge
	case *notification:
		o, t.Kind = x.o, nucleus.NotificationTarget
	default:
		return t, linux.EBADF
	}
	if o.ended.Load() {
		e = linux.EPIPE
	}
	t.ID = o.id
	return t, e
}

// Release ends the endpoint: its last receiving descriptor is gone.
func (x *receiver) Release(*vfs.File) {
	x.o.ended.Store(true)
	endpoints[x.o.id.Index()].CompareAndSwap(x.o, nil)
	nucleus.EndEndpoint(x.o.id)
	endpointPool.Release(x.o.user, 1)
	nucleus.ServeMessages()
	x.o.queue.Notify(wait.Err)
}

// Release ends the notification.
func (x *notification) Release(*vfs.File) {
	x.o.ended.Store(true)
	notifications[x.o.id.Index()].CompareAndSwap(x.o, nil)
	nucleus.EndNotification(x.o.id)
	notificationPool.Release(x.o.user, 1)
	nucleus.ServeMessages()
}

// Queue is where readiness is announced.
func (x *file) Queue(*vfs.File) *wait.Queue { return &x.o.queue }

// Queue is where readiness is announced, from now on.
func (x *receiver) Queue(*vfs.File) *wait.Queue {
	nucleus.WatchEndpoint(x.o.id)
	return &x.o.queue
}

// Queue is where readiness is announced, from now on.
func (x *notification) Queue(*vfs.File) *wait.Queue {
	nucleus.WatchNotification(x.o.id)
	return &x.o.queue
}

// Ready is what poll reports.
func (x *receiver) Ready(*vfs.File) wait.Events {
	if nucleus.SenderWaits(x.o.id) {
		return wait.In | wait.RdNorm
	}
	return 0
}

// Ready is what poll reports.
func (x *sender) Ready(*vfs.File) wait.Events {
	if x.o.ended.Load() {
		return wait.Out | wait.WrNorm | wait.Err
	}
	return wait.Out | wait.WrNorm
}

// Ready is what poll reports.
func (x *notification) Ready(*vfs.File) wait.Events {
	ev := wait.Out | wait.WrNorm
	if nucleus.BitsSet(x.o.id) {
		ev |= wait.In | wait.RdNorm
	}
	return ev
}

// Name is the text of /proc/self/fd/N.
func (x *file) Name(*vfs.File) string { return "anon_inode:[endpoint]" }

// Name is the text of /proc/self/fd/N.
func (x *notification) Name(*vfs.File) string { return "anon_inode:[notification]" }

// inFlight is a file in a message, and who sent it.
type inFlight struct {
	f   *vfs.File
	pid int32
	uid uint32
}

// Files in flight: a message carries numbers, behind which the files are.
var flight struct {
	mu   sync.Mutex
	last uint64
	file map[uint64]inFlight // guarded by mu
}

// send takes over a file's reference and returns the number that stands for it.
func send(f *vfs.File, from *proc.Thread) uint64 {
	flight.mu.Lock()
	defer flight.mu.Unlock()
	if flight.file == nil {
		flight.file = map[uint64]inFlight{}
	}
	flight.last++
	flight.file[flight.last] = inFlight{f, from.PID, from.Cred().UID}
	return flight.last
}

// receive gives the file behind a number, once; then nil.
func receive(number uint64) *vfs.File {
	flight.mu.Lock()
	defer flight.mu.Unlock()
	x := flight.file[number]
	delete(flight.file, number)
	return x.f
}
