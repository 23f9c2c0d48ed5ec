package pagecache

import "sync/atomic"

// leafPages are in a leaf, fan leaves or nodes in a node.
const (
	leafPages = 32
	leafShift = 5
	fan       = 64
	fanShift  = 6
)

// leaf is the words of leafPages pages.
type leaf struct {
	file       *File  // immutable
	next       *leaf  // in File.unclean; guarded by File.mu
	newer, old *leaf  // in the clock; guarded by clock.mu
	base       uint64 // first page; immutable
	dead       bool   // not in the tree any more; guarded by File.mu
	ticking    bool   // in the clock; guarded by clock.mu

	listed atomic.Bool   // in File.unclean; changed under File.mu
	count  atomic.Int32  // pages; raised under File.mu
	dirty  atomic.Uint32 // pages that may be dirty: set after the word says so, cleared before it is looked at

	slots [leafPages]slot
}

// node is an inner node: of nodes, or of leaves where shift is 0.
type node struct {
	shift  uint // of the leaf's number; immutable
	kids   []atomic.Pointer[node]
	leaves []atomic.Pointer[leaf]
}

func newNode(shift uint) *node {
	if shift == 0 {
		return &node{leaves: make([]atomic.Pointer[leaf], fan)}
	}
	return &node{shift: shift, kids: make([]atomic.Pointer[node], fan)}
}

// slot returns the word of page n, or nil. It takes no lock.
func (f *File) slot(n uint64) *slot {
	if l := f.leaf(n); l != nil {
		return &l.slots[n%leafPages]
	}
	return nil
}

func (f *File) leaf(n uint64) *leaf {
	if n < leafPages {
		return f.first.Load()
	}
	t, k := f.root.Load(), n>>leafShift
	if t == nil || k>>t.shift >= fan {
		return nil
	}
	for t.shift > 0 {
		if t = t.kids[k>>t.shift%fan].Load(); t == nil {
			return nil
		}
	}
	return t.leaves[k%fan].Load()
}

// grow returns the leaf of page n, which it makes if need be; mu is held.
func (f *File) grow(n uint64) *leaf {
	if l := f.leaf(n); l != nil {
		return l
	}
	l := &leaf{file: f, base: n &^ (leafPages - 1)}
	clock.add(l)
	if n < leafPages {
		f.first.Store(l)
		return l
	}
	k := n >> leafShift
	t := f.root.Load()
	if t == nil {
		shift := uint(0)
		for k>>shift >= fan {
			shift += fanShift
		}
		t = newNode(shift)
		f.root.Store(t)
	}
	for k>>t.shift >= fan { // one level more above
		up := newNode(t.shift + fanShift)
		up.kids[0].Store(t)
		f.root.Store(up)
		t = up
	}
	for t.shift > 0 {
		p := &t.kids[k>>t.shift%fan]
		next := p.Load()
		if next == nil {
			next = newNode(t.shift - fanShift)
			p.Store(next)
		}
		t = next
	}
	t.leaves[k%fan].Store(l)
	return l
}

// prune takes an empty leaf out of the tree; mu is held. What finds it later sees
// empty words.
func (f *File) prune(l *leaf) {
	if l.dead || l.listed.Load() || l.count.Load() != 0 {
		return
	}
	l.dead = true
	clock.remove(l)
	if l.base == 0 {
		f.first.CompareAndSwap(l, nil)
		return
	}
	if f.pages.Load() == 0 {
		// All inner nodes at once; leaves without pages that were not
		// pruned yet are found to be dead by their count.
		f.root.Store(nil)
		return
	}
	k := l.base >> leafShift
	t := f.root.Load()
	for t != nil && t.shift > 0 {
		t = t.kids[k>>t.shift%fan].Load()
	}
	if t != nil {
		t.leaves[k%fan].CompareAndSwap(l, nil)
	}
}

// eachLeaf calls fn for the leaves that have pages first … last, in order.
func (f *File) eachLeaf(first, last uint64, fn func(l *leaf)) {
	if l := f.first.Load(); l != nil && first < leafPages {
		fn(l)
	}
	if t := f.root.Load(); t != nil {
		t.walk(0, first>>leafShift, last>>leafShift, fn)
	}
}

// walk calls fn for the leaves below t, whose first is number base, from … to.
func (t *node) walk(base, from, to uint64, fn func(l *leaf)) {
	span := uint64(1) << t.shift
	for i := range uint64(fan) {
		at := base + i*span
		if at > to || at+span-1 < from {
			continue
		}
		if t.shift > 0 {
			if k := t.kids[i].Load(); k != nil {
				k.walk(at, from, to, fn)
			}
		} else if l := t.leaves[i].Load(); l != nil {
			fn(l)
		}
	}
}
