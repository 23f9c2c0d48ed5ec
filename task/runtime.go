package task

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
)

// The most workers that SetWorkers takes, and the depth of a worker's stack
// unless WithDepth says otherwise.
const (
	MaxWorkers   = 1024
	DefaultDepth = 1 << 14
)

// A Runtime runs tasks on a set of cores. Several may exist side by side.
type Runtime struct {
	depth   int  // immutable
	pinned  bool // immutable
	helpAny bool // immutable
	checks  bool // immutable

	workers   atomic.Pointer[[]*Worker] // replaced under mu; nil where one has gone
	freeSeats atomic.Int32              // len(free)
	seatCount atomic.Int32              // seats that have not been removed
	queued    atomic.Int32              // len(roots) + len(strays)
	pressed   atomic.Bool               // orphans or surplus are not empty
	closing   atomic.Bool               // set once, under mu
	tracer    atomic.Pointer[Tracer]    // nil while nobody traces
	follow    atomic.Bool               // the number of seats follows the machine
	alive     sync.WaitGroup            // the workers
	clock     clock

	mu      sync.Mutex
	seats   []*Seat // all there ever were, by number; the rest is guarded by mu
	free    []*Seat
	spares  []*Worker // sleep because there was nothing to do
	orphans []*Worker // wait for a seat in the middle of a task
	surplus []*Worker // run without a seat
	lost    []*Worker // have lost their seat because they did not look up
	waiting int       // sleep in a join or in Block
	roots   []*root
	strays  []*Frame  // stolen and not begun
	retired []*Worker // that have been dismissed, to be used again
	runs    int       // of Run, not ended
	watcher watcher
	counts  runtimeCounts
}

// An Option is for New.
type Option func(*Runtime) (int, error)

// WithWorkers fixes the number of workers. Without it the number is that of the
// cores which the process may use, and follows it.
func WithWorkers(n int) Option {
	return func(rt *Runtime) (int, error) {
		rt.follow.Store(false)
		return n, checkWorkers(n)
	}
}

// WithDepth sets how many tasks one worker may have spawned and not ended: with so many
// Spawn runs the child at once, and Fork panics. Each takes 64 bytes once it has been
// used.
func WithDepth(n int) Option {
	return func(rt *Runtime) (int, error) {
		if n < 16 || n > 1<<24 {
			return 0, fmt.Errorf("task: depth %d: want 16 to %d", n, 1<<24)
		}
		rt.depth = n
		return 0, nil
	}
}

// WithPinned binds each worker's thread to a core.
func WithPinned() Option {
	return func(rt *Runtime) (int, error) { rt.pinned = true; return 0, nil }
}

// WithHelpAny lets a worker that waits in a join run any task, not only those
// that the awaited one has spawned. That uses the cores a little better and can
// deadlock when a lock is held across a Sync.
func WithHelpAny() Option {
	return func(rt *Runtime) (int, error) { rt.helpAny = true; return 0, nil }
}

func checkWorkers(n int) error {
	if n < 1 || n > MaxWorkers {
		return fmt.Errorf("task: %d workers: want 1 to %d", n, MaxWorkers)
	}
	return nil
}

// New makes a runtime. Its workers start when there is something to do.
func New(options ...Option) (*Runtime, error) {
	rt := &Runtime{depth: DefaultDepth, checks: checksWanted()}
	rt.follow.Store(true)
	n := 0
	for _, o := range options {
		k, err := o(rt)
		if err != nil {
			return nil, err
		}
		n = max(n, k)
	}
	rt.watcher.last = look()
	if n == 0 {
		n = min(rt.watcher.last.cores(), MaxWorkers)
	}
	rt.workers.Store(&[]*Worker{})
	rt.mu.Lock()
	rt.resize(n, rt.watcher.last.cpus)
	rt.mu.Unlock()
	return rt, nil
}

var theDefault = sync.OnceValue(func() *Runtime {
	rt, err := New()
	if err != nil {
		panic(err) // New has no bad input here
	}
	return rt
})

// Default is the runtime that Run uses: all cores, as they come and go.
func Default() *Runtime { return theDefault() }

// Close ends the runtime when the Runs under way have ended; Run refuses new
// ones. It waits for the workers.
func (rt *Runtime) Close() error {
	rt.made()
	rt.mu.Lock()
	if rt.closing.Load() {
		rt.mu.Unlock()
		return ErrClosed
	}
	rt.closed()
	rt.mu.Unlock()
	rt.alive.Wait()
	return nil
}

// A root is one Run.
type root struct {
	scope scope
	fn    func(Ctx)
	fault *Panic
	done  chan struct{}
}

// Run runs fn as a task on the default runtime and gives its result. When the
// context ends first, it aborts the tasks and gives the context's error. It
// panics with a *Panic if fn does.
func Run[R any](ctx context.Context, fn func(Ctx) R) (R, error) {
	return RunOn(Default(), ctx, fn)
}

// RunOn is Run on the runtime rt.
func RunOn[R any](rt *Runtime, ctx context.Context, fn func(Ctx) R) (R, error) {
	var res, none R
	switch {
	case ctx == nil:
		panic("task: Run with a nil context; use context.Background()")
	case fn == nil:
		panic(ErrNoFunc)
	}
	rt.made()
	r := &root{scope: scope{rt: rt}, done: make(chan struct{})}
	r.fn = func(c Ctx) { res = fn(c) }
	if ctx.Err() != nil {
		return none, cancelled(ctx)
	}
	if ctx.Done() != nil {
		r.scope.limits(ctx)
		rt.clock.want(rt)
		defer rt.clock.unwant()
	}
	if rt.follow.Load() && !rt.watching() {
		rt.refresh()
	}
	if err := rt.submit(r); err != nil {
		return none, err
	}
	stop := context.AfterFunc(ctx, r.scope.abort)
	<-r.done
	stop()
	if r.fault == nil {
		return res, nil
	}
	if _, ok := r.fault.Value.(abortSignal); ok {
		return none, cancelled(ctx)
	}
	panic(r.fault)
}

func (rt *Runtime) submit(r *root) error {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	if rt.closing.Load() || rt.ending() {
		return ErrClosed
	}
	rt.runs++
	rt.roots = append(rt.roots, r)
	rt.queued.Add(1)
	if rt.runs == 1 {
		rt.watch()
	}
	rt.call()
	return nil
}

// stray takes a stolen task that its thief may not run.
func (rt *Runtime) stray(f *Frame) {
	rt.mu.Lock()
	rt.strays = append(rt.strays, f)
	rt.queued.Add(1)
	rt.call()
	rt.mu.Unlock()
}

func (rt *Runtime) takeQueued() (*root, *Frame) {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	if n := len(rt.strays); n > 0 {
		f := rt.strays[n-1]
		rt.strays = rt.strays[:n-1]
		rt.queued.Add(-1)
		return nil, f
	}
	if len(rt.roots) > 0 {
		r := rt.roots[0]
		rt.roots = rt.roots[1:]
		rt.queued.Add(-1)
		return r, nil
	}
	return nil, nil
}

// anyWork tells whether something can be stolen or begun; workers that have
// nothing to give are asked to share at their next spawn.
func (rt *Runtime) anyWork() bool {
	found := rt.queued.Load() > 0
	for _, w := range *rt.workers.Load() {
		if w == nil {
			continue
		}
		if w.hasShared() {
			found = true
		} else {
			w.want()
		}
	}
	return found
}

func (w *Worker) runRoot(r *root) {
	w.event(evRoot, 0)
	fine := false
	a := w.enter(&w.frames[0], &r.scope)
	w.offer()
	defer func() {
		if !fine {
			r.fault = w.failed(a, recover())
		}
		w.leave(a)
		w.event(evRootEnd, 0)
		w.rt.ended(r)
	}()
	Ctx{a}.Check()
	r.fn(Ctx{a})
	if a.used != 0 {
		a.syncFrom(0)
	}
	fine = true
}

func (rt *Runtime) ended(r *root) {
	rt.mu.Lock()
	rt.runs--
	if rt.runs == 0 {
		rt.unwatch()
	}
	rt.mu.Unlock()
	close(r.done)
}

// newWorker makes a worker and enters it in the table. rt.mu is held. It gives
// nil when there are too many.
func (rt *Runtime) newWorker() *Worker {
	table := append([]*Worker(nil), *rt.workers.Load()...)
	id := 0
	for id < len(table) && table[id] != nil {
		id++
	}
	if id == len(table) {
		if id == maxSleepers+MaxWorkers {
			return nil
		}
		table = append(table, nil)
	}
	w := rt.recruit()
	w.id, w.bound, w.rng = id, -1, uint64(id)*0x9e3779b97f4a7c15|1
	// More than can be spawned in: the callee gets the next one, and see lateFrames.
	w.frames = make([]Frame, rt.depth+2+lateFrames)
	w.ready(0, min(64, rt.depth+1))
	w.split = w.frames[0].addr()
	atomic.StoreUintptr(&w.limit, w.end)
	w.acts = []*activation{{w: w, base: &w.frames[0], used: usedNone}}
	w.scopes, w.depth = []scopeMark{{base: &w.frames[0]}}, 0
	if rt.tracesSpawns() {
		w.ring(flagTrace)
	}
	if rt.checks {
		w.ring(flagCheck)
	}
	table[id] = w
	rt.workers.Store(&table)
	return w
}

// dismiss removes a worker, whose stack is empty, from the table. rt.mu is held.
func (rt *Runtime) dismiss(w *Worker) {
	table := append([]*Worker(nil), *rt.workers.Load()...)
	table[w.id] = nil
	old := &rt.counts.old
	old.shares.Add(w.counts.shares.Load())
	old.steals.Add(w.counts.steals.Load())
	old.helps.Add(w.counts.helps.Load())
	old.wakes.Add(w.counts.wakes.Load())
	old.moves.Add(w.counts.moves.Load())
	rt.workers.Store(&table)
	rt.retired = append(rt.retired, w)
	rt.alive.Done()
}

// recruit gives a retired worker, or a new one. Workers are used again because the
// clock's thread may look at any that there ever was. rt.mu is held.
func (rt *Runtime) recruit() *Worker {
	if n := len(rt.retired); n > 0 {
		w := rt.retired[n-1]
		rt.retired = rt.retired[:n-1]
		w.word.Store(0)
		w.flags.Store(0)
		w.counts.reset()
		w.silent = 0
		return w
	}
	w := &Worker{rt: rt, note: make(chan struct{}, 1)}
	rt.clock.add(w)
	return w
}

// forget drops what the slots refer to, so that a resting worker holds nothing.
func (w *Worker) forget() {
	for i := range w.frames {
		f := &w.frames[i]
		if f.w == nil {
			break
		}
		f.scope, f.fault = nil, nil
		for j := f.ext; j != nil; j = *j.following() {
			j.forget()
		}
	}
}

// made refuses a Runtime that New did not make.
func (rt *Runtime) made() {
	if rt == nil || rt.workers.Load() == nil {
		panic("task: a Runtime that New did not make; use task.New or task.Default")
	}
}
