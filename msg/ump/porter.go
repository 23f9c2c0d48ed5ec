package ump

import (
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// The porter waits for frames of all links of the process, so that an idle link
// needs no goroutine: an epoll instance of our own, on which one goroutine waits
// through Go's poller. A link is in it for one event at a time; each starts a
// goroutine that takes what has come and then asks for the next.
type porter struct {
	raw syscall.RawConn

	mu    sync.Mutex
	next  uint64
	links map[uint64]*link // guarded by mu
}

// thePorter is nil where there are no descriptors left for it; then links wait in
// goroutines of their own.
var thePorter = sync.OnceValue(func() *porter {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil
	}
	if err := unix.SetNonblock(fd, true); err != nil {
		unix.Close(fd)
		return nil
	}
	raw, err := os.NewFile(uintptr(fd), "links").SyscallConn()
	if err != nil {
		return nil
	}
	p := &porter{raw: raw, links: make(map[uint64]*link)}
	go p.run()
	return p
})

func (p *porter) run() {
	events := make([]unix.EpollEvent, 64)
	p.raw.Read(func(fd uintptr) bool { // for ever: the file is never closed
		for {
			n, err := unix.EpollWait(int(fd), events, 0)
			if err == unix.EINTR {
				continue
			}
			if n <= 0 {
				return false
			}
			for _, e := range events[:n] {
				p.mu.Lock()
				l := p.links[uint64(uint32(e.Fd))|uint64(uint32(e.Pad))<<32]
				p.mu.Unlock()
				if l != nil {
					l.call()
				}
			}
		}
	})
}

// ctl adds or changes (op) what the porter waits for, or ends that.
func (p *porter) ctl(l *link, op int) error {
	id := l.id.Load()
	e := unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLRDHUP | unix.EPOLLONESHOT, Fd: int32(id), Pad: int32(id >> 32)}
	var err error
	cerr := p.raw.Control(func(fd uintptr) {
		cerr := l.raw.Control(func(sock uintptr) { err = unix.EpollCtl(int(fd), op, int(sock), &e) })
		if err == nil {
			err = cerr
		}
	})
	if err == nil {
		err = cerr
	}
	return err
}

// Notify implements msg.Notifier.
func (l *link) Notify(f func()) bool {
	p := thePorter()
	if p == nil {
		return false
	}
	l.giveBack()
	op := unix.EPOLL_CTL_MOD
	if l.id.Load() == 0 {
		op = unix.EPOLL_CTL_ADD
		p.mu.Lock()
		p.next++
		l.id.Store(p.next)
		p.links[p.next] = l
		p.mu.Unlock()
	}
	if f != nil {
		l.callee = f
	}
	l.armed.Store(true)
	if err := p.ctl(l, op); err != nil && !l.closed.Load() {
		if op == unix.EPOLL_CTL_ADD && l.armed.CompareAndSwap(true, false) {
			l.leave()
			return false
		}
	}
	if l.closed.Load() {
		l.leave() // Close may have come before there was an id
		l.call()
	}
	return true
}

// call calls whom Notify named, once for each time.
func (l *link) call() {
	if l.armed.CompareAndSwap(true, false) {
		go l.callee()
	}
}

// leave takes the link from the porter. Its socket must be open: the registration
// would else last as long as another process has the socket.
func (l *link) leave() {
	p := thePorter()
	if p == nil || l.id.Load() == 0 {
		return
	}
	p.ctl(l, unix.EPOLL_CTL_DEL)
	p.mu.Lock()
	delete(p.links, l.id.Load())
	p.mu.Unlock()
}
