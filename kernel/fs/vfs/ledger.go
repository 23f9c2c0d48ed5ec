package vfs

import (
	"math/rand/v2"

	"hardtack/kernel/base/ledger"
)

// What the parts of open files and names take, in bytes of their size classes.
var (
	fileBytes    = ledger.Of[File]()
	asyncBytes   = ledger.Of[Async]()
	dentryBytes  = ledger.Of[Dentry]()
	kidsBytes    = ledger.Of[children]()
	contextBytes = ledger.Of[FSContext]() + ledger.Of[contextDirs]()
	tableBytes   = ledger.Of[FDTable]() + ledger.Of[[]chunkRef]()
	chunkBytes   = ledger.Of[chunk]()
	watchBytes   = ledger.Of[watch]()
)

// NodeHolder adds what an inode takes to a sum, its pages too. Of an inode without it
// only the object that is Node counts.
type NodeHolder interface {
	HoldsNode(s *ledger.Sum)
}

// ChargeFlight charges a reference to the file that is in flight to a process or, once that
// has ended, to its user. It drops one of the file's references.
func (f *File) ChargeFlight(charge ledger.Charge, pid int32, uid uint32) {
	var own, part ledger.Sum
	f.Holds(&own)
	f.Put()
	part.AddPart(&own, 1, f.Refs())
	charge.All(pid, uid, &part)
}

// Holds adds what lives because the file is open to a sum.
func (f *File) Holds(s *ledger.Sum) {
	s.Add(ledger.Files, fileBytes)
	if f.async.Load() != nil {
		s.Add(ledger.Files, asyncBytes)
	}
	h, ok := f.Ops.(Holder)
	if ok {
		h.Holds(s)
	}
	if f.Path.Zero() {
		if !ok {
			s.Add(ledger.Files, ledger.OfPointer(f.Ops))
		}
		if i := f.lockInode.Load(); i != nil {
			s.Add(ledger.Locks, ledger.Of[Inode]())
			i.holdLocks(s)
		}
		return
	}
	i := f.Path.Dentry.Inode
	if ops, node := any(f.Ops), any(i.Node); !ok && ops != node {
		s.Add(ledger.Files, ledger.OfPointer(ops))
	}
	// What is in the tree for good is its owner's (ChargeTree). The rest lives as long as
	// somebody has it open: a squeeze of caches forgets other names.
	users, named := i.refs.Load(), i.Nlink() > 0 && !i.nameless.Load()
	if named {
		users--
	}
	own := ledger.Scratch()
	d := f.Path.Dentry
	if d.gone.Load() || i.FS.Flags&FSInTree == 0 {
		d.holds(own)
	}
	if i.FS.Flags&FSNoCache != 0 { // the way to it was made for it
		for up := d.Parent(); up != i.FS.Root && up != up.Parent(); up = up.Parent() {
			up.holds(own)
			up.Inode.holds(own)
		}
	}
	if !named || i.FS.Flags&FSInTree == 0 {
		i.holds(own)
	}
	s.AddPartDone(own, 1, users)
}

// holds adds a place with its name.
func (d *Dentry) holds(s *ledger.Sum) {
	s.Add(ledger.Names, dentryBytes+ledger.Size(int64(len(d.Name()))))
	if d.kids == nil {
		return
	}
	s.Add(ledger.Names, kidsBytes)
	if t := d.kids.table.Load(); t != nil {
		n := ledger.Of[nameTable]() + ledger.Array[*entry](len(t.chain))
		for c := len(t.chain) / 4; c >= firstChains; c /= 4 {
			n += ledger.Array[entry](2 * c) // what grow copied: older entries refer to it
		}
		s.Add(ledger.Names, n)
	}
}

// holds adds an inode with what is kept for it.
func (i *Inode) holds(s *ledger.Sum) {
	if h, ok := i.Node.(NodeHolder); ok {
		h.HoldsNode(s)
	} else {
		s.Add(ledger.Names, ledger.OfPointer(i.Node))
	}
	if t := i.xattrs.Load(); t != nil {
		t.mu.Lock()
		n := ledger.Of[xattrTable]() + ledger.Map[string, xattr](len(t.attrs))
		for name, a := range t.attrs {
			n += ledger.Size(int64(len(name))) + ledger.Size(int64(cap(a.value)))
		}
		t.mu.Unlock()
		s.Add(ledger.Names, n)
	}
	if a := i.acl.Load(); a != nil && a != &aclUnread {
		s.Add(ledger.Names, ledger.Of[aclPair]()+ledger.Array[aclEntry](cap(a.access))+ledger.Array[aclEntry](cap(a.inherit)))
	}
	i.holdLocks(s)
}

// holdLocks adds the inode's locks.
func (i *Inode) holdLocks(s *ledger.Sum) {
	t := i.locks.Load()
	if t == nil {
		return
	}
	t.mu.Lock()
	n := ledger.Of[lockTable]() + ledger.Array[RecordLock](cap(t.records))
	if t.flocks != nil {
		n += ledger.Map[*File, int](len(t.flocks))
	}
	n += ledger.Array[*lease](cap(t.leases)) + int64(len(t.leases))*ledger.Of[lease]()
	if t.byFile != nil {
		n += ledger.Map[*File, int](len(t.byFile))
	}
	t.mu.Unlock()
	s.Add(ledger.Locks, n)
}

// Holds adds the table and a part of each file that it names.
func (t *FDTable) Holds(s *ledger.Sum) {
	chunks := *t.chunks.Load()
	s.Add(ledger.Descriptors, tableBytes+ledger.Array[chunkRef](len(chunks)))
	for k := range chunks {
		if chunks[k].Load() != nil {
			s.Add(ledger.Descriptors, chunkBytes)
		}
	}
	for k := range chunks {
		if chunks[k].Load() != nil {
			t.holdFiles(s, k<<chunkShift, (k+1)<<chunkShift)
			ledger.Pause()
		}
	}
}

// sampleChunks chunks of a table are looked at for an estimate.
const sampleChunks = 4

// HoldsAbout is Holds in short time: of a large table it looks at some chunks, chosen at random,
// and there at about so many files at most.
func (t *FDTable) HoldsAbout(s *ledger.Sum, most int) {
	chunks := *t.chunks.Load()
	var chosen [sampleChunks]int
	used, n := 0, 0
	for k := range chunks {
		if chunks[k].Load() == nil {
			continue
		}
		used++
		if n < sampleChunks {
			chosen[n] = k
			n++
		} else if i := rand.IntN(used); i < sampleChunks {
			chosen[i] = k
		}
	}
	s.Add(ledger.Descriptors, tableBytes+ledger.Array[chunkRef](len(chunks))+int64(used)*chunkBytes)
	open := 0
	for _, k := range chosen[:n] {
		open += t.openIn(k)
	}
	step := max(open/max(most, 1), 1)
	own := ledger.Scratch()
	looked, at := 0, rand.IntN(step)
	for _, k := range chosen[:n] {
		last := (k+1)<<chunkShift - 1
		for fd := t.nextOpen(k<<chunkShift, last); fd >= 0; fd = t.nextOpen(fd+1, last) {
			if at--; at >= 0 {
				continue
			}
			at = step - 1
			looked++
			t.holdFiles(own, fd, fd+1)
		}
	}
	s.AddScaled(own, int64(open*used), int64(looked*n))
	own.Done()
}

// openIn returns how many descriptors of a chunk are open.
func (t *FDTable) openIn(chunk int) (n int) {
	last := (chunk+1)<<chunkShift - 1
	for fd := t.nextOpen(chunk<<chunkShift, last); fd >= 0; fd = t.nextOpen(fd+1, last) {
		n++
	}
	return n
}

// holdFiles adds a part of each file from a descriptor on and before another one.
func (t *FDTable) holdFiles(s *ledger.Sum, from, to int) {
	var run Run
	for fd := t.nextOpen(from, to-1); fd >= 0; fd = t.nextOpen(fd+1, to-1) {
		if f, _ := t.Hold(int32(fd)); f != nil {
			run.Add(f, s)
			f.Put()
		}
	}
	run.End(s)
}

// someFiles are closed at a time, before the clock is looked at.
const someFiles = 8

// Run adds up files of which the same often comes several times in a row: it is looked
// at once. The zero Run is empty.
type Run struct {
	f *File // with a reference
	n int64
}

// Add counts one reference of a file, which the caller has one of.
func (r *Run) Add(f *File, s *ledger.Sum) {
	if f != r.f {
		r.End(s)
		f.Get()
		r.f = f
	}
	r.n++
}

// End adds what was counted last. It is called without locks.
func (r *Run) End(s *ledger.Sum) {
	if r.f == nil {
		return
	}
	if n := r.f.Refs() - 1; r.n >= n { // nobody else has it
		r.f.Holds(s)
	} else {
		own := ledger.Scratch()
		r.f.Holds(own)
		s.AddPartDone(own, r.n, n)
	}
	r.f.Put()
	r.f, r.n = nil, 0
}

// Holds adds the context.
func (f *FSContext) Holds(s *ledger.Sum) { s.Add(ledger.Processes, contextBytes) }

// ChargeTree charges the owners of what is in a file system whose names are all in the
// tree. A directory is locked while its names are looked at.
func ChargeTree(root *Dentry, charge ledger.Charge) {
	add := func(d *Dentry) {
		var own, node ledger.Sum
		i := d.Inode
		d.holds(&own)
		i.holds(&node)
		links := int64(1)
		if !i.IsDir() {
			links = int64(i.Nlink())
		}
		own.AddPart(&node, 1, links)
		charge.All(0, i.UID(), &own)
	}
	add(root)
	dirs := []*Dentry{root}
	for len(dirs) > 0 {
		d := dirs[len(dirs)-1]
		dirs = dirs[:len(dirs)-1]
		d.Each(func(c *Dentry) {
			add(c)
			if c.kids != nil {
				dirs = append(dirs, c)
			}
		})
	}
}
