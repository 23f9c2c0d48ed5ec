package procfs

import (
	"sync"
	"sync/atomic"

	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/fs/vfs"
)

// adoptAttrs sets what permission checks of the node look at beyond its mode.
func (n *node) adoptAttrs(c *caller.Ctx) {
	attrs := uint32(0)
	if n.e.fixed {
		attrs |= vfs.Immutable
	}
	// Where a file of /proc/sys shows another mode than it has, its own check decides.
	if n.e.strict && (n.e.ctl == nil || n.e.ctl.Shown == 0) {
		attrs |= vfs.Strict
	}
	if p := n.x.process(); n.e.own && p != nil && c != nil && c.PID == p.PID {
		attrs |= vfs.Mine
	}
	if attrs != 0 {
		n.AdoptAttrs(attrs)
	}
}

// SetAttr changes owner, mode and times. What belongs to a process has its owner, and
// keeps a change as long as the node; the files of /proc/sys are root's for good.
func (n *node) SetAttr(_ *caller.Ctx, i *vfs.Inode, a *vfs.Attr) linux.Errno {
	ofProcess := n.x.process() != nil
	if a.Mask&vfs.AttrMode != 0 && (ofProcess || n.e.strict) || a.Mask&(vfs.AttrUID|vfs.AttrGID) != 0 && n.e.strict {
		return linux.EPERM
	}
	b := *a
	b.Mask &^= vfs.AttrSize // O_TRUNC: there is nothing to cut
	i.Apply(&b)
	if !ofProcess && b.Mask&(vfs.AttrMode|vfs.AttrUID|vfs.AttrGID) != 0 {
		kept.set(n.e, &n.x, i)
	}
	return 0
}

// kept are the owners and modes of files that belong to no process, where somebody has
// changed them: nodes come and go. There are at most as many as files.
var kept keptAttrs

type keptAttrs struct {
	mu  sync.Mutex
	any atomic.Bool             // of is not empty
	of  map[keptKey]vfs.NewNode // guarded by mu
}

// keptKey is a file: registered directories share their entry.
type keptKey struct {
	e    *entry
	name string
}

func (k *keptAttrs) set(e *entry, x *about, i *vfs.Inode) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.of == nil {
		k.of = map[keptKey]vfs.NewNode{}
	}
	k.of[keptKey{e, x.n}] = vfs.NewNode{Mode: i.Mode(), UID: i.UID(), GID: i.GID()}
	k.any.Store(true)
}

// apply changes the description of a node that is being made.
func (k *keptAttrs) apply(e *entry, x *about, v *vfs.NewNode) {
	if !k.any.Load() || x.process() != nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if a, ok := k.of[keptKey{e, x.n}]; ok {
		v.Mode, v.UID, v.GID = a.Mode, a.UID, a.GID
	}
}
