package signals

import (
	"testing"

	"hardtack/abi/linux"
)

// Actions are copied when one of two processes that share a table changes one.
func TestActionsCopyOnWrite(t *testing.T) {
	a := NewActions()
	usr1 := linux.SigAction{Handler: 0x1000, Flags: linux.SA_RESTART}
	a.Set(linux.SIGUSR1, &usr1)
	b := a.Fork(new(Actions))
	if b.table != a.table || b.Get(linux.SIGUSR1) != usr1 {
		t.Error("fork's table differs")
	}
	b.Set(linux.SIGUSR1, &linux.SigAction{Handler: linux.SIG_IGN})
	if a.Get(linux.SIGUSR1) != usr1 || b.table == a.table || a.table.refs.Load() != 1 {
		t.Error("a change shows in the other")
	}
	c := b.Fork(new(Actions))
	c.Release()
	if b.table.refs.Load() != 1 {
		t.Error("a released user counts")
	}
	b.Set(linux.SIGUSR2, &usr1)
	b.Set(linux.SIGCHLD, &linux.SigAction{Flags: linux.SA_NOCLDWAIT})
	b.Flush()
	ignored, caught := b.Sets()
	if caught != 0 || ignored != DefaultIgnore|linux.SIGUSR1.Set() || b.Get(linux.SIGCHLD) != (linux.SigAction{}) || b.table.custom != 0 {
		t.Errorf("after flush: %#x %#x", ignored, caught)
	}
}
