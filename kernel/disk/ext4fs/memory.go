package ext4fs

import (
	"sync"

	"hardtack/kernel/base/mem"
	"hardtack/kernel/fs/vfs"
	"hardtack/kernel/mm/pagecache"
)

// nodeBytes is about what an inode takes of the kernel's heap with its name: node and
// ext4's inode 960, the place 112 and its entry in a table that has grown 48, the name,
// two maps, the collector's own records.
const nodeBytes = 1408

// nodeStep is how many nodes are made from one look at the memory to the next: a 64th
// of it.
func nodeStep() int64 { return int64(max(mem.Total()/64*mem.PageSize/nodeBytes, 256)) }

// budget is how many nodes are wanted in memory: they may take half of what is free
// beyond an eighth of it, clean pages of files counted as free, up to a quarter of all
// memory; where there is less they have to give some back. A 64th is always theirs.
func (fs *FS) budget() int64 {
	c := pagecache.Count()
	free := int64(mem.Spare()) + max(c.Pages-c.Dirty-c.Writing, 0)
	total := int64(mem.Total())
	own := fs.nodes.Load() * nodeBytes / mem.PageSize
	pages := min(max(own+(free-total/8)/2, total/64), total/4)
	return max(pages*mem.PageSize/nodeBytes, 256)
}

// crowded is called when there are more nodes than at the last look: it gives the
// collector room for them, or takes names out of the tree until a quarter of what is
// wanted is free, those that nobody looked up lately. The nodes are the collector's then.
func (fs *FS) crowded() {
	defer fs.shrink.Store(false)
	n, most, step := fs.nodes.Load(), fs.budget(), nodeStep()
	if n > most {
		for range 2 { // the first time may only find that all were used
			if over := n - most*3/4; over > 0 {
				n -= int64(fs.Shrink(int(over), drop))
			}
		}
		// The count falls when the collector has been there.
		step = max(most/4, 256)
	}
	fs.wanted.Store(fs.nodes.Load() + step)
	room := n + step
	mem.HeapCache((room - fs.counted.Swap(room)) * nodeBytes)
}

// drop lets go of the pages of a file whose name may leave the tree: with them it
// would stay in memory, and nobody would come by again.
func drop(i *vfs.Inode) bool {
	f, ok := i.Node.(*file)
	if !ok {
		return true
	}
	f.pages.Clean(0, ^uint64(0))
	return f.pages.Pages() == 0
}

var (
	unsqueezed sync.Once
	inUse      sync.Map // of *FS: mounted
)

// squeeze takes all names out of the trees that nobody uses just now.
func squeeze() (bytes int64) {
	inUse.Range(func(x, _ any) bool {
		fs := x.(*FS)
		for range 2 {
			bytes += int64(fs.Shrink(1<<30, drop)) * nodeBytes
		}
		return true
	})
	return bytes
}
