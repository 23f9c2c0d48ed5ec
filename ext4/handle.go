package ext4

import "hardtack/abi/linux"

// GetHandle is Get for a number and a generation from a file handle, which may be
// arbitrary: ESTALE if they name no file. Generation 0 matches any, as on Linux.
//
// A number without a name may be in the middle of being allocated. An inode is made in
// one handle of the journal: while no handle is open, each inode is complete or absent.
func (fs *FS) GetHandle(ino, generation uint32) (*Inode, error) {
	if ino != rootInode && ino < fs.s.firstIno || ino > fs.s.inodes {
		return nil, linux.ESTALE
	}
	var in *Inode
	find := func() (err error) {
		in, err = fs.getUsed(ino)
		return err
	}
	var err error
	if fs.readOnly.Load() || fs.j == nil {
		err = find()
	} else {
		err = fs.j.alone(find)
	}
	if err != nil {
		return nil, linux.ESTALE
	}
	if in.refsToNothing() || fileType(in.Mode()) == ftUnknown || generation != 0 && in.Generation() != generation {
		fs.Put(in)
		return nil, linux.ESTALE
	}
	return in, nil
}

// getUsed is get for a number that may be free, by the bitmap. It locks no inode: a
// holder of such a lock may be waiting for a handle.
func (fs *FS) getUsed(ino uint32) (*Inode, error) {
	n, i := (ino-1)/fs.s.inodesPerGroup, (ino-1)%fs.s.inodesPerGroup
	b, err := fs.inodeBitmapBuffer(n)
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	used := bit(b.data, i)
	b.mu.Unlock()
	if !used {
		return nil, linux.ESTALE
	}
	return fs.get(ino)
}

// Generation distinguishes the inode from earlier ones with the same number.
func (in *Inode) Generation() uint32 {
	in.mu.RLock()
	defer in.mu.RUnlock()
	return in.u32(inGeneration)
}

// alone runs do while no handle is open and none can begin.
func (j *journal) alone(do func() error) error {
	j.commitMu.Lock()
	defer j.commitMu.Unlock()
	j.mu.Lock()
	if j.err == nil && j.running == nil {
		j.newTransaction()
	}
	tx := j.running
	if j.err == nil {
		for tx.locked = true; tx.handles > 0 && j.err == nil; {
			j.wake.Wait()
		}
	}
	if j.err != nil {
		err := j.err
		j.mu.Unlock()
		return ioError(err)
	}
	j.mu.Unlock()
	err := do()
	j.mu.Lock()
	tx.locked = false
	j.wake.Broadcast()
	j.mu.Unlock()
	return err
}
