package proc_test

import (
	"hardtack/abi/linux"
	"hardtack/kernel/process/proc"
	"hardtack/kernel/process/proctest"
)

func init() {
	w := &proc.World
	w.AsInit = func(fn func(t *proc.Thread)) { proctest.AsInit(fn) }
	w.Clone = func(t *proc.Thread, a proc.CloneArgs, fn func(t *proc.Thread)) (int32, linux.Errno) {
		return proctest.Clone(t, a, fn)
	}
	w.Eventually, w.Put, w.Wait, w.Map = proctest.Eventually, proctest.Put, proctest.Wait, proctest.Map
}
