package timerfd

import (
	"encoding/binary"
	"testing"
	"time"

	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/clocks"
	"hardtack/kernel/base/ktime"
	"hardtack/kernel/base/uio"
	"hardtack/kernel/base/wait"
	"hardtack/kernel/fs/vfs"
)

const ms = int64(time.Millisecond)

func read(c *caller.Ctx, f *vfs.File) (uint64, linux.Errno) {
	b := make([]byte, 8)
	n, e := f.Ops.Read(c, f, uio.Bytes(b), 0)
	if e == 0 && n != 8 {
		panic(n)
	}
	return binary.LittleEndian.Uint64(b), e
}

func TestOneShot(t *testing.T) {
	c := caller.NewKernelCtx()
	f := New(linux.CLOCK_MONOTONIC, linux.O_NONBLOCK)
	defer f.Put()
	if _, e := read(c, f); e != linux.EAGAIN {
		t.Fatal(e)
	}
	Of(f).Set(ktime.Setting{Value: 60 * ms}, 0)
	if s := Of(f).Get(); s.Value <= 0 || s.Value > 60*ms || s.Interval != 0 {
		t.Fatal(s)
	}
	if f.Ops.Ready(f) != 0 {
		t.Fatal("ready too early")
	}
	var l listener
	var e wait.Entry
	l.c = make(chan struct{}, 10)
	f.Ops.Queue(f).Add(&e, &l, wait.In)
	<-l.c
	if f.Ops.Ready(f)&wait.In == 0 {
		t.Fatal("told but not ready")
	}
	if n, e := read(c, f); n != 1 || e != 0 {
		t.Fatal(n, e)
	}
	if _, e := read(c, f); e != linux.EAGAIN {
		t.Fatal(e)
	}
	if s := Of(f).Get(); s != (ktime.Setting{}) {
		t.Fatal(s)
	}
}

type listener struct{ c chan struct{} }

func (l *listener) NotifyEvent(*wait.Entry, wait.Events) bool {
	l.c <- struct{}{}
	return true
}

func TestPeriodic(t *testing.T) {
	c := caller.NewKernelCtx()
	f := New(linux.CLOCK_MONOTONIC, 0)
	defer f.Put()
	start := wait.Now()
	Of(f).Set(ktime.Setting{Value: 2 * ms, Interval: 3 * ms}, 0)
	total := uint64(0)
	for total < 6 {
		n, e := read(c, f) // blocks
		if e != 0 || n == 0 {
			t.Fatal(n, e)
		}
		total += n
		due := uint64((wait.Now()-start-2*ms)/(3*ms)) + 1
		if total > due {
			t.Fatal(total, "expirations of", due)
		}
		if total == 3 {
			time.Sleep(10 * time.Millisecond) // some are counted together
		}
	}
	// A period that nobody can follow costs nothing.
	Of(f).Set(ktime.Setting{Value: 1, Interval: 1}, 0)
	time.Sleep(2 * time.Millisecond)
	if n, _ := read(c, f); n < uint64(2*ms) {
		t.Fatal(n)
	}
	if old := Of(f).Set(ktime.Setting{}, 0); old.Interval != 1 {
		t.Fatal(old)
	}
	go func() {
		time.Sleep(3 * time.Millisecond)
		c.SetInterrupted(true)
	}()
	if _, e := read(c, f); e != linux.ERESTARTSYS {
		t.Fatal(e)
	}
}

func TestAbsoluteRealtimeFollowsTheClock(t *testing.T) {
	c := caller.NewKernelCtx()
	now := time.Now().UnixNano()
	ktime.SetRealtime(now)
	f := New(linux.CLOCK_REALTIME, linux.O_NONBLOCK)
	defer f.Put()
	hour := int64(time.Hour)
	Of(f).Set(ktime.Setting{Value: clocks.Realtime() + hour}, linux.TFD_TIMER_ABSTIME)
	relative := New(linux.CLOCK_REALTIME, linux.O_NONBLOCK)
	defer relative.Put()
	Of(relative).Set(ktime.Setting{Value: hour}, 0)
	cancel := New(linux.CLOCK_REALTIME, linux.O_NONBLOCK)
	defer cancel.Put()
	Of(cancel).Set(ktime.Setting{Value: clocks.Realtime() + 3*hour}, linux.TFD_TIMER_ABSTIME|linux.TFD_TIMER_CANCEL_ON_SET)

	var l listener
	var e wait.Entry
	l.c = make(chan struct{}, 10)
	f.Ops.Queue(f).Add(&e, &l, wait.In)
	ktime.SetRealtime(clocks.Realtime() + 2*hour)
	<-l.c
	if n, e := read(c, f); n != 1 || e != 0 {
		t.Fatal(n, e)
	}
	if _, e := read(c, relative); e != linux.EAGAIN {
		t.Fatal("a relative timer moved with the clock:", e)
	}
	if cancel.Ops.Ready(cancel)&wait.In == 0 {
		t.Fatal("not cancelled")
	}
	if _, e := read(c, cancel); e != linux.ECANCELED {
		t.Fatal(e)
	}
	if _, e := read(c, cancel); e != linux.EAGAIN {
		t.Fatal(e)
	}
}
