package vfs

import (
	"slices"
	"sync"
	"sync/atomic"

	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/settings"
	"hardtack/kernel/base/wait"
)

// Mount is a file system (or a part of one) at a place of the tree.
type Mount struct {
	ID     int32       // immutable
	FS     *FileSystem // immutable
	Root   *Dentry     // immutable
	Source string      // immutable; what /proc/mounts shows first
	ns     *Namespace  // immutable

	at    atomic.Pointer[Path] // where it is mounted; nil for the root and when detached
	flags atomic.Uint32        // MS_RDONLY, MS_NOSUID …
	// users are open files, roots and working directories, and the mount table's one.
	// Once there are none, the mount has ended and gets no new users.
	users atomic.Int64
	dead  atomic.Bool // unmounted
	// loose: a descriptor holds it, and no path leads here yet; changed under ns.mu.
	loose atomic.Bool
	stale atomic.Bool // nobody has used it since MNT_EXPIRE marked it

	writers atomic.Int64 // regular files open for writing
}

// Path is a place of the tree as a program sees it: a name in a mount.
type Path struct {
	Mnt    *Mount
	Dentry *Dentry
}

// Zero reports whether the path leads nowhere (pipes, sockets).
func (p Path) Zero() bool { return p.Dentry == nil }

// Inode returns the file.
func (p Path) Inode() *Inode { return p.Dentry.Inode }

// tryHold adds a user of a mount that was just found. It reports false if the mount has
// ended.
func (p Path) tryHold() bool {
	for m := p.Mnt; m != nil; {
		n := m.users.Load()
		if n == 0 {
			return false
		}
		if m.stale.Load() {
			m.stale.Store(false)
		}
		if m.users.CompareAndSwap(n, n+1) {
			break
		}
	}
	return true
}

// unhold returns the error of the file system's end, if this was that.
//
//maxlive:point because the last user of a mount unmounts it
func (p Path) unhold() linux.Errno {
	if p.Mnt != nil && p.Mnt.users.Add(-1) == 0 {
		return p.Mnt.end()
	}
	return 0
}

// ended reports whether the mount of p has no user any more.
func (p Path) ended() bool { return p.Mnt != nil && p.Mnt.users.Load() == 0 }

// end releases the file system after the last user has left.
func (m *Mount) end() linux.Errno {
	m.Root.Inode.Put()
	return m.FS.unmounted()
}

// unmounted drops a mount's hold on the file system.
func (fs *FileSystem) unmounted() linux.Errno {
	if fs.mounts.Add(-1) != 0 {
		return 0
	}
	fs.forgetAbsent()
	notifyUnmount(fs)
	if fs.Destroy != nil {
		return fs.Destroy()
	}
	return 0
}

// ReadOnly reports whether the mount refuses changes.
func (m *Mount) ReadOnly() bool {
	return m != nil && (m.flags.Load()&linux.MS_RDONLY != 0 || m.FS.readOnly.Load())
}

// Flags returns the MS_* flags.
func (m *Mount) Flags() uint32 { return m.flags.Load() }

// Relatime reports whether access times follow changes and days (see Path.Accessed).
func (m *Mount) Relatime() bool { return m.Flags()&(linux.MS_NOATIME|linux.MS_STRICTATIME) == 0 }

// Point returns where the mount is, and false at the namespace's root.
func (m *Mount) Point() (Path, bool) {
	if p := m.at.Load(); p != nil {
		return *p, true
	}
	return Path{}, false
}

// Namespace is a mount table. Walks read it without a lock: it is replaced as
// a whole.
type Namespace struct {
	mu    sync.Mutex // serialises changes
	next  int32      // guarded by mu
	table atomic.Pointer[mountTable]

	// Changed announces that the table or the flags of a mount changed.
	Changed wait.Queue
	changes atomic.Uint64
}

type mountTable struct {
	list []*Mount
	at   map[Path]*Mount // by mount point: parent mount and place
}

// NewNamespace makes a tree whose root is fs.
func NewNamespace(fs *FileSystem, source string) (*Namespace, Path) {
	ns := &Namespace{next: 1}
	fs.Root.Inode.TryGet() // always: it was never mounted
	m := ns.newMount(fs, fs.Root, source, 0)
	ns.table.Store(&mountTable{list: []*Mount{m}})
	return ns, Path{m, fs.Root}
}

// Changes returns how often the mounts changed.
func (ns *Namespace) Changes() uint64 { return ns.changes.Load() }

// changed records and announces a change.
func (ns *Namespace) changed() {
	ns.changes.Add(1)
	ns.Changed.Notify(wait.Err | wait.Pri)
}

// Root is the root of the namespace.
func (ns *Namespace) Root() Path {
	t := ns.table.Load()
	first := t.list[0]
	for _, m := range t.list {
		if m.at.Load() == nil {
			first = m
			break
		}
	}
	return t.top(Path{first, first.Root})
}

// Namespace returns the mount table that the path belongs to.
func (p Path) Namespace() *Namespace { return p.Mnt.ns }

// newMount makes a mount, which takes over a reference of the root's inode: it keeps
// its place (see Shrink).
func (ns *Namespace) newMount(fs *FileSystem, root *Dentry, source string, flags uint32) *Mount {
	m := &Mount{ID: ns.next + 20, FS: fs, Root: root, Source: source, ns: ns}
	ns.next++
	m.flags.Store(flags)
	m.users.Store(1)
	fs.mounts.Add(1)
	return m
}

// Mounts returns the table's mounts in the order they were made; not to be changed.
func (ns *Namespace) Mounts() []*Mount { return ns.table.Load().list }

// Mount puts the tree at root of fs on the place p.
func (ns *Namespace) Mount(fs *FileSystem, root *Dentry, source string, p Path, flags uint32) (*Mount, linux.Errno) {
	if root.Inode.IsDir() != p.Dentry.Inode.IsDir() {
		return nil, linux.ENOTDIR
	}
	var m *Mount
	e := p.Dentry.underParent(func() (e linux.Errno) {
		m, e = ns.mount(fs, root, source, p, flags)
		return e
	})
	return m, e
}

func (ns *Namespace) mount(fs *FileSystem, root *Dentry, source string, p Path, flags uint32) (*Mount, linux.Errno) {
	ns.mu.Lock()
	defer ns.mu.Unlock()
	if len(ns.table.Load().list) >= int(settings.MountMax.Get()) {
		return nil, linux.ENOSPC
	}
	if p.Dentry.gone.Load() {
		return nil, linux.ENOENT
	}
	if !p.Mnt.inTree() {
		return nil, linux.EINVAL
	}
	if !root.Inode.TryGet() {
		return nil, linux.ENOENT
	}
	n := ns.table.Load().copy(1)
	m := ns.newMount(fs, root, source, flags)
	n.add(m, n.top(p))
	ns.table.Store(n)
	ns.changed()
	return m, 0
}

// Bind mounts the tree at from on p; with rec also what is mounted below it, all at once.
func (ns *Namespace) Bind(from, p Path, rec bool) linux.Errno {
	if from.Dentry.Inode.IsDir() != p.Dentry.Inode.IsDir() {
		return linux.ENOTDIR
	}
	return p.Dentry.underParent(func() linux.Errno { return ns.bind(from, p, rec) })
}

func (ns *Namespace) bind(from, p Path, rec bool) linux.Errno {
	ns.mu.Lock()
	defer ns.mu.Unlock()
	old := ns.table.Load()
	var below []*Mount
	if rec {
		below = old.below(from)
	}
	if !from.Mnt.inTree() || !p.Mnt.inTree() {
		return linux.EINVAL
	}
	if len(old.list)+1+len(below) > int(settings.MountMax.Get()) {
		return linux.ENOSPC
	}
	if p.Dentry.gone.Load() || !from.Dentry.Inode.TryGet() {
		return linux.ENOENT
	}
	n := old.copy(1 + len(below))
	m := ns.newMount(from.Mnt.FS, from.Dentry, from.Mnt.Source, from.Mnt.Flags())
	n.add(m, n.top(p))
	ns.copyBelow(n, below, from.Mnt, m)
	ns.table.Store(n)
	ns.changed()
	return 0
}

// below returns the mounts on the tree at from and on those.
func (t *mountTable) below(from Path) (list []*Mount) {
	in := map[*Mount]bool{from.Mnt: true}
	for _, x := range t.list {
		at := x.at.Load()
		if at != nil && in[at.Mnt] && x != from.Mnt && (at.Mnt != from.Mnt || at.Dentry.Below(from.Dentry)) {
			in[x] = true
			list = append(list, x)
		}
	}
	return list
}

// copy returns a copy of the table with room for more mounts.
func (t *mountTable) copy(more int) *mountTable {
	n := &mountTable{list: make([]*Mount, len(t.list), len(t.list)+more), at: make(map[Path]*Mount, len(t.at)+more)}
	copy(n.list, t.list)
	for k, v := range t.at {
		n.at[k] = v
	}
	return n
}

// top follows the table's mounts on p.
func (t *mountTable) top(p Path) Path {
	for {
		m := t.at[p]
		if m == nil {
			return p
		}
		p = Path{m, m.Root}
	}
}

// add mounts m on p.
func (t *mountTable) add(m *Mount, p Path) {
	m.at.Store(&p)
	t.list = append(t.list, m)
	t.at[p] = m
	p.Dentry.mounted.Add(1)
}

// Move takes the mount m, which may be loose, with all below it to p (MS_MOVE, move_mount).
func (ns *Namespace) Move(m *Mount, p Path) linux.Errno {
	return p.Dentry.underParent(func() linux.Errno { return ns.move(m, p) })
}

func (ns *Namespace) move(m *Mount, p Path) linux.Errno {
	ns.mu.Lock()
	defer ns.mu.Unlock()
	old := ns.table.Load()
	at := m.at.Load()
	switch {
	case at == nil && !m.loose.Load() || m.dead.Load() || at != nil && !m.inTree(), !p.Mnt.inTree(),
		m.Root.Inode.IsDir() != p.Dentry.Inode.IsDir():
		return linux.EINVAL
	case p.Dentry.gone.Load():
		return linux.ENOENT
	}
	for x := p.Mnt; x != nil; {
		if x == m {
			return linux.ELOOP
		}
		up := x.at.Load()
		if up == nil {
			break
		}
		x = up.Mnt
	}
	if at == nil {
		return ns.attach(m, p)
	}
	n := old.copy(0)
	delete(n.at, *at)
	at.Dentry.mounted.Add(-1)
	n.list = slices.DeleteFunc(n.list, func(x *Mount) bool { return x == m })
	n.add(m, n.top(p))
	n.sort()
	ns.table.Store(n)
	ns.changed()
	return 0
}

// sort orders the list so that parents come before what is mounted on them.
func (t *mountTable) sort() {
	depth := map[*Mount]int{}
	for _, x := range t.list {
		n := 0
		for at := x.at.Load(); at != nil; at = at.Mnt.at.Load() {
			n++
		}
		depth[x] = n
	}
	slices.SortStableFunc(t.list, func(a, b *Mount) int { return depth[a] - depth[b] })
}

// Expire takes m out of the tree if it was not used since the last call (MNT_EXPIRE).
func (ns *Namespace) Expire(m *Mount) linux.Errno {
	if m.users.Load() > 1 {
		return linux.EBUSY
	}
	if !m.stale.Swap(true) {
		return linux.EAGAIN
	}
	return ns.Umount(m, false)
}

// Umount takes m out of the tree. Without detach it must have no users and no mounts on
// it (EBUSY); with detach those below go with it. It returns the write error of a file
// system that ended here; the mount is gone in any case.
func (ns *Namespace) Umount(m *Mount, detach bool) (e linux.Errno) {
	going, e := ns.takeOut(m, detach)
	for _, x := range going { // not under mu: a disk takes its time
		if err := x.end(); e == 0 {
			e = err
		}
	}
	return e
}

// takeOut takes m, and what is mounted below, out of the table. It returns the mounts
// that have ended by that.
func (ns *Namespace) takeOut(m *Mount, detach bool) (ended []*Mount, e linux.Errno) {
	ns.mu.Lock()
	defer ns.mu.Unlock()
	old := ns.table.Load()
	if m.at.Load() == nil || m.dead.Load() {
		return nil, linux.EINVAL
	}
	going := map[*Mount]bool{m: true}
	for _, x := range old.list { // parents stand before what is mounted on them
		if at := x.at.Load(); at != nil && going[at.Mnt] {
			going[x] = true
		}
	}
	if !detach && (len(going) > 1 || !m.users.CompareAndSwap(1, 0)) {
		return nil, linux.EBUSY
	}
	n := &mountTable{at: make(map[Path]*Mount, len(old.at))}
	for _, x := range old.list {
		if !going[x] {
			n.list = append(n.list, x)
			if at := x.at.Load(); at != nil {
				n.at[*at] = x
			}
		}
	}
	ns.table.Store(n)
	ns.changed()
	for x := range going {
		x.at.Swap(nil).Dentry.mounted.Add(-1)
		x.dead.Store(true)
		if !detach || x.users.Add(-1) == 0 {
			ended = append(ended, x)
		}
	}
	return ended, 0
}

// Remount changes a mount's flags; EBUSY if files are open for writing that could not
// be written any more.
func (m *Mount) Remount(flags uint32) linux.Errno {
	if flags&linux.MS_RDONLY != 0 && !m.ReadOnly() && m.writers.Load() > 0 {
		return linux.EBUSY
	}
	m.flags.Store(flags)
	m.ns.changed()
	return 0
}

// ReadOnly reports whether the file system itself refuses changes.
func (fs *FileSystem) ReadOnly() bool { return fs.readOnly.Load() }

// SetReadOnly makes a file system read-only or writable, wherever it is mounted; EBUSY as
// for Remount.
func (fs *FileSystem) SetReadOnly(on bool) linux.Errno {
	if on && !fs.readOnly.Load() && fs.writers.Load() > 0 {
		return linux.EBUSY
	}
	fs.readOnly.Store(on)
	return 0
}

// Top follows mounts on p.
func (p Path) Top() Path { return p.top() }

// top follows mounts on p.
func (p Path) top() Path {
	for p.Dentry.mounted.Load() != 0 {
		m := p.Mnt.ns.table.Load().at[p]
		if m == nil {
			break
		}
		p = Path{m, m.Root}
	}
	return p
}

// up returns the directory above p, not leaving root; p is a directory. ENOENT: p was
// moved out of its mount's tree.
func (p Path) up(root Path) (Path, linux.Errno) {
	for p != root {
		if r := p.Mnt.Root; p.Dentry != r {
			d := p.Dentry.Parent()
			if r.at.Load().parent != nil && !r.isAncestor(d) {
				return p, linux.ENOENT
			}
			return Path{p.Mnt, d}.top(), 0
		}
		at := p.Mnt.at.Load()
		if at == nil {
			break
		}
		p = *at
	}
	return p, 0
}

// within reports whether p is top or is below it.
func (p Path) within(top Path) bool {
	for p != top {
		if p.Dentry == p.Mnt.Root {
			at := p.Mnt.at.Load()
			if at == nil {
				return false
			}
			p = *at
			continue
		}
		d := p.Dentry.at.Load().parent
		if d == nil {
			return false
		}
		p.Dentry = d
	}
	return true
}

// String returns the absolute name of p as seen from root, and whether p can
// be reached from there. Of a name longer than PATH_MAX it returns the end, which is longer, too:
// directories may be nested without a limit.
func (p Path) String(root Path) (string, bool) {
	var buf [256]byte
	b := buf[:]
	n := len(b)
	prepend := func(s string) {
		if n < len(s)+1 {
			more := make([]byte, 2*len(b)+len(s)+1)
			k := copy(more[len(more)-(len(b)-n):], b[n:])
			b, n = more, len(more)-k
		}
		n -= len(s)
		copy(b[n:], s)
		n--
		b[n] = '/'
	}
	reachable := true
	for p != root && len(b)-n <= linux.PATH_MAX {
		if p.Mnt != nil && p.Dentry == p.Mnt.Root {
			at := p.Mnt.at.Load()
			if at == nil {
				reachable = false
				break
			}
			p = *at
			continue
		}
		at := p.Dentry.at.Load()
		if at.parent == nil {
			reachable = false
			break
		}
		prepend(at.name)
		p.Dentry = at.parent
	}
	if n == len(b) {
		return "/", reachable
	}
	return string(b[n:]), reachable
}

// Text returns the name as /proc shows it: " (deleted)" where it is gone.
func (p Path) Text(root Path) string {
	s, _ := p.String(root)
	if p.Dentry.gone.Load() {
		s += " (deleted)"
	}
	return s
}

// MountPath is the mount of whatever is at p, for mount(2) and umount(2).
func (p Path) MountPath() (*Mount, linux.Errno) {
	if p.Mnt == nil || p.Dentry != p.Mnt.Root {
		return nil, linux.EINVAL
	}
	return p.Mnt, 0
}

// KernelMount mounts fs on the directory name, which it makes if need be.
func KernelMount(c *caller.Ctx, ctx *FSContext, fs *FileSystem, source, name string, flags uint32) linux.Errno {
	if e := MkdirAt(c, ctx, nil, name, 0o755); e != 0 && e != linux.EEXIST {
		return e
	}
	p, e := Lookup(c, ctx, nil, name, FollowLast)
	if e != 0 {
		return e
	}
	_, e = p.Mnt.ns.Mount(fs, fs.Root, source, p, flags)
	return e
}
