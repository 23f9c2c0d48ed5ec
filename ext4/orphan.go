package ext4

import (
	"fmt"
	"slices"

	"hardtack/abi/linux"
)

// Orphans are inodes with an unfinished operation: without a name but not yet freed, or
// being truncated. They form a list on disk: the super block has the first inode's number,
// and each inode's time of deletion holds the number of the next. After a crash the next
// mount finishes the operations.

// orphanCredits is how many blocks a change of the list may change: the super block, the
// inode and its predecessor.
const orphanCredits = 3

// addOrphan adds an inode. The caller stores it afterwards, in the same handle.
func (fs *FS) addOrphan(h *handle, in *Inode) error {
	fs.orphanMu.Lock()
	defer fs.orphanMu.Unlock()
	if in.orphan.Load() {
		return nil
	}
	first := uint32(0)
	if n := len(fs.orphans); n > 0 {
		first = fs.orphans[n-1]
	}
	fs.setFirstOrphan(h, in.ino)
	in.next.Store(first)
	in.orphan.Store(true)
	fs.orphans = append(fs.orphans, in.ino)
	return nil
}

// removeOrphan removes an inode from the list. The caller stores it afterwards.
func (fs *FS) removeOrphan(h *handle, in *Inode) error {
	fs.orphanMu.Lock()
	defer fs.orphanMu.Unlock()
	i := len(fs.orphans) - 1
	for i >= 0 && fs.orphans[i] != in.ino { // the newest ones mostly go first
		i--
	}
	if i < 0 {
		return nil
	}
	next := uint32(0)
	if i > 0 {
		next = fs.orphans[i-1]
	}
	if i == len(fs.orphans)-1 {
		fs.setFirstOrphan(h, next)
	} else if err := fs.setNextOrphan(h, fs.orphans[i+1], next); err != nil {
		return err
	}
	fs.orphans = slices.Delete(fs.orphans, i, i+1)
	in.orphan.Store(false)
	in.put32(inDtime, 0)
	return nil
}

func (fs *FS) setFirstOrphan(h *handle, ino uint32) {
	b := fs.superBuf
	b.mu.Lock()
	raw := fs.superBytes(h.writeLocked(b))
	le.PutUint32(raw[sbLastOrphan:], ino)
	b.mu.Unlock()
}

// setNextOrphan changes the link of an orphan that the caller has not locked.
func (fs *FS) setNextOrphan(h *handle, ino, next uint32) error {
	blk, off, err := fs.inodePlace(ino)
	if err != nil {
		return err
	}
	b, i, err := fs.tableBlock(ino, blk, off)
	if err != nil {
		return err
	}
	fs.inodesMu.Lock()
	in := fs.inodes[ino]
	fs.inodesMu.Unlock()
	b.mu.Lock()
	defer b.mu.Unlock()
	if in != nil {
		in.next.Store(next)
	}
	raw := h.writeRecord(b, i)[off:]
	le.PutUint32(raw[inDtime:], next)
	return nil
}

// replayOrphans finishes the operations of the list on disk.
func (fs *FS) replayOrphans() error {
	raw := fs.superBytes(fs.superBuf.bytes())
	var list []*Inode
	seen := map[uint32]bool{}
	defer func() {
		for _, in := range list {
			fs.unref(in)
		}
	}()
	for ino := le.Uint32(raw[sbLastOrphan:]); ino != 0; {
		if seen[ino] || ino > fs.s.inodes || ino < fs.s.firstIno {
			return corrupt("the list of orphans leads to inode %d", ino)
		}
		seen[ino] = true
		in, err := fs.get(ino)
		if err != nil {
			return fmt.Errorf("orphan: %w", err)
		}
		in.orphan.Store(true)
		list = append(list, in)
		fs.orphans = append(fs.orphans, ino)
		ino = in.next.Load()
	}
	slices.Reverse(fs.orphans)
	for _, in := range list {
		var err error
		if in.links() == 0 {
			err = fs.destroy(in)
		} else {
			err = fs.finishCut(in)
		}
		if err != nil {
			return fmt.Errorf("orphan %d: %w", in.ino, err)
		}
	}
	return fs.replayOrphanFile()
}

// replayOrphanFile does the same for the newer form of the list, which Linux uses on
// disks with the feature orphan_file: a file of blocks of inode numbers. This package
// writes only the older form.
func (fs *FS) replayOrphanFile() error {
	if fs.s.compat&compatOrphanFile == 0 || fs.s.roCompat&roOrphanPresent == 0 {
		return nil
	}
	file, err := fs.loadInode(le.Uint32(fs.s.raw[sbOrphanFile:]))
	if err != nil {
		return fmt.Errorf("orphan file: %w", err)
	}
	runs, err := fs.allRuns(file)
	if err != nil {
		return fmt.Errorf("orphan file: %w", err)
	}
	for _, r := range runs {
		for blk := r.blk; blk < r.blk+r.n; blk++ {
			if err := fs.replayOrphanBlock(file, blk); err != nil {
				return err
			}
		}
	}
	h, err := fs.begin(1)
	if err != nil {
		return err
	}
	defer h.end()
	b := fs.superBuf
	b.mu.Lock()
	defer b.mu.Unlock()
	raw := fs.superBytes(h.writeLocked(b))
	le.PutUint32(raw[sbRoCompat:], le.Uint32(raw[sbRoCompat:])&^roOrphanPresent)
	return nil
}

func (fs *FS) replayOrphanBlock(file *Inode, blk uint64) error {
	end := int(fs.s.blockSize) - 8 // magic and checksum
	sum := func(d []byte) uint32 {
		var n [8]byte
		le.PutUint64(n[:], blk)
		return crc32c(crc32c(file.seed, n[:]), d[:end])
	}
	check := func(d []byte) error {
		if le.Uint32(d[end:]) != 0x0b10ca04 {
			return corrupt("orphan file: bad magic")
		}
		if fs.s.metadataCsum && le.Uint32(d[end+4:]) != sum(d) {
			return corrupt("orphan file: bad checksum")
		}
		return nil
	}
	_, d, err := fs.checked(blk, kindOrphans, file.owner(), check)
	if err != nil {
		return err
	}
	for at := 0; at+4 <= end; at += 4 {
		if ino := le.Uint32(d[at:]); ino != 0 {
			if err := fs.finishOrphan(ino); err != nil {
				return err
			}
		}
	}
	h, err := fs.begin(1)
	if err != nil {
		return err
	}
	defer h.end()
	b, _, err := fs.checked(blk, kindOrphans, file.owner(), check)
	if err != nil {
		return err
	}
	d = h.write(b)
	clear(d[:end])
	if fs.s.metadataCsum {
		le.PutUint32(d[end+4:], sum(d))
	}
	return nil
}

// finishOrphan deletes or truncates an inode listed in the orphan file.
func (fs *FS) finishOrphan(ino uint32) error {
	if ino < fs.s.firstIno || ino > fs.s.inodes {
		return corrupt("orphan file: inode %d", ino)
	}
	in, err := fs.get(ino)
	if err != nil {
		return fmt.Errorf("orphan: %w", err)
	}
	defer fs.unref(in)
	if in.links() == 0 {
		err = fs.destroy(in)
	} else {
		err = fs.finishCut(in)
	}
	if err != nil {
		return fmt.Errorf("orphan %d: %w", ino, err)
	}
	return nil
}

// finishCut frees the blocks beyond a file's end and removes it from the list.
func (fs *FS) finishCut(in *Inode) error {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.flags()&flagExtents == 0 {
		return fmt.Errorf("inode %d has no extents: %w", in.ino, linux.EOPNOTSUPP)
	}
	first := (uint64(in.size()) + uint64(fs.s.blockSize) - 1) >> (10 + fs.s.logBlock)
	return fs.cutAll(in, first, maxFileBlocks, func(h *handle) error { return fs.removeOrphan(h, in) }, orphanCredits)
}

// destroy frees an inode without names, its blocks and its attributes. The inode is on
// the list and has no other user.
func (fs *FS) destroy(in *Inode) error {
	in.mu.Lock()
	defer in.mu.Unlock()
	finish := func(h *handle) error {
		if err := fs.dropXattrs(h, in); err != nil {
			return err
		}
		if err := fs.removeOrphan(h, in); err != nil {
			return err
		}
		in.setSize(0)
		in.put16(inLinks, 0)
		in.put32(inDtime, fs.s.deletedAt(h.now))
		return fs.freeInode(h, in.ino, in.isDir())
	}
	credits := orphanCredits + inodeCredits + markCredits + 1
	if in.flags()&flagExtents == 0 {
		if in.fastSymlink() || in.isSpecial() {
			return fs.inHandle(in, credits, finish)
		}
		return fmt.Errorf("inode %d has no extents: %w", in.ino, linux.EOPNOTSUPP)
	}
	return fs.cutAll(in, 0, maxFileBlocks, finish, credits)
}

// isSpecial is a device node, FIFO or socket.
func (in *Inode) isSpecial() bool {
	switch in.mode() & linux.S_IFMT {
	case linux.S_IFREG, linux.S_IFDIR, linux.S_IFLNK:
		return false
	}
	return true
}

// inHandle runs a change of an inode in a handle and stores the inode.
func (fs *FS) inHandle(in *Inode, credits int, do func(h *handle) error) error {
	h, err := fs.begin(credits + 1)
	if err != nil {
		return err
	}
	defer h.end()
	if err := do(h); err != nil {
		return fs.fail(err)
	}
	return fs.fail(in.store(h))
}

// fail makes the file system read-only when a change finds damage, so that damage does
// not spread. The open transaction never becomes durable.
func (fs *FS) fail(err error) error {
	if err != nil && fs.j != nil {
		fs.j.abort(err)
		if Errno(err) == linux.EUCLEAN {
			fs.j.noteDamage()
		}
	}
	return err
}

// cutAll frees file blocks from … to-1, last first, in as many handles as needed; the
// tree is consistent after each. finish runs in the last one. in.mu is held.
func (fs *FS) cutAll(in *Inode, from, to uint64, finish func(h *handle) error, credits int) error {
	if err := fs.promise(extentPromise); err != nil {
		// Cutting the end of a file needs no block; a hole in the midst may.
		if to < maxFileBlocks {
			return err
		}
	} else {
		defer func() { fs.free.Add(extentPromise) }()
	}
	for done := false; !done; {
		h, err := fs.begin(credits + cutCredits + 1)
		if err != nil {
			return err
		}
		for {
			gone, used, err := in.cut(h, from, to, true)
			fs.free.Add(-used)
			if err != nil {
				h.end()
				return fs.fail(err)
			}
			if gone.n == 0 {
				done = true
				break
			}
			if !h.extend(cutCredits) {
				break
			}
		}
		if done && finish != nil {
			err = finish(h)
		}
		if err == nil {
			err = in.store(h)
		}
		h.end()
		if err != nil {
			return fs.fail(err)
		}
	}
	return nil
}

// deletedAt is the time of a deletion as stored on disk, 32 bits. Whatever the clock says,
// it is neither zero nor an inode number: e2fsck would take the inode for an orphan.
func (s *super) deletedAt(now int64) uint32 { return max(uint32(max(now/1e9, 1)), s.inodes) }
