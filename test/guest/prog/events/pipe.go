package main

import (
	"bytes"
	"os"
	"os/signal"
	"sync"
	"time"

	"hardtack/test/guest/gt"

	"golang.org/x/sys/unix"
)

func pipe(t *gt.T) {
	r, w := newPipe(t, 0)
	buf := make([]byte, 16)
	n, err := unix.Write(w, []byte("hello world"))
	t.Say("write %d %s", n, gt.Name(err))
	n, err = unix.Read(r, buf[:5])
	t.Say("read %q %s", buf[:n], gt.Name(err))
	n, err = unix.Read(r, buf)
	t.Say("read %q %s", buf[:n], gt.Name(err))
	_, err = unix.Read(w, buf)
	t.Err("read the write end", err)
	_, err = unix.Write(r, buf)
	t.Err("write the read end", err)
	unix.Write(w, []byte("last"))
	unix.Close(w)
	n, err = unix.Read(r, buf)
	t.Say("after close %q %s", buf[:n], gt.Name(err))
	n, err = unix.Read(r, buf)
	t.Say("end of file %d %s", n, gt.Name(err))
	unix.Close(r)

	r, w = newPipe(t, unix.O_NONBLOCK|unix.O_CLOEXEC)
	_, err = unix.Read(r, buf)
	t.Err("empty, non-blocking", err)
	fl, _ := unix.FcntlInt(uintptr(r), unix.F_GETFL, 0)
	fd, _ := unix.FcntlInt(uintptr(w), unix.F_GETFD, 0)
	t.Say("flags %#x %d", fl, fd)
	avail, err := unix.IoctlGetInt(r, unix.TIOCINQ)
	t.Say("FIONREAD %d %s", avail, gt.Name(err))
	unix.Write(w, []byte("abc"))
	avail, _ = unix.IoctlGetInt(r, unix.TIOCINQ)
	t.Say("FIONREAD %d", avail)
	signal.Ignore(unix.SIGPIPE)
	unix.Close(r)
	_, err = unix.Write(w, buf)
	t.Err("write without reader", err)
	unix.Close(w)
	t.Err("bad flag", unix.Pipe2(make([]int, 2), 1))
	var st unix.Stat_t
	r, w = newPipe(t, 0)
	unix.Fstat(r, &st)
	t.Say("type and mode %o", st.Mode)
	unix.Close(r)
	unix.Close(w)
}

func pipeCapacity(t *gt.T) {
	r, w := newPipe(t, unix.O_NONBLOCK)
	size, err := unix.FcntlInt(uintptr(w), unix.F_GETPIPE_SZ, 0)
	t.Say("capacity %d %s", size, gt.Name(err))
	n, err := unix.Write(w, make([]byte, 1<<20))
	t.Say("write 1 MiB: %d %s", n, gt.Name(err))
	_, err = unix.Write(w, []byte{1})
	t.Err("full", err)
	n, _ = unix.Read(r, make([]byte, 4095))
	t.Say("read %d", n)
	n, err = unix.Write(w, make([]byte, 4096))
	t.Say("an atomic write does not fit: %d %s", n, gt.Name(err))
	unix.Read(r, make([]byte, 1))
	n, err = unix.Write(w, make([]byte, 4096))
	t.Say("now it does: %d %s", n, gt.Name(err))
	n, _ = unix.Read(r, make([]byte, 1<<20))
	t.Say("read all %d", n)
	size, err = unix.FcntlInt(uintptr(w), unix.F_SETPIPE_SZ, 10000)
	t.Say("set 10000: %d %s", size, gt.Name(err))
	n, err = unix.Write(w, make([]byte, 1<<20))
	t.Say("write: %d %s", n, gt.Name(err))
	_, err = unix.FcntlInt(uintptr(w), unix.F_SETPIPE_SZ, 4096)
	t.Err("shrink below the contents", err)
	unix.Close(r)
	unix.Close(w)
}

func pipeBlocking(t *gt.T) {
	r, w := newPipe(t, 0)
	buf := make([]byte, 10)
	gt.Later(func() { unix.Write(w, []byte("x")) })
	began := time.Now()
	n, err := unix.Read(r, buf)
	t.Say("read waits: %d %v %s", n, took(began, 20*time.Millisecond), gt.Name(err))
	gt.Later(func() { unix.Close(w) })
	n, err = unix.Read(r, buf)
	t.Say("close wakes it: %d %s", n, gt.Name(err))
	unix.Close(r)

	r, w = newPipe(t, 0)
	got := make(chan int)
	go func() {
		total := 0
		for {
			n, err := unix.Read(r, make([]byte, 777))
			if n <= 0 || err != nil {
				break
			}
			total += n
		}
		got <- total
	}()
	n, err = unix.Write(w, make([]byte, 1000003))
	t.Say("a long write: %d %s", n, gt.Name(err))
	unix.Close(w)
	t.Say("all came: %d", <-got)
	unix.Close(r)

	signal.Ignore(unix.SIGPIPE)
	r, w = newPipe(t, 0)
	much := make([]byte, 1<<20)
	gt.Later(func() { unix.Close(r) })
	n, err = unix.Write(w, much)
	t.Say("the reader leaves during a write: %d %s", n, gt.Name(err))
	unix.Close(w)
}

func pipeWriters(t *gt.T) {
	r, w := newPipe(t, 0)
	const writers, each, size = 4, 200, 100
	var wg sync.WaitGroup
	for i := range writers {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for range each {
				unix.Write(w, bytes.Repeat([]byte{byte('a' + i)}, size))
			}
		}()
	}
	go func() {
		wg.Wait()
		unix.Close(w)
	}()
	f := os.NewFile(uintptr(r), "pipe")
	var all bytes.Buffer
	_, err := all.ReadFrom(f)
	t.Err("read", err)
	mixed := 0
	count := map[byte]int{}
	for b := all.Bytes(); len(b) >= size; b = b[size:] {
		count[b[0]]++
		if bytes.Count(b[:size], b[:1]) != size {
			mixed++
		}
	}
	t.Say("%d bytes, %d mixed, %v", all.Len(), mixed, count)
	f.Close()
}

func fifo(t *gt.T) {
	t.Err("mkfifo", unix.Mkfifo("f", 0o600))
	t.Err("again", unix.Mkfifo("f", 0o600))
	_, err := unix.Open("f", unix.O_WRONLY|unix.O_NONBLOCK, 0)
	t.Err("write end without reader", err)
	r, err := unix.Open("f", unix.O_RDONLY|unix.O_NONBLOCK, 0)
	t.Err("read end without writer", err)
	n, err := unix.Read(r, make([]byte, 1))
	t.Say("read without writer %d %s", n, gt.Name(err))
	w, err := unix.Open("f", unix.O_WRONLY|unix.O_NONBLOCK, 0)
	t.Err("write end", err)
	_, err = unix.Read(r, make([]byte, 1))
	t.Err("read with a silent writer", err)
	unix.Write(w, []byte("fifo"))
	buf := make([]byte, 8)
	n, _ = unix.Read(r, buf)
	t.Say("read %q", buf[:n])
	unix.Close(r)
	unix.Close(w)
	opened := make(chan int)
	go func() {
		fd, _ := unix.Open("f", unix.O_RDONLY, 0)
		opened <- fd
	}()
	time.Sleep(30 * time.Millisecond)
	select {
	case <-opened:
		t.Say("open did not wait")
	default:
		t.Say("open waits for a writer")
	}
	w, err = unix.Open("f", unix.O_WRONLY, 0)
	t.Err("writer", err)
	r = <-opened
	unix.Write(w, []byte("met"))
	n, _ = unix.Read(r, buf)
	t.Say("read %q", buf[:n])
	unix.Close(r)
	unix.Close(w)
	rw, err := unix.Open("f", unix.O_RDWR, 0)
	t.Err("both ends", err)
	unix.Close(rw)
}

func splice(t *gt.T) {
	r, w := newPipe(t, 0)
	r2, w2 := newPipe(t, 0)
	fd, _ := unix.Open("f", unix.O_CREAT|unix.O_RDWR, 0o644)
	unix.Write(fd, []byte("0123456789"))
	off := int64(2)
	n, err := unix.Splice(fd, &off, w, nil, 5, 0)
	t.Say("from a file %d, offset %d %s", n, off, gt.Name(err))
	n, err = unix.Tee(r, w2, 100, 0)
	t.Say("tee %d %s", n, gt.Name(err))
	n, err = unix.Splice(r, nil, w2, nil, 100, 0)
	t.Say("pipe to pipe %d %s", n, gt.Name(err))
	buf := make([]byte, 32)
	k, _ := unix.Read(r2, buf)
	t.Say("%q", buf[:k])
	_, err = unix.Splice(fd, nil, fd, nil, 5, 0)
	t.Err("no pipe", err)
	_, err = unix.Splice(r, nil, w, nil, 5, 0)
	t.Err("the same pipe", err)
	_, err = unix.Splice(r, nil, fd, nil, 5, unix.SPLICE_F_NONBLOCK)
	t.Err("empty, non-blocking", err)
	for _, fd := range []int{r, w, r2, w2, fd} {
		unix.Close(fd)
	}
}
