package service

import (
	"context"
	"sync"

	"hardtack/idl/klog"
	"hardtack/kernel/base/clocks"
	"hardtack/kernel/base/creds"
	"hardtack/kernel/base/wait"
	"hardtack/kernel/fs/devfs"
)

// ServeLog makes the service of the kernel's log.
func ServeLog() error {
	s, err := klog.Export(context.Background(), "log", Options())
	if err != nil {
		return err
	}
	return Serve("log", s.Accept, func(ctx context.Context, x *Client, c *klog.Conn) { c.Serve(ctx, logReader{x}) })
}

// logReader serves idl/klog.if to one client.
type logReader struct{ x *Client }

func (h logReader) Read(ctx context.Context, in klog.ReadCall) (out klog.ReadReply, err error) {
	c, stop := h.x.context(ctx)
	defer stop()
	l := &devfs.Messages
	for {
		if !devfs.MayRead(h.x.Cred) { // looked at each time: the setting may change while it waits
			return out, klog.ErrRefused
		}
		c.Arm()
		l.Queue().Add(&c.Entry, &c.Sleeper, wait.In)
		e, ok := l.Entry(in.From)
		if !ok && ctx.Err() == nil {
			c.SleepUninterruptible(wait.NoDeadline)
		}
		l.Queue().Remove(&c.Entry)
		switch {
		case ok:
			return klog.ReadReply{Number: e.Number, At: uint64(e.At), Priority: e.Priority, Text: e.Text[:min(len(e.Text), 1024)]}, nil
		case ctx.Err() != nil:
			return out, ctx.Err()
		}
	}
}

func (h logReader) Bounds(context.Context, klog.BoundsCall) (out klog.BoundsReply, err error) {
	if !devfs.MayRead(h.x.Cred) {
		return out, klog.ErrRefused
	}
	out.Oldest, out.Next = devfs.Messages.Bounds()
	return out, nil
}

func (h logReader) Write(_ context.Context, in klog.WriteCall) (out klog.WriteReply, err error) {
	if c := h.x.Cred; c.FSUID != 0 && !c.Has(creds.CapDacOverride) {
		return out, klog.ErrRefused
	}
	if !lines.take(clocks.Monotonic()) {
		return out, klog.ErrBusy
	}
	const user = 1 << 3
	prio := in.Priority & (0xff<<3 | 7)
	if prio&^7 == 0 {
		prio |= user
	}
	devfs.Messages.Add(prio, in.Text+"\n")
	return out, nil
}

// limiter lets so many things pass in a time, as Linux's ratelimit does.
type limiter struct {
	mu    sync.Mutex
	most  int
	time  int64
	since int64 // guarded by mu
	n     int   // guarded by mu
}

// lines limits what all connections write to the log.
var lines = limiter{most: 10, time: 5e9}

func (l *limiter) take(now int64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.n == 0 || now-l.since >= l.time {
		l.since, l.n = now, 0
	}
	if l.n >= l.most {
		return false
	}
	l.n++
	return true
}
