package main

import (
	"os/signal"
	"sync"
	"sync/atomic"
	"time"

	"hardtack/test/guest/gt"

	"golang.org/x/sys/unix"
)

func signalIgnorePipe() { signal.Ignore(unix.SIGPIPE) }

// set is an epoll set under test.
type set struct {
	t  *gt.T
	fd int
}

func newSet(t *gt.T) set {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	t.Require("epoll_create1", err)
	return set{t, fd}
}

// ctl puts the name number n in the event's data.
func (s set) ctl(op, fd int, bits uint32, n int32) error {
	return unix.EpollCtl(s.fd, op, fd, &unix.EpollEvent{Events: bits, Fd: n})
}

// wait prints what one epoll_wait returns.
func (s set) wait(what string, timeout int) {
	ev := make([]unix.EpollEvent, 8)
	n, err := unix.EpollWait(s.fd, ev, timeout)
	text := ""
	for _, e := range ev[:max(n, 0)] {
		text += " [" + string(rune('0'+e.Fd)) + " " + events(e.Events) + "]"
	}
	s.t.Say("%s: %d%s %s", what, n, text, gt.Name(err))
}

func epollLevel(t *gt.T) {
	signalIgnorePipe()
	s := newSet(t)
	r, w := newPipe(t, 0)
	t.Err("add the reader", s.ctl(unix.EPOLL_CTL_ADD, r, unix.EPOLLIN, 1))
	s.wait("empty", 0)
	unix.Write(w, []byte("ab"))
	s.wait("data", 0)
	s.wait("again", 0)
	unix.Read(r, make([]byte, 1))
	s.wait("half read", 0)
	unix.Read(r, make([]byte, 1))
	s.wait("all read", 0)
	t.Err("add the writer", s.ctl(unix.EPOLL_CTL_ADD, w, unix.EPOLLOUT, 2))
	s.wait("writable", 0)
	unix.Write(w, []byte("x"))
	t.Err("modify", s.ctl(unix.EPOLL_CTL_MOD, w, 0, 3))
	s.wait("the reader alone", 0)
	t.Err("delete", s.ctl(unix.EPOLL_CTL_DEL, r, 0, 0))
	s.wait("nothing", 0)
	s.ctl(unix.EPOLL_CTL_ADD, r, unix.EPOLLIN|unix.EPOLLRDHUP, 1)
	unix.Close(w)
	s.wait("hung up with data", 0)
	unix.Read(r, make([]byte, 1))
	s.wait("hung up", 0)
	unix.Close(r)
	s.wait("closed", 0)
	r, w = newPipe(t, 0)
	s.ctl(unix.EPOLL_CTL_ADD, w, unix.EPOLLIN, 4)
	unix.Close(r)
	s.wait("an error that nobody asked for", 0)
	unix.Close(w)
	began := time.Now()
	s.wait("time-out", 40)
	t.Say("it took that: %v", took(began, 40*time.Millisecond))
	unix.Close(s.fd)
}

func epollEdge(t *gt.T) {
	s := newSet(t)
	r, w := newPipe(t, unix.O_NONBLOCK)
	s.ctl(unix.EPOLL_CTL_ADD, r, unix.EPOLLIN|unix.EPOLLET, 1)
	unix.Write(w, []byte("abc"))
	s.wait("data", 0)
	s.wait("no new edge", 0)
	unix.Write(w, []byte("d"))
	s.wait("more data", 0)
	unix.Read(r, make([]byte, 2))
	s.wait("reading is no edge", 0)
	s.ctl(unix.EPOLL_CTL_MOD, r, unix.EPOLLIN|unix.EPOLLET, 1)
	s.wait("modify looks again", 0)
	unix.Read(r, make([]byte, 10))
	s.ctl(unix.EPOLL_CTL_ADD, w, unix.EPOLLOUT|unix.EPOLLET, 2)
	s.wait("writable once", 0)
	s.wait("then not", 0)
	unix.Write(w, make([]byte, 65536))
	s.wait("the reader's edge", 0)
	unix.Read(r, make([]byte, 65536))
	s.wait("room again", 0)
	unix.Close(w)
	s.wait("hung up", 0)
	s.wait("once", 0)
	unix.Close(r)

	fd, _ := unix.Eventfd(0, unix.EFD_NONBLOCK)
	s.ctl(unix.EPOLL_CTL_ADD, fd, unix.EPOLLIN|unix.EPOLLET, 3)
	one := []byte{1, 0, 0, 0, 0, 0, 0, 0}
	unix.Write(fd, one)
	s.wait("eventfd", 0)
	unix.Write(fd, one)
	s.wait("each write is an edge", 0)
	s.wait("no more", 0)
	unix.Close(fd)
	unix.Close(s.fd)
}

func epollOneshot(t *gt.T) {
	s := newSet(t)
	r, w := newPipe(t, 0)
	s.ctl(unix.EPOLL_CTL_ADD, r, unix.EPOLLIN|unix.EPOLLONESHOT, 1)
	unix.Write(w, []byte("x"))
	s.wait("once", 0)
	unix.Write(w, []byte("y"))
	s.wait("disabled", 0)
	t.Err("rearm", s.ctl(unix.EPOLL_CTL_MOD, r, unix.EPOLLIN|unix.EPOLLONESHOT, 2))
	s.wait("again", 0)
	unix.Close(w)
	s.wait("hang-up while disabled", 0)
	unix.Close(r)
	unix.Close(s.fd)
}

func epollExclusive(t *gt.T) {
	fd, _ := unix.Eventfd(0, unix.EFD_NONBLOCK)
	const waiters = 4
	var woken atomic.Int32
	var wg, ready sync.WaitGroup
	sets := []set{}
	for range waiters {
		s := newSet(t)
		t.Require("add", s.ctl(unix.EPOLL_CTL_ADD, fd, unix.EPOLLIN|unix.EPOLLEXCLUSIVE, 1))
		sets = append(sets, s)
		wg.Add(1)
		ready.Add(1)
		go func() {
			defer wg.Done()
			ready.Done()
			ev := make([]unix.EpollEvent, 1)
			if n, _ := unix.EpollWait(s.fd, ev, 300); n == 1 {
				woken.Add(1)
			}
		}()
	}
	ready.Wait()
	time.Sleep(100 * time.Millisecond)
	unix.Write(fd, []byte{1, 0, 0, 0, 0, 0, 0, 0})
	wg.Wait()
	t.Say("woke at least one and not all: %v", woken.Load() >= 1 && woken.Load() < waiters)
	t.Err("modify an exclusive one", sets[0].ctl(unix.EPOLL_CTL_MOD, fd, unix.EPOLLIN, 1))
	t.Err("exclusive with oneshot", newSet(t).ctl(unix.EPOLL_CTL_ADD, fd, unix.EPOLLIN|unix.EPOLLEXCLUSIVE|unix.EPOLLONESHOT, 1))
	for _, s := range sets {
		unix.Close(s.fd)
	}
	unix.Close(fd)
}

func epollErrors(t *gt.T) {
	s := newSet(t)
	r, w := newPipe(t, 0)
	t.Err("add", s.ctl(unix.EPOLL_CTL_ADD, r, unix.EPOLLIN, 1))
	t.Err("add again", s.ctl(unix.EPOLL_CTL_ADD, r, unix.EPOLLIN, 1))
	t.Err("modify what is not in", s.ctl(unix.EPOLL_CTL_MOD, w, unix.EPOLLIN, 1))
	t.Err("delete what is not in", s.ctl(unix.EPOLL_CTL_DEL, w, unix.EPOLLIN, 1))
	t.Err("add a closed one", s.ctl(unix.EPOLL_CTL_ADD, 999, unix.EPOLLIN, 1))
	t.Err("itself", s.ctl(unix.EPOLL_CTL_ADD, s.fd, unix.EPOLLIN, 1))
	t.Err("unknown operation", s.ctl(77, r, unix.EPOLLIN, 1))
	f, _ := unix.Open("f", unix.O_CREAT|unix.O_RDWR, 0o644)
	t.Err("a regular file", s.ctl(unix.EPOLL_CTL_ADD, f, unix.EPOLLIN, 1))
	d, _ := unix.Open(".", unix.O_RDONLY, 0)
	t.Err("a directory", s.ctl(unix.EPOLL_CTL_ADD, d, unix.EPOLLIN, 1))
	t.Err("on a pipe", unix.EpollCtl(r, unix.EPOLL_CTL_ADD, w, &unix.EpollEvent{}))
	_, err := unix.EpollWait(r, make([]unix.EpollEvent, 1), 0)
	t.Err("wait on a pipe", err)
	_, err = gt.Sys(unix.SYS_EPOLL_WAIT, uintptr(s.fd), 4096, 0, 0)
	t.Err("no events", err)
	_, err = gt.Sys(unix.SYS_EPOLL_WAIT, uintptr(s.fd), 4096, ^uintptr(0), 0)
	t.Err("negative events", err)
	_, err = gt.Sys(unix.SYS_EPOLL_WAIT, uintptr(s.fd), 4096, 1<<30, 0)
	t.Err("too many events", err)
	unix.Write(w, []byte("x"))
	_, err = gt.Sys(unix.SYS_EPOLL_WAIT, uintptr(s.fd), 8, 1, 0)
	t.Err("wild pointer", err)
	s.wait("the event is not lost", 0)
	_, err = gt.Sys(unix.SYS_EPOLL_CTL, uintptr(s.fd), unix.EPOLL_CTL_ADD, uintptr(w), 8)
	t.Err("wild event", err)
	_, err = gt.Sys(unix.SYS_EPOLL_CREATE, 0)
	t.Err("epoll_create(0)", err)
	_, err = unix.EpollCreate1(1)
	t.Err("bad flag", err)
	_, err = gt.Sys(unix.SYS_EPOLL_PWAIT, uintptr(s.fd), 0, 1, 0, 8, 3)
	t.Err("mask of a bad size", err)
	for _, fd := range []int{r, w, f, d, s.fd} {
		unix.Close(fd)
	}
}

func epollNested(t *gt.T) {
	in, out := newSet(t), newSet(t)
	r, w := newPipe(t, 0)
	t.Err("inner", in.ctl(unix.EPOLL_CTL_ADD, r, unix.EPOLLIN, 1))
	t.Err("outer", out.ctl(unix.EPOLL_CTL_ADD, in.fd, unix.EPOLLIN, 2))
	out.wait("quiet", 0)
	fds := []unix.PollFd{{Fd: int32(in.fd), Events: unix.POLLIN}}
	unix.Poll(fds, 0)
	t.Say("poll of a set: %s", events(uint32(fds[0].Revents)))
	unix.Write(w, []byte("x"))
	out.wait("ready", 0)
	unix.Poll(fds, 0)
	t.Say("poll of a set: %s", events(uint32(fds[0].Revents)))
	in.wait("inside", 0)
	unix.Read(r, make([]byte, 1))
	out.wait("quiet again", 0)
	gt.Later(func() { unix.Write(w, []byte("x")) })
	out.wait("wakes through both", 5000)
	t.Err("a circle", in.ctl(unix.EPOLL_CTL_ADD, out.fd, unix.EPOLLIN, 3))
	for _, fd := range []int{r, w, in.fd, out.fd} {
		unix.Close(fd)
	}
}

func epollClose(t *gt.T) {
	s := newSet(t)
	r, w := newPipe(t, 0)
	dup, _ := unix.Dup(r)
	s.ctl(unix.EPOLL_CTL_ADD, r, unix.EPOLLIN, 1)
	unix.Write(w, []byte("x"))
	unix.Close(r)
	s.wait("a dup keeps it in the set", 0)
	t.Err("delete by the closed number", s.ctl(unix.EPOLL_CTL_DEL, r, 0, 0))
	unix.Close(dup)
	s.wait("the last close removes it", 0)
	unix.Close(w)
	r, w = newPipe(t, 0)
	t.Err("the number is free for another", s.ctl(unix.EPOLL_CTL_ADD, r, unix.EPOLLIN, 5))
	unix.Write(w, []byte("x"))
	s.wait("that one", 0)
	unix.Close(r)
	unix.Close(w)
	unix.Close(s.fd)
}

func epollWake(t *gt.T) {
	s := newSet(t)
	r, w := newPipe(t, 0)
	s.ctl(unix.EPOLL_CTL_ADD, r, unix.EPOLLIN, 1)
	gt.Later(func() { unix.Write(w, []byte("x")) })
	s.wait("by data", 5000)
	unix.Read(r, make([]byte, 1))
	gt.Later(func() { s.ctl(unix.EPOLL_CTL_ADD, w, unix.EPOLLOUT, 2) })
	s.wait("by an addition", 5000)
	s.ctl(unix.EPOLL_CTL_MOD, w, 0, 2)
	gt.Later(func() { s.ctl(unix.EPOLL_CTL_MOD, w, unix.EPOLLOUT, 3) })
	s.wait("by a change", 5000)
	unix.Close(r)
	unix.Close(w)
	unix.Close(s.fd)
}

func epollMany(t *gt.T) {
	s := newSet(t)
	var fds [300]int
	for i := range fds {
		fds[i], _ = unix.Eventfd(1, unix.EFD_NONBLOCK)
		t.Require("add", s.ctl(unix.EPOLL_CTL_ADD, fds[i], unix.EPOLLIN, int32(i)))
	}
	seen := map[int32]int{}
	ev := make([]unix.EpollEvent, 7)
	for range 100 {
		n, err := unix.EpollWait(s.fd, ev, 0)
		if err != nil {
			t.Err("wait", err)
		}
		for _, e := range ev[:n] {
			seen[e.Fd]++
		}
	}
	low, high := 1000, 0
	for _, n := range seen {
		low, high = min(low, n), max(high, n)
	}
	t.Say("%d descriptors took turns, fairly: %v", len(seen), high-low <= 1)
	for _, fd := range fds {
		unix.Close(fd)
	}
	s.wait("all closed", 0)
	unix.Close(s.fd)
}
