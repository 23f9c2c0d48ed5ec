package main

import (
	"encoding/binary"
	"time"

	"hardtack/test/guest/gt"

	"golang.org/x/sys/unix"
)

func poll(t *gt.T) {
	signalIgnorePipe()
	r, w := newPipe(t, 0)
	show := func(what string, fd int, want int16, timeout int) {
		fds := []unix.PollFd{{Fd: int32(fd), Events: want}}
		n, err := unix.Poll(fds, timeout)
		t.Say("%s: %d %s %s", what, n, events(uint32(uint16(fds[0].Revents))), gt.Name(err))
	}
	const in, out = unix.POLLIN, unix.POLLOUT
	show("empty", r, in, 0)
	show("writable", w, out, 0)
	show("everything of the writer", w, 0x7fff, 0)
	unix.Write(w, []byte("x"))
	show("readable", r, in, 0)
	show("readable, RDNORM", r, 0x40, 0)
	show("nothing wanted", r, 0, 0)
	unix.Close(w)
	show("hung up with data", r, in, 0)
	unix.Read(r, make([]byte, 4))
	show("hung up", r, in, 0)
	show("hung up, nothing wanted", r, 0, 0)
	unix.Close(r)
	show("closed", r, in, 0)
	show("negative", -1, in, 0)
	r, w = newPipe(t, unix.O_NONBLOCK)
	unix.Close(r)
	show("no reader", w, out, 0)
	unix.Close(w)
	r, w = newPipe(t, unix.O_NONBLOCK)
	unix.Write(w, make([]byte, 65536))
	show("full", w, out, 0)
	unix.Read(r, make([]byte, 100))
	show("100 free", w, out, 0)
	unix.Read(r, make([]byte, 4096))
	show("a page free", w, out, 0)
	unix.Read(r, make([]byte, 65536))
	fd, _ := unix.Open("f", unix.O_CREAT|unix.O_RDWR, 0o644)
	show("regular file", fd, in|out|unix.POLLPRI, 0)
	unix.Close(fd)
	fd, _ = unix.Open("/dev/null", unix.O_RDWR, 0)
	show("/dev/null", fd, in|out, 0)
	unix.Close(fd)
	began := time.Now()
	show("time-out of 50 ms", r, in, 50)
	t.Say("it took that: %v", took(began, 50*time.Millisecond))
	gt.Later(func() { unix.Write(w, []byte("x")) })
	show("woken by data", r, in, 5000)
	unix.Read(r, make([]byte, 4))
	gt.Later(func() { unix.Close(w) })
	show("woken by the close", r, in, 5000)
	fds := []unix.PollFd{{Fd: int32(r), Events: in}, {Fd: -7, Events: in}, {Fd: 999, Events: in}}
	n, err := unix.Poll(fds, 0)
	t.Say("three: %d, %s, %s, %s %s", n, events(uint32(fds[0].Revents)), events(uint32(fds[1].Revents)), events(uint32(fds[2].Revents)), gt.Name(err))
	unix.Close(r)
	began = time.Now()
	n, err = unix.Poll(nil, 30)
	t.Say("nothing to wait for: %d %v %s", n, took(began, 30*time.Millisecond), gt.Name(err))
	_, err = gt.Sys(unix.SYS_POLL, 8, 1, 0)
	t.Err("wild pointer", err)
	_, err = gt.Sys(unix.SYS_POLL, 0, 1<<31, 0)
	t.Err("huge count", err)
	ts := unix.Timespec{Nsec: 20e6}
	began = time.Now()
	n, err = unix.Ppoll(nil, &ts, nil)
	t.Say("ppoll: %d %v %s", n, took(began, 20*time.Millisecond), gt.Name(err))
	ts = unix.Timespec{Nsec: 2e9}
	_, err = unix.Ppoll(nil, &ts, nil)
	t.Err("ppoll, bad time", err)
}

func sel(t *gt.T) {
	r, w := newPipe(t, 0)
	try := func(what string, in, out []int, timeout time.Duration) {
		var rs, ws, es unix.FdSet
		top := 0
		for _, fd := range in {
			rs.Set(fd)
			top = max(top, fd)
		}
		for _, fd := range out {
			ws.Set(fd)
			top = max(top, fd)
		}
		tv := unix.NsecToTimeval(timeout.Nanoseconds())
		n, err := unix.Select(top+1, &rs, &ws, &es, &tv)
		t.Say("%s: %d, reader %v, writer %v %s", what, n, rs.IsSet(r), ws.IsSet(w), gt.Name(err))
	}
	try("empty", []int{r}, []int{w}, 0)
	unix.Write(w, []byte("x"))
	try("data", []int{r}, []int{w}, 0)
	unix.Read(r, make([]byte, 1))
	began := time.Now()
	try("time-out", []int{r}, nil, 30*time.Millisecond)
	t.Say("it took that: %v", took(began, 30*time.Millisecond))
	gt.Later(func() { unix.Write(w, []byte("x")) })
	try("woken", []int{r}, nil, 5*time.Second)
	closed, _ := unix.Dup(r)
	unix.Close(closed)
	try("not open", []int{closed}, nil, 0)
	n, err := unix.Select(-1, nil, nil, nil, &unix.Timeval{})
	t.Say("negative count %d %s", n, gt.Name(err))
	n, err = unix.Select(0, nil, nil, nil, &unix.Timeval{Usec: -1})
	t.Say("bad time %d %s", n, gt.Name(err))
	_, err = gt.Sys(unix.SYS_SELECT, 10, 8, 0, 0, 0)
	t.Err("wild pointer", err)
	unix.Close(r)
	unix.Close(w)
}

func eventfd(t *gt.T) {
	value := func(n uint64) []byte { return binary.LittleEndian.AppendUint64(nil, n) }
	fd, err := unix.Eventfd(5, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC)
	t.Err("eventfd", err)
	buf := make([]byte, 8)
	read := func(what string) {
		n, err := unix.Read(fd, buf)
		if err != nil {
			t.Err(what, err)
			return
		}
		t.Say("%s: %d bytes, %#x", what, n, binary.LittleEndian.Uint64(buf))
	}
	write := func(what string, v uint64) {
		n, err := unix.Write(fd, value(v))
		t.Say("%s: %d %s", what, n, gt.Name(err))
	}
	read("start value")
	read("empty")
	write("3", 3)
	write("4", 4)
	read("sum")
	write("0", 0)
	read("after 0")
	write("the maximum", 1<<64-2)
	write("one more", 1)
	fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN | unix.POLLOUT}}
	unix.Poll(fds, 0)
	t.Say("poll when full: %s", events(uint32(fds[0].Revents)))
	read("maximum")
	write("too much", 1<<64-1)
	unix.Poll(fds, 0)
	t.Say("poll when empty: %s", events(uint32(fds[0].Revents)))
	_, err = unix.Read(fd, buf[:7])
	t.Err("short buffer", err)
	_, err = unix.Write(fd, buf[:4])
	t.Err("short write", err)
	unix.Close(fd)
	fd, _ = unix.Eventfd(2, unix.EFD_SEMAPHORE|unix.EFD_NONBLOCK)
	read("semaphore")
	read("semaphore")
	read("semaphore")
	unix.Close(fd)
	fd, _ = unix.Eventfd(0, 0)
	gt.Later(func() { unix.Write(fd, value(9)) })
	read("blocking")
	unix.Close(fd)
	_, err = unix.Eventfd(0, 64)
	t.Err("bad flag", err)
}

func timerfd(t *gt.T) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK)
	t.Err("create", err)
	buf := make([]byte, 8)
	set := func(what string, flags int, value, interval time.Duration) {
		spec := unix.ItimerSpec{Value: unix.NsecToTimespec(int64(value)), Interval: unix.NsecToTimespec(int64(interval))}
		t.Err(what, unix.TimerfdSettime(fd, flags, &spec, nil))
	}
	_, err = unix.Read(fd, buf)
	t.Err("unarmed", err)
	set("half a second", 0, 500*time.Millisecond, 0)
	_, err = unix.Read(fd, buf)
	t.Err("too early", err)
	var cur unix.ItimerSpec
	t.Err("gettime", unix.TimerfdGettime(fd, &cur))
	t.Say("remaining within half a second: %v", cur.Value.Nano() > 0 && cur.Value.Nano() <= 500e6)
	fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	n, err := unix.Poll(fds, 5000)
	t.Say("poll %d %s %s", n, events(uint32(fds[0].Revents)), gt.Name(err))
	k, err := unix.Read(fd, buf)
	t.Say("read %d: %d expiries %s", k, binary.LittleEndian.Uint64(buf), gt.Name(err))
	_, err = unix.Read(fd, buf)
	t.Err("read again", err)
	set("every 5 ms", 0, 5*time.Millisecond, 5*time.Millisecond)
	time.Sleep(60 * time.Millisecond)
	unix.Read(fd, buf)
	t.Say("several expiries: %v", binary.LittleEndian.Uint64(buf) >= 10)
	set("disarm", 0, 0, 0)
	_, err = unix.Read(fd, buf)
	t.Err("disarmed", err)
	var now unix.Timespec
	unix.ClockGettime(unix.CLOCK_MONOTONIC, &now)
	set("absolute, past", unix.TFD_TIMER_ABSTIME, time.Duration(now.Nano()-1e6), 0)
	unix.Poll(fds, 1000)
	k, err = unix.Read(fd, buf)
	t.Say("read %d %s", k, gt.Name(err))
	set("bad flag", 64, time.Second, 0)
	spec := unix.ItimerSpec{Value: unix.Timespec{Nsec: 2e9}}
	t.Err("bad time", unix.TimerfdSettime(fd, 0, &spec, nil))
	_, err = unix.Read(fd, buf[:4])
	t.Err("short buffer", err)
	_, err = unix.TimerfdCreate(99, 0)
	t.Err("unknown clock", err)
	t.Err("settime of a pipe", unix.TimerfdSettime(0, 0, &unix.ItimerSpec{}, nil))
	unix.Close(fd)
}

func sigset(signals ...int) (s unix.Sigset_t) {
	for _, sig := range signals {
		s.Val[(sig-1)/64] |= 1 << uint((sig-1)%64)
	}
	return s
}

func signalfd(t *gt.T) {
	set := sigset(int(unix.SIGUSR1), int(unix.SIGUSR2))
	var old unix.Sigset_t
	t.Require("mask", unix.PthreadSigmask(unix.SIG_BLOCK, &set, &old))
	fd, err := unix.Signalfd(-1, &set, unix.SFD_NONBLOCK)
	t.Err("create", err)
	buf := make([]byte, 128*3)
	_, err = unix.Read(fd, buf)
	t.Err("nothing pending", err)
	pid, tid := unix.Getpid(), unix.Gettid()
	t.Err("tgkill", unix.Tgkill(pid, tid, unix.SIGUSR2))
	t.Err("tgkill", unix.Tgkill(pid, tid, unix.SIGUSR1))
	fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	unix.Poll(fds, 0)
	t.Say("poll %s", events(uint32(fds[0].Revents)))
	n, err := unix.Read(fd, buf)
	t.Say("read %d %s", n, gt.Name(err))
	for i := 0; i+128 <= n; i += 128 {
		// struct signalfd_siginfo: signo, errno, code, pid, each of 32 bits.
		word := func(at int) int32 { return int32(binary.NativeEndian.Uint32(buf[i+at:])) }
		t.Say("signal %d code %d from us %v", word(0), word(8), int(word(12)) == pid)
	}
	_, err = unix.Read(fd, buf)
	t.Err("read again", err)
	set = sigset(int(unix.SIGUSR1))
	_, err = unix.Signalfd(fd, &set, 0)
	t.Err("change the set", err)
	unix.Tgkill(pid, tid, unix.SIGUSR2)
	_, err = unix.Read(fd, buf)
	t.Err("not in the set", err)
	set = sigset(int(unix.SIGUSR2))
	unix.Signalfd(fd, &set, 0)
	n, err = unix.Read(fd, buf)
	t.Say("read %d %s", n, gt.Name(err))
	_, err = unix.Read(fd, buf[:100])
	t.Err("short buffer", err)
	unix.Close(fd)
	_, err = unix.Signalfd(0, &set, 0)
	t.Err("of another descriptor", err)
	unix.PthreadSigmask(unix.SIG_SETMASK, &old, nil)
}
