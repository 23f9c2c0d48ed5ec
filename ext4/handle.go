package ext4

import "hardtack/abi/linux"

// GetHandle is Get for a number and a generation that come from a file handle, and may be
// anything: ESTALE where they name no file. Generation 0 fits all, as on Linux.
//
// A number that nobody has a name for may be given out just now. An inode is made in one
// handle of the journal: while none is open each is whole, or not there.
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

// getUsed is get for a number that may be free: the bitmap says. It takes no lock of an
// inode: who has one may wait for a handle.
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

// Generation tells the inode from others that had its number.
func (in *Inode) Generation() uint32 {
	in.mu.RLock()
	defer in.mu.RUnlock()
	return in.u32(inGeneration)
}

// alone runs do while no handle is open, and none begins.
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
