package proc

import (
	"testing"

	"hardtack/abi/linux"
)

// World is what these tests need of kernel/process/proctest. That package imports this one, so
// link_test.go, which is outside, gives it.
var World struct {
	AsInit     func(fn func(t *Thread))
	Clone      func(t *Thread, a CloneArgs, fn func(t *Thread)) (int32, linux.Errno)
	Eventually func(tb testing.TB, what string, ok func() bool)
	Put        func(tb testing.TB, t *Thread, path string, mode uint32, data []byte)
	Wait       func(tb testing.TB, t *Thread, pid int32) WaitResult
	Map        func(tb testing.TB, t *Thread, n uint64) uint64
}

type script = func(t *Thread)

var fork = CloneArgs{ExitSignal: linux.SIGCHLD}

func asInit(fn script) { World.AsInit(fn) }

func eventually(tb testing.TB, what string, ok func() bool) {
	tb.Helper()
	World.Eventually(tb, what, ok)
}

func (t *Thread) call(fn func()) bool {
	fn()
	return t.Return()
}

func (t *Thread) spawn(tb testing.TB, a CloneArgs, fn script) int32 {
	tb.Helper()
	tid, e := World.Clone(t, a, fn)
	if e != 0 {
		tb.Errorf("clone: %v", e)
	}
	return tid
}

func (t *Thread) waitFor(tb testing.TB, pid int32) WaitResult {
	tb.Helper()
	return World.Wait(tb, t, pid)
}

func (t *Thread) page(tb testing.TB, n uint64) uint64 {
	tb.Helper()
	return World.Map(tb, t, n)
}

func (t *Thread) put(tb testing.TB, path string, mode uint32, data []byte) {
	tb.Helper()
	World.Put(tb, t, path, mode, data)
}
