package procfs

import (
	"sync/atomic"

	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/wait"
	"hardtack/kernel/fs/vfs"
)

// mountText is an open mounts, mountinfo or mountstats. Polling it tells of changes
// of the mounts since the last poll.
type mountText struct {
	text
	ns   *vfs.Namespace // immutable
	seen atomic.Uint64  // vfs.Namespace.Changes when it was polled last
}

func (n *node) openMounts(c *caller.Ctx) (vfs.Ops, linux.Errno) {
	x := n.x
	x.c = c
	root, e := x.dirRoot()
	if e != 0 {
		return nil, e
	}
	m := &mountText{text: text{n: n}, ns: root.Namespace()}
	m.seen.Store(m.ns.Changes())
	return m, 0
}

// Ready says POLLERR and POLLPRI once after each change.
func (m *mountText) Ready(*vfs.File) wait.Events {
	ev := wait.In | wait.RdNorm
	if n := m.ns.Changes(); m.seen.Swap(n) != n {
		ev |= wait.Err | wait.Pri
	}
	return ev
}

// Queue is where changes are announced.
func (m *mountText) Queue(*vfs.File) *wait.Queue { return &m.ns.Changed }
