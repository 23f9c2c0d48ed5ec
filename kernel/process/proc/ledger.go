package proc

import (
	"hardtack/kernel/base/hook"
	"hardtack/kernel/base/ledger"
	"hardtack/kernel/base/mem"
	"hardtack/kernel/base/wait"
	"hardtack/kernel/fs/vfs"
	"hardtack/kernel/mm/vm"
	"hardtack/kernel/process/program"
	"hardtack/kernel/process/signals"
)

// HoldsMore adds what other packages keep for a process: its timers.
var HoldsMore = hook.Default(func(p *Process, s *ledger.Sum) {})

// What processes and threads take, in bytes of their size classes.
var (
	newbornBytes = ledger.Of[newborn]()
	threadBytes  = ledger.Of[Thread]()
	runnerBytes  = ledger.Of[runner]() + goroutineBytes
	imageBytes   = ledger.Of[program.Image]()
	heldBytes    = ledger.Of[held]()
)

// goroutineBytes is the runtime's record of a goroutine.
const goroutineBytes = 512

// shared is an object that threads of a process share, perhaps with other processes.
type shared[T comparable] struct {
	of T
	n  int64 // threads of the process
}

// share counts one more thread that has v. It looks at the last few only: what is in the
// list twice is added up in two parts.
func share[T comparable](list []shared[T], v T) []shared[T] {
	for i := len(list) - 1; i >= max(0, len(list)-16); i-- {
		if list[i].of == v {
			list[i].n++
			return list
		}
	}
	return append(list, shared[T]{v, 1})
}

// reach is what the threads of a process reach.
type reach struct {
	tables   []shared[*vfs.FDTable]
	spaces   []shared[*vm.Space] // each with a share
	contexts []shared[*vfs.FSContext]
}

// Ledger adds up the kernel memory that lives because of the process, and its pages. An
// object that others have too counts in part. Nothing of the process is locked while
// files and mappings are looked at.
func (p *Process) Ledger() (s ledger.Sum) { return p.ledger(0) }

// ledger is Ledger; unless most is 0 it looks at about so many files and mappings at most, and makes an
// estimate of what there is more.
func (p *Process) ledger(most int) (s ledger.Sum) {
	var r reach
	p.mu.Lock()
	p.holds(&s, &r)
	img := p.image.Load()
	if img != nil && (img.File == nil || !img.File.TryGet()) {
		img = nil
	}
	p.mu.Unlock()
	if img != nil {
		own := ledger.Scratch()
		img.File.Holds(own)
		s.AddPartDone(own, 1, img.File.Refs()-1)
		img.File.Put()
	}
	for _, x := range r.tables {
		own := ledger.Scratch()
		if most > 0 {
			x.of.HoldsAbout(own, most)
		} else {
			x.of.Holds(own)
		}
		s.AddPartDone(own, x.n, int64(x.of.Users()))
	}
	for _, x := range r.spaces {
		own := ledger.Scratch()
		if most > 0 {
			x.of.HoldsAbout(own, most)
		} else {
			x.of.Holds(own)
		}
		s.AddPartDone(own, x.n, x.of.Users())
		x.of.EndLook()
	}
	for _, x := range r.contexts {
		own := ledger.Scratch()
		x.of.Holds(own)
		s.AddPartDone(own, x.n, int64(x.of.Users()))
	}
	HoldsMore.Call(p, &s)
	return s
}

// HoldsGone adds the process to the sum of a file that is about it, if it has ended: the
// file keeps it then.
func (p *Process) HoldsGone(s *ledger.Sum) {
	if Lookup(p.PID) != p {
		s.Add(ledger.Files, newbornBytes)
	}
}

// holds adds the process itself with its threads, and notes what they reach; called with
// mu held.
func (p *Process) holds(s *ledger.Sum, r *reach) {
	s.Add(ledger.Processes, newbornBytes+ledger.Array[*Thread](cap(p.threads)))
	if p.held.Load() != nil {
		s.Add(ledger.Processes, heldBytes)
	}
	s.Add(ledger.Pages, p.ExecPages.Load()*mem.PageSize)
	s.Add(ledger.Signals, p.sig.pending.Bytes())
	if p.sig.actions != nil && len(p.threads) > 0 {
		s.Add(ledger.Signals, p.sig.actions.Bytes())
	}
	if img := p.image.Load(); img != nil && p.execs.Load() > 0 { // else its parent's
		s.Add(ledger.Processes, imageBytes+ledger.Size(int64(len(img.Path))))
	}
	for _, t := range p.threads {
		if t != p.first {
			s.Add(ledger.Processes, threadBytes)
		}
		s.Add(ledger.Processes, ledger.Size(int64(len(t.Name()))))
		if t.clock != nil && t.clock != wait.Still { // else it waits inside the nucleus, without a goroutine
			s.Add(ledger.Processes, runnerBytes)
			s.Add(ledger.Stacks, t.clock.Stack())
		}
		if x := t.partner.Load(); x != nil {
			s.Add(ledger.Endpoints, (*x).Bytes())
		}
		s.Add(ledger.Signals, t.sig.pending.Bytes())
		if t.sig.frame != nil {
			s.Add(ledger.Signals, signals.FrameBytes)
		}
		if t.FDs != nil {
			r.tables = share(r.tables, t.FDs)
		}
		if t.FS != nil {
			r.contexts = share(r.contexts, t.FS)
		}
		if t.Space != nil {
			n := len(r.spaces)
			if r.spaces = share(r.spaces, t.Space); len(r.spaces) > n {
				t.Space.Look()
			}
		}
	}
}
