// Package signals is the state of signals: what is pending, what a process does with each,
// the frame that a handler runs on, alternate stacks, and the signals of POSIX timers.
// Whoever owns the state (kernel/process/proc) guards it and decides who gets a signal.
package signals

import (
	"sync"
	"sync/atomic"

	"hardtack/abi/linux"
)

// Actions is what a process does with each signal. Processes made with
// CLONE_SIGHAND but not CLONE_THREAD share one; after a fork two have the same
// table until one of them changes an action.
type Actions struct {
	users atomic.Int32 // processes
	mu    sync.Mutex
	table *actionTable // guarded by mu; the table itself may be changed while refs is 1
}

type actionTable struct {
	refs atomic.Int32 // actions that have it
	act  [linux.NSIG]linux.SigAction
	// ignored has the signals that have no effect now (SIG_IGN, or SIG_DFL
	// where that means nothing), caught those with a handler.
	ignored, caught linux.SigSet
	// custom has the signals whose action is neither the default nor plain SIG_IGN.
	custom linux.SigSet
}

// What the default action of a signal is (signal(7)).
const (
	DefaultIgnore = linux.SigSet(1<<(linux.SIGCONT-1) | 1<<(linux.SIGCHLD-1) | 1<<(linux.SIGWINCH-1) | 1<<(linux.SIGURG-1))
	DefaultStop   = linux.SigSet(1<<(linux.SIGSTOP-1) | 1<<(linux.SIGTSTP-1) | 1<<(linux.SIGTTIN-1) | 1<<(linux.SIGTTOU-1))
	// Unblockable signals cannot be blocked, caught or ignored.
	Unblockable = linux.SigSet(1<<(linux.SIGKILL-1) | 1<<(linux.SIGSTOP-1))
)

func NewActions() *Actions {
	a := &Actions{table: &actionTable{ignored: DefaultIgnore}}
	a.table.refs.Store(1)
	a.users.Store(1)
	return a
}

// Fork makes n, which nobody uses yet, the actions of a new process.
func (a *Actions) Fork(n *Actions) *Actions {
	n.users.Store(1)
	a.mu.Lock()
	n.table = a.table
	n.table.refs.Add(1)
	a.mu.Unlock()
	return n
}

// Share adds a process.
func (a *Actions) Share() *Actions {
	a.users.Add(1)
	return a
}

// Release drops a process; who still asks finds the defaults.
func (a *Actions) Release() {
	if a.users.Add(-1) == 0 {
		a.mu.Lock()
		t := a.table
		a.table = defaults
		a.mu.Unlock()
		t.refs.Add(-1)
	}
}

// defaults is what processes that ended have. It always has users, so that nobody
// changes it.
var defaults = func() *actionTable {
	t := &actionTable{ignored: DefaultIgnore}
	t.refs.Store(1 << 30)
	return t
}()

// own returns the table for a change; called with mu held.
func (a *Actions) own() *actionTable {
	if t := a.table; t.refs.Load() > 1 {
		a.table = &actionTable{act: t.act, ignored: t.ignored, caught: t.caught, custom: t.custom}
		a.table.refs.Store(1)
		t.refs.Add(-1)
	}
	return a.table
}

// Own returns the actions for a process that must share them with no other: a itself, or
// a copy, for which a is released.
func (a *Actions) Own() *Actions {
	if a.users.Load() == 1 {
		return a
	}
	n := a.Fork(new(Actions))
	a.Release()
	return n
}

// Ignored returns the signals whose action is SIG_IGN, and those with a handler.
func (a *Actions) Ignored() (ignored, caught linux.SigSet) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for sig := linux.Signal(1); sig <= linux.NSIG; sig++ {
		if a.table.act[sig-1].Handler == linux.SIG_IGN {
			ignored |= sig.Set()
		}
	}
	return ignored, a.table.caught
}

// Get returns one action.
func (a *Actions) Get(sig linux.Signal) linux.SigAction {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.table.act[sig-1]
}

// Set changes an action and reports whether the signal is ignored now.
func (a *Actions) Set(sig linux.Signal, act *linux.SigAction) (ignored bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.table.act[sig-1] != *act {
		a.own().set(sig, act)
	}
	return a.table.ignored.Has(sig)
}

func (t *actionTable) set(sig linux.Signal, act *linux.SigAction) {
	m := sig.Set()
	t.act[sig-1] = *act
	t.ignored &^= m
	t.caught &^= m
	t.custom &^= m
	switch act.Handler {
	case linux.SIG_IGN:
		t.ignored |= m
	case linux.SIG_DFL:
		t.ignored |= m & DefaultIgnore
	default:
		t.caught |= m
	}
	if plain := (linux.SigAction{Handler: linux.SIG_IGN}); *act != plain && *act != (linux.SigAction{}) {
		t.custom |= m
	}
}

// Sets returns which signals are ignored and which have a handler.
func (a *Actions) Sets() (ignored, caught linux.SigSet) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.table.ignored, a.table.caught
}

// Flush sets handlers to the default and leaves ignored signals (exec,
// CLONE_CLEAR_SIGHAND).
func (a *Actions) Flush() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.table.custom == 0 {
		return
	}
	t := a.own()
	for m := t.custom; m != 0; {
		sig := Lowest(m)
		m &^= sig.Set()
		act := linux.SigAction{}
		if t.act[sig-1].Handler == linux.SIG_IGN {
			act.Handler = linux.SIG_IGN
		}
		t.set(sig, &act)
	}
}
