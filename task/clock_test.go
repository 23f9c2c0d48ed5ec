package task

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// Tasks of all forms look at the Run's context themselves.
func TestCancelIsNoticed(t *testing.T) {
	rt := newRuntime(t)
	forms := []struct {
		name string
		work func(Ctx) int
	}{
		{"Spawn", func(c Ctx) int { return fib(c, 60) }},
		{"Join", func(c Ctx) int { return joinFib(c, 60) }},
		{"Fork", func(c Ctx) int { return Fast(c, func(f *Frame) int { return int(fastFib(f, 60)) }) }},
		{"Check", func(c Ctx) int {
			for {
				c.Check()
			}
		}},
	}
	for _, form := range forms {
		for _, byTime := range []bool{false, true} {
			ctx := newMute(time.Time{})
			want := context.Canceled
			if byTime {
				ctx, want = newMute(time.Now().Add(2*time.Millisecond)), context.DeadlineExceeded
			} else {
				time.AfterFunc(2*time.Millisecond, func() { ctx.ended.Store(true) })
			}
			_, err := RunOn(rt, ctx, form.work)
			if err != want || ctx.tooLate.Load() {
				t.Errorf("%s, by time %v: %v, too late: %v", form.name, byTime, err, ctx.tooLate.Load())
			}
			ctx.last.Stop()
		}
	}
}

// A mute context ends without telling those who wait for Done, as one does whose
// timer the scheduler has not run yet. After a long time it does, so that the test
// ends.
type mute struct {
	context.Context
	deadline time.Time
	done     chan struct{}
	ended    atomic.Bool
	tooLate  atomic.Bool
	last     *time.Timer
}

func newMute(deadline time.Time) *mute {
	m := &mute{Context: context.Background(), deadline: deadline, done: make(chan struct{})}
	m.last = time.AfterFunc(20*time.Second, func() {
		m.tooLate.Store(true)
		m.ended.Store(true)
		close(m.done)
	})
	return m
}

func (m *mute) Deadline() (time.Time, bool) { return m.deadline, !m.deadline.IsZero() }
func (m *mute) Done() <-chan struct{}       { return m.done }

func (m *mute) Err() error {
	if m.ended.Load() {
		return context.Canceled
	}
	return nil
}

func TestErrorsOfCancelledRuns(t *testing.T) {
	rt := newRuntime(t, WithWorkers(2))
	why := errors.New("no more of it")
	forever := func(c Ctx) int { return fib(c, 60) }
	check := func(name string, err, kind, cause error) {
		t.Helper()
		if !errors.Is(err, kind) || cause != nil && (!errors.Is(err, cause) || !strings.Contains(err.Error(), cause.Error())) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	for _, early := range []bool{true, false} {
		run := func(ctx context.Context, end func()) error {
			if early {
				end()
			} else {
				time.AfterFunc(time.Millisecond, end)
			}
			_, err := RunOn(rt, ctx, forever)
			return err
		}
		ctx, cancel := context.WithCancel(context.Background())
		check("cancel", run(ctx, cancel), context.Canceled, nil)
		ctx, cancelCause := context.WithCancelCause(context.Background())
		check("cancel with a cause", run(ctx, func() { cancelCause(why) }), context.Canceled, why)
		ctx, cancel = context.WithTimeoutCause(context.Background(), time.Millisecond, why)
		check("time with a cause", run(ctx, func() { <-ctx.Done() }), context.DeadlineExceeded, why)
		cancel()
	}
}

// An idle runtime has no clock.
func TestClockEnds(t *testing.T) {
	rt := newRuntime(t, WithWorkers(1))
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	for range 3 {
		if v, err := RunOn(rt, ctx, func(c Ctx) int { return fib(c, 10) }); v != 55 || err != nil {
			t.Fatal(v, err)
		}
		for on := true; on; time.Sleep(time.Millisecond) {
			rt.clock.mu.Lock()
			on = rt.clock.on
			rt.clock.mu.Unlock()
		}
	}
}

// What nobody has made says so, and what to use.
func TestZeroValues(t *testing.T) {
	says := func(want string, fn func()) {
		t.Helper()
		defer func() {
			t.Helper()
			got := ""
			switch r := recover().(type) {
			case error:
				got = r.Error()
			case string:
				got = r
			}
			if !strings.HasPrefix(got, "task: ") || !strings.Contains(got, want) {
				t.Errorf("panic %q says nothing of %q", got, want)
			}
		}()
		fn()
	}
	none := func(Ctx, int) int { return 0 }
	//lint:ignore SA1012 a nil context is what this is about
	says("context.Background()", func() { Run(nil, func(Ctx) int { return 0 }) })
	says("function", func() { Run[int](context.Background(), nil) })
	says("task.New", func() { RunOn(new(Runtime), context.Background(), func(Ctx) int { return 0 }) })
	says("task.New", func() { RunOn(nil, context.Background(), func(Ctx) int { return 0 }) })
	says("task.New", func() { new(Runtime).SetWorkers(2) })
	says("task.New", func() { new(Runtime).Close() })
	says("task.New", func() { new(Runtime).Stats() })
	says("task.New", func() { new(Runtime).StartTrace(TraceOptions{}) })
	says("task.New", func() { new(Runtime).Workers() })
	says("task.New", func() { new(Runtime).Attach(nil) })
	says("zero Ctx", func() { Spawn(Ctx{}, none, 1) })
	says("zero Ctx", func() { Join(Ctx{}, none, 1, none, 1) })
	says("zero Ctx", func() { Ctx{}.Check() })
	says("zero Ctx", func() { Ctx{}.Worker() })
	says("zero Ctx", func() { NewGroup[int](Ctx{}, nil) })
	says("zero Ctx", func() { Block(Ctx{}, func() {}) })
	says("zero Ctx", func() { For(Ctx{}, 3, 1, func(int, int) {}) })
	says("zero Ctx", func() { Reduce(Ctx{}, 3, 1, func(int, int) int { return 0 }, func(int, int) int { return 0 }) })
	says("zero Ctx", func() { Sort(Ctx{}, []int{2, 1}) })
	says("zero Ctx", func() { Invoke(Ctx{}, func(Ctx) {}) })
	says("zero Ctx", func() { Fast(Ctx{}, func(*Frame) int { return 0 }) })
	rt := newRuntime(t, WithWorkers(1))
	on(t, rt, func(c Ctx) int {
		says("NewGroup", func() { SpawnIn(c, new(Group[int]), none, 1) })
		says("NewGroup", func() { new(Group[int]).Sync(c) })
		says("NewGroup", func() { new(Group[int]).Abort() })
		says("NewGroup", func() { new(Group[int]).Do(func() {}) })
		says("Spawn", func() { Child[int, int]{}.Sync(c) })
		says("Spawn", func() { Child[int, int]{}.Try(c) })
		g := NewGroup[int](c, nil)
		says("function", func() { SpawnIn[int, int](c, g, nil, 1) })
		return 0
	})
}
