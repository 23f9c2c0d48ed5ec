package main

import (
	"bytes"
	"runtime/pprof"
	"strconv"
	"strings"
	"sync"
	"time"

	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/uio"
	"hardtack/kernel/base/wait"
	"hardtack/kernel/fs/vfs"
)

// profile is an open /proc/hardtack/profile: write for how many seconds to look, then read
// what the kernel spent its time on, as go tool pprof takes it. There is one at a time.
type profile struct {
	vfs.BaseOps
	queue wait.Queue

	mu    sync.Mutex
	text  bytes.Buffer // guarded by mu; what the reader gets, once done
	begun bool         // guarded by mu
	done  bool         // guarded by mu
}

// longestProfile is for how many seconds one may look.
const longestProfile = 60

func openProfile(*caller.Ctx) (vfs.Ops, linux.Errno) { return new(profile), 0 }

// Write begins.
func (f *profile) Write(_ *caller.Ctx, _ *vfs.File, v *uio.Vec, _ int64) (int, linux.Errno) {
	n := v.Len()
	if n > 16 {
		return 0, linux.EINVAL
	}
	b := make([]byte, n)
	if _, e := v.CopyIn(b); e != 0 {
		return 0, e
	}
	seconds, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil || seconds < 1 || seconds > longestProfile {
		return 0, linux.EINVAL
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.begun {
		return 0, linux.EINVAL
	}
	var text bytes.Buffer
	if pprof.StartCPUProfile(&text) != nil {
		return 0, linux.EBUSY
	}
	f.begun = true
	go func() {
		time.Sleep(time.Duration(seconds) * time.Second)
		pprof.StopCPUProfile()
		f.mu.Lock()
		f.text, f.done = text, true
		f.mu.Unlock()
		f.queue.Notify(wait.In | wait.RdNorm)
	}()
	return n, 0
}

// Read waits for the end of the time.
func (f *profile) Read(c *caller.Ctx, of *vfs.File, v *uio.Vec, _ int64) (int, linux.Errno) {
	for {
		c.Arm()
		f.queue.Add(&c.Entry, &c.Sleeper, wait.In)
		n, e := f.take(v)
		if e != linux.EAGAIN || of.NonBlock() {
			f.queue.Remove(&c.Entry)
			return n, e
		}
		r := c.Sleep(wait.NoDeadline)
		f.queue.Remove(&c.Entry)
		if r == wait.Interrupted {
			return 0, linux.ERESTARTSYS
		}
	}
}

// take moves a part of the profile to the reader: EAGAIN before its end.
func (f *profile) take(v *uio.Vec) (int, linux.Errno) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.begun {
		return 0, 0
	}
	if !f.done {
		return 0, linux.EAGAIN
	}
	b := f.text.Bytes()
	n, e := v.CopyOut(b[:min(len(b), v.Len())])
	f.text.Next(n)
	if n > 0 {
		e = 0
	}
	return n, e
}

// Ready reports that there is something to read.
func (f *profile) Ready(*vfs.File) wait.Events {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.done || !f.begun {
		return wait.In | wait.RdNorm | wait.Out | wait.WrNorm
	}
	return wait.Out | wait.WrNorm
}

// Queue is where the end is announced.
func (f *profile) Queue(*vfs.File) *wait.Queue { return &f.queue }
