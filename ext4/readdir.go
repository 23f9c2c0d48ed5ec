package ext4

import (
	"cmp"
	"slices"
	"sync"

	"hardtack/abi/linux"
)

// emptyDir reports whether a directory has no names but "." and "..".
func (in *Inode) emptyDir() (bool, error) {
	empty := true
	err := in.eachEntry(func(_ uint32, e entry) bool {
		empty = string(e.name) == "." || string(e.name) == ".."
		return empty
	})
	return empty, err
}

// eachDot is eachEntry for block 0 of a directory with an index.
func (in *Inode) eachDot(do func(lblk uint32, e entry) bool) (more bool, err error) {
	var f dxFrame
	if err := in.dxBlock(&f, 0); err != nil {
		return false, err
	}
	for off := 0; off <= dxDotDot; off += dxDotDot {
		e, err := entryAt(f.d, off, len(f.d))
		if err != nil {
			return false, corruptDir(in, 0, err)
		}
		if e.ino != 0 && !do(0, e) {
			return false, nil
		}
	}
	return true, nil
}

// eachEntry calls do for the entries in use, in block order, until do returns false.
func (in *Inode) eachEntry(do func(lblk uint32, e entry) bool) error {
	limit := in.fs.s.dirLimit()
	for lblk := range in.dirBlocks() {
		if in.indexed() {
			if lblk == 0 {
				more, err := in.eachDot(do)
				if err != nil || !more {
					return err
				}
				continue
			}
			if index, err := in.isIndexBlock(lblk); err != nil {
				return err
			} else if index {
				continue
			}
		}
		_, d, err := in.dirBlock(lblk)
		if err != nil {
			return err
		}
		for off := 0; off < limit; {
			e, err := entryAt(d, off, limit)
			if err != nil {
				return corruptDir(in, lblk, err)
			}
			if e.ino != 0 && !do(lblk, e) {
				return nil
			}
			off += e.size
		}
	}
	return nil
}

// Dirent is one name of a directory. Next is the position after it.
type Dirent struct {
	Ino  uint32
	Type uint8 // linux.DT_*
	Name string
	Next int64
}

// ReadDir calls emit for the names of a directory from position pos on (0: the
// beginning) until it returns false. A name that exists from the first call to the last
// is returned once, whatever is added or removed meanwhile: the order is that of the
// hashes, which do not change. "." and ".." come first. emit must not call back into the
// directory.
func (fs *FS) ReadDir(dir *Inode, pos int64, emit func(d Dirent) bool) error {
	dir.mu.RLock()
	defer dir.mu.RUnlock()
	if !dir.isDir() {
		return linux.ENOTDIR
	}
	if dir.indexed() || dir.dirBlocks() == 1 && fs.s.compat&compatDirIndex != 0 {
		err := dir.readHashed(pos, emit)
		if err != errNoIndex {
			return err
		}
	}
	bs := int64(fs.s.blockSize)
	return dir.eachEntry(func(lblk uint32, e entry) bool {
		at := int64(lblk)*bs + int64(e.off)
		if at < pos {
			return true
		}
		return emit(Dirent{e.ino, dtype(e.ftype), string(e.name), at + 1})
	})
}

// hashed is an entry with the position that its hash gives it.
type hashed struct {
	pos int64
	at  int // in hashList.text
}

// hashList is names of some leaves by position.
type hashList struct {
	list []hashed
	text string // the leaves' blocks
}

// hashLists are lists for readHashed to reuse.
var hashLists = sync.Pool{New: func() any { return new(hashList) }}

// dirent decodes an entry.
func (l *hashList) dirent(i int) Dirent {
	h := l.list[i]
	d := l.text[h.at:]
	next := h.pos + 1
	if i+1 < len(l.list) && l.list[i+1].pos == h.pos {
		next = h.pos // the same hash: given again rather than left out
	}
	ino := uint32(d[0]) | uint32(d[1])<<8 | uint32(d[2])<<16 | uint32(d[3])<<24
	return Dirent{ino, dtype(d[7]), d[deHeader : deHeader+int(d[6])], next}
}

// readHashed is ReadDir in the order of hashes. Position 0 is ".", 1 is "..",
// and a name has 2 plus its major hash (without the lowest bit) and minor hash.
func (in *Inode) readHashed(pos int64, emit func(d Dirent) bool) error {
	for i, name := range [2]string{".", ".."} {
		if pos > int64(i) {
			continue
		}
		var p place
		if err := in.findDots(&p, name); err != nil {
			return err
		}
		if p.ino != 0 && !emit(Dirent{p.ino, linux.DT_DIR, name, int64(i) + 1}) {
			return nil
		}
	}
	pos = max(pos, 2)
	list := hashLists.Get().(*hashList)
	defer func() {
		list.text = ""
		hashLists.Put(list)
	}()
	for {
		end, err := in.hashRange(list, pos)
		if err != nil {
			return err
		}
		slices.SortFunc(list.list, func(a, b hashed) int {
			if a.pos != b.pos {
				return cmp.Compare(a.pos, b.pos)
			}
			return cmp.Compare(a.at, b.at)
		})
		for i := range list.list {
			if !emit(list.dirent(i)) {
				return nil
			}
		}
		if end >= hashEnd {
			return nil
		}
		next := 2 + int64(end)>>1<<32
		if next <= pos {
			return corrupt("directory %d: the index is not in order", in.ino)
		}
		pos = next
	}
}

// hashRange fills list with the names from pos on of the leaf where pos lies, and of
// those that share its last hash; end is the hash where the next leaf begins.
func (in *Inode) hashRange(list *hashList, pos int64) (end uint32, err error) {
	list.list, list.text = list.list[:0], ""
	if !in.indexed() { // a directory of one block
		return hashEnd, in.hashLeaf(list, 0, in.fs.s.hashVersion, pos)
	}
	var x index
	if err := x.open(in); err != nil {
		return 0, err
	}
	if err := x.descend(uint32(uint64(pos-2)>>32) << 1); err != nil {
		return 0, err
	}
	for {
		if err := in.hashLeaf(list, x.leaf, x.version, pos); err != nil {
			return 0, err
		}
		if x.end&1 == 0 {
			return x.end, nil
		}
		if err := x.next(); err != nil { // names with the same hash go on there
			return 0, err
		}
	}
}

// hashLeaf appends the names of a leaf from pos on.
func (in *Inode) hashLeaf(l *hashList, lblk uint32, version uint8, pos int64) error {
	_, d, err := in.dirBlock(lblk)
	if err != nil {
		return err
	}
	limit := in.fs.s.dirLimit()
	base := len(l.text)
	l.text += string(d[:limit])
	for off := 0; off < limit; {
		e, err := entryAt(d, off, limit)
		if err != nil {
			return corruptDir(in, lblk, err)
		}
		off += e.size
		if e.ino == 0 || len(e.name) <= 2 && (string(e.name) == "." || string(e.name) == "..") {
			continue
		}
		major, minor, ok := in.fs.s.hash(version, e.name)
		if !ok {
			return errNoIndex
		}
		if at := 2 + (int64(major)>>1<<32 | int64(minor)); at >= pos {
			l.list = append(l.list, hashed{at, base + e.off})
		}
	}
	return nil
}
