package proc

import (
	"sync"
	"sync/atomic"

	"hardtack/abi/linux"
)

// actions is what a process does with each signal. Processes made with
// CLONE_SIGHAND but not CLONE_THREAD share one; after a fork two have the same
// table until one of them changes an action.
type actions struct {
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
	defaultIgnore = linux.SigSet(1<<(linux.SIGCONT-1) | 1<<(linux.SIGCHLD-1) | 1<<(linux.SIGWINCH-1) | 1<<(linux.SIGURG-1))
	defaultStop   = linux.SigSet(1<<(linux.SIGSTOP-1) | 1<<(linux.SIGTSTP-1) | 1<<(linux.SIGTTIN-1) | 1<<(linux.SIGTTOU-1))
	// unblockable signals cannot be blocked, caught or ignored.
	unblockable = linux.SigSet(1<<(linux.SIGKILL-1) | 1<<(linux.SIGSTOP-1))
)

func newActions() *actions {
	a := &actions{table: &actionTable{ignored: defaultIgnore}}
	a.table.refs.Store(1)
	a.users.Store(1)
	return a
}

// fork makes n, which nobody uses yet, the actions of a new process.
func (a *actions) fork(n *actions) *actions {
	n.users.Store(1)
	a.mu.Lock()
	n.table = a.table
	n.table.refs.Add(1)
	a.mu.Unlock()
	return n
}

// share adds a process.
func (a *actions) share() *actions {
	a.users.Add(1)
	return a
}

// release drops a process; who still asks finds the defaults.
func (a *actions) release() {
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
	t := &actionTable{ignored: defaultIgnore}
	t.refs.Store(1 << 30)
	return t
}()

// own returns the table for a change; called with mu held.
func (a *actions) own() *actionTable {
	if t := a.table; t.refs.Load() > 1 {
		a.table = &actionTable{act: t.act, ignored: t.ignored, caught: t.caught, custom: t.custom}
		a.table.refs.Store(1)
		t.refs.Add(-1)
	}
	return a.table
}

// get returns one action.
func (a *actions) get(sig linux.Signal) linux.SigAction {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.table.act[sig-1]
}

// set changes an action and reports whether the signal is ignored now.
func (a *actions) set(sig linux.Signal, act *linux.SigAction) (ignored bool) {
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
		t.ignored |= m & defaultIgnore
	default:
		t.caught |= m
	}
	if plain := (linux.SigAction{Handler: linux.SIG_IGN}); *act != plain && *act != (linux.SigAction{}) {
		t.custom |= m
	}
}

// sets returns which signals are ignored and which have a handler.
func (a *actions) sets() (ignored, caught linux.SigSet) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.table.ignored, a.table.caught
}

// flush sets handlers to the default and leaves ignored signals (exec,
// CLONE_CLEAR_SIGHAND).
func (a *actions) flush() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.table.custom == 0 {
		return
	}
	t := a.own()
	for m := t.custom; m != 0; {
		sig := lowest(m)
		m &^= sig.Set()
		act := linux.SigAction{}
		if t.act[sig-1].Handler == linux.SIG_IGN {
			act.Handler = linux.SIG_IGN
		}
		t.set(sig, &act)
	}
}
