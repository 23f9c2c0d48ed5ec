package trace

import (
	"fmt"
	"runtime"
	"strings"
	"sync"

	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/clocks"
	"hardtack/kernel/base/flight"
	"hardtack/kernel/base/ledger"
	"hardtack/kernel/base/uio"
	"hardtack/kernel/base/wait"
	"hardtack/kernel/fs/vfs"
	"hardtack/kernel/process/proc"
	"hardtack/kernel/syscall"
)

// recorder is an open /proc/hardtack/flight: the flight recorder's content as text, which is
// taken at the first read. Lines, with times in nanoseconds since boot:
//
//	now TIME REALTIME
//	thread TID PID NAME        what runs now
//	run CPU FROM TO TID GOROUTINE
//	call NAME TID FROM TO
//	irq LINE TIME
//	gc TIME PAUSE
//
// Before the first read one may write "calls": from then on all system calls are recorded,
// and not only those that are measured anyway.
type recorder struct {
	vfs.BaseOps
	queue wait.Queue // of nobody: there is always something to read, or the end

	mu    sync.Mutex
	text  []byte // what the reader gets next; guarded by mu, as what follows
	taken bool
	all   bool // this file has every call recorded
}

// OpenRecorder opens the flight recorder.
func OpenRecorder(*caller.Ctx) (vfs.Ops, linux.Errno) { return &recorder{}, 0 }

// Holds adds what the file keeps.
func (f *recorder) Holds(s *ledger.Sum) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := int64(cap(f.text))
	if f.all {
		n += flight.AllBytes
	}
	s.Add(ledger.Texts, ledger.Of[recorder]()+ledger.Size(n))
}

// Read returns the next part of the text.
func (f *recorder) Read(_ *caller.Ctx, _ *vfs.File, v *uio.Vec, _ int64) (int, linux.Errno) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.taken {
		f.text, f.taken = recorded(), true
	}
	n, e := v.CopyOut(f.text[:min(len(f.text), v.Len())])
	f.text = f.text[n:]
	if n > 0 {
		e = 0
	}
	return n, e
}

// Write takes "calls".
func (f *recorder) Write(_ *caller.Ctx, _ *vfs.File, v *uio.Vec, _ int64) (int, linux.Errno) {
	n := v.Len()
	if n > 64 {
		return 0, linux.EINVAL
	}
	b := make([]byte, n)
	if _, e := v.CopyIn(b); e != 0 {
		return 0, e
	}
	switch strings.TrimSpace(string(b)) {
	case "":
		return n, 0
	case "calls":
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.all || f.taken {
			return 0, linux.EINVAL
		}
		opening.Lock()
		defer opening.Unlock()
		if current.Load() != nil || recording {
			return 0, linux.EBUSY
		}
		recording, f.all = true, true
		flight.All(true)
		syscall.Intercept(note)
		proc.SetTracing(0, true)
		return n, 0
	}
	return 0, linux.EINVAL
}

// note carries out a call and records it.
func note(t *proc.Thread, a *syscall.Args, nr int, handler syscall.Handler) (uint64, linux.Errno) {
	from := proc.Ticks()
	v, e := handler(t, a)
	now := proc.Ticks()
	flight.NoteCall(uint32(nr), t.TID, now, uint64(now-from))
	return v, e
}

// Queue is where nothing is ever announced.
func (f *recorder) Queue(*vfs.File) *wait.Queue { return &f.queue }

// Release ends it.
func (f *recorder) Release(*vfs.File) {
	if !f.all {
		return
	}
	opening.Lock()
	defer opening.Unlock()
	proc.SetTracing(0, false)
	flight.All(false)
	recording = false
}

// recorded makes the text.
func recorded() []byte {
	b := fmt.Appendf(nil, "now %d %d\n", clocks.Monotonic(), clocks.Realtime())
	proc.Each(func(p *proc.Process) bool {
		for _, t := range p.Threads() {
			b = fmt.Appendf(b, "thread %d %d %q\n", t.TID, p.PID, t.Name())
		}
		return true
	})
	flight.Runs(func(cpu int, runs []wait.Run) {
		for _, r := range runs {
			b = fmt.Appendf(b, "run %d %d %d %d %d\n", cpu, wait.At(r.From), wait.At(r.To), r.Thread, r.Goroutine)
		}
	})
	for _, r := range flight.Records() {
		switch r.Kind {
		case flight.Call:
			name := fmt.Sprint("call", r.Code)
			if d := syscall.Lookup(uint64(r.Code)); d != nil {
				name = d.Name
			}
			b = fmt.Appendf(b, "call %s %d %d %d\n", name, r.ID, wait.At(r.When-int64(r.Value)), wait.At(r.When))
		case flight.Interrupt:
			b = fmt.Appendf(b, "irq %d %d\n", r.Code, wait.At(r.When))
		}
	}
	return collections(b)
}

// collections adds the last of the runtime's collections. It has their ends by the time of
// day, as the runtime was told that.
func collections(b []byte) []byte {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	offset := clocks.Realtime() - clocks.Monotonic()
	for i := range min(m.NumGC, uint32(len(m.PauseEnd))) {
		at := int64(m.PauseEnd[i]) - offset
		if at < 0 {
			continue // before the clock was set
		}
		b = fmt.Appendf(b, "gc %d %d\n", at, m.PauseNs[i])
	}
	return b
}
