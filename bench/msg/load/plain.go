package main

import (
	"io"
	"os"
	"syscall"
	"time"
)

// What there is without typed channels: files and the kernel.

func (j job) plain() bool { return j.mode == "socket" || j.mode == "sockflow" || j.mode == "pipe" }

// files makes this process's ends and the child's.
func (j job) files() (in, out *os.File, kid []*os.File, err error) {
	if j.mode == "pipe" {
		r1, w1, err := os.Pipe()
		if err != nil {
			return nil, nil, nil, err
		}
		r2, w2, err := os.Pipe()
		return r2, w1, []*os.File{r1, w2}, err
	}
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC|syscall.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, nil, nil, err
	}
	a, b := os.NewFile(uintptr(fds[0]), "socket"), os.NewFile(uintptr(fds[1]), "socket")
	return a, a, []*os.File{b, b}, nil
}

// echo is the child's part: it answers each message, or the last of a flow.
func (j job) echo(in, out *os.File) error {
	if j.mode == "sockflow" {
		b := make([]byte, 64<<10)
		for _, n := range []int{j.n / 10, j.n} {
			for left := n * j.size; left > 0; {
				k, err := in.Read(b[:min(left, len(b))])
				if err != nil {
					return err
				}
				left -= k
			}
			if _, err := out.Write(b[:1]); err != nil {
				return err
			}
		}
		return nil
	}
	b := make([]byte, j.size)
	for range j.n + j.n/10 {
		if _, err := io.ReadFull(in, b); err != nil {
			return err
		}
		if _, err := out.Write(b); err != nil {
			return err
		}
	}
	return nil
}

func (j job) trips(in, out *os.File) (time.Duration, error) {
	b := make([]byte, j.size)
	var start time.Time
	for _, n := range []int{j.n / 10, j.n} {
		start = time.Now()
		for range n {
			if _, err := out.Write(b); err != nil {
				return 0, err
			}
			if j.mode == "sockflow" {
				continue
			}
			if _, err := io.ReadFull(in, b); err != nil {
				return 0, err
			}
		}
		if j.mode == "sockflow" {
			if _, err := io.ReadFull(in, b[:1]); err != nil {
				return 0, err
			}
		}
	}
	return time.Since(start), nil
}
