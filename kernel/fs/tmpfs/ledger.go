package tmpfs

import (
	"sync"

	"hardtack/kernel/base/ledger"
	"hardtack/kernel/base/mem"
	"hardtack/kernel/fs/vfs"
)

// instances are the file systems that are in use.
var instances = struct {
	mu  sync.Mutex   // before FS.mu
	all map[*FS]bool // guarded by mu
}{all: map[*FS]bool{}}

func (fs *FS) register() {
	instances.mu.Lock()
	instances.all[fs] = true
	instances.mu.Unlock()
}

func (fs *FS) unregister() {
	instances.mu.Lock()
	delete(instances.all, fs)
	instances.mu.Unlock()
}

// Ledger charges the owners of all files that have names. A file without one is charged
// to who has it open.
func Ledger(charge ledger.Charge) {
	instances.mu.Lock()
	list := make([]*FS, 0, len(instances.all))
	for fs := range instances.all {
		list = append(list, fs)
	}
	instances.mu.Unlock()
	for _, fs := range list {
		vfs.ChargeTree(fs.Root, charge)
	}
}

// KeptBy returns about how many bytes the files of a user take, but not the superuser's:
// the archive that the machine was started with is among them. It is quick: it counts what
// programs have written and not what is in each file.
func KeptBy(uid uint32) (bytes int64) {
	if uid == 0 {
		return 0
	}
	instances.mu.Lock()
	defer instances.mu.Unlock()
	for fs := range instances.all {
		fs.mu.Lock()
		if a := fs.accounts[uid]; a != nil {
			bytes += a.pages.Load()*mem.PageSize + a.inodes.Load()*inodeBytes
		}
		fs.mu.Unlock()
	}
	return bytes
}

// inodeBytes is about what a small file takes of the kernel's heap, with its name.
const inodeBytes = 1 << 10

var (
	leafBytes = ledger.Of[leaf]()
	fileBytes = ledger.Of[file]()
)

// Holds adds nothing: the file is its own inode.
func (f *file) Holds(*ledger.Sum) {}

// HoldsNode adds the file with its pages.
func (f *file) HoldsNode(s *ledger.Sum) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := fileBytes + f.pages.bytes() + f.maps.Bytes()
	if f.fresh != nil {
		n += ledger.Of[pages]() + f.fresh.bytes()
	}
	s.Add(ledger.Names, n)
	s.Add(ledger.FilePages, int64(f.used())*mem.PageSize)
}

// bytes returns what finds the frames.
func (p *pages) bytes() int64 {
	n := int64(p.leaves)*leafBytes + ledger.Array[*leaf](cap(p.dense))
	if p.far != nil {
		n += ledger.Map[uint64, *leaf](len(p.far))
	}
	return n
}

// HoldsNode adds the link with its text.
func (s *special) HoldsNode(sum *ledger.Sum) {
	sum.Add(ledger.Names, ledger.Of[special]()+ledger.Size(int64(len(s.target))))
	if s.long != 0 {
		sum.Add(ledger.FilePages, mem.PageSize)
	}
}
