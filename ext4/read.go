package ext4

import (
	"hardtack/abi/linux"
)

// ReadAt reads a file's bytes from the disk, bypassing any cache of the caller. Holes read
// as zeros, and n is short only at the end of the file. Whole blocks are read directly
// into p if offset and alignment allow.
func (fs *FS) ReadAt(in *Inode, p []byte, off int64) (n int, err error) {
	in.mu.RLock()
	defer in.mu.RUnlock()
	if in.isDir() {
		return 0, linux.EISDIR
	}
	if off < 0 {
		return 0, linux.EINVAL
	}
	if off >= in.size() {
		return 0, nil
	}
	p = p[:min(int64(len(p)), in.size()-off)]
	return len(p), in.readRange([][]byte{p}, off)
}

// ReadPages fills pages with a file's bytes from off on, in as few requests as the file's
// layout on disk allows. Beyond the end of the file it fills them with zeros. It is for a
// page cache, which reads ahead many pages at once.
func (fs *FS) ReadPages(in *Inode, pages [][]byte, off int64) error {
	in.mu.RLock()
	defer in.mu.RUnlock()
	if in.isDir() {
		return linux.EISDIR
	}
	if off < 0 {
		return linux.EINVAL
	}
	if err := in.readRange(pages, off); err != nil {
		return err
	}
	for _, p := range pages {
		if end := in.size() - off; end < int64(len(p)) {
			clear(p[max(end, 0):])
		}
		off += int64(len(p))
	}
	return nil
}

// edge is a block that is read in part.
type edge struct {
	dst, blk []byte
	skip     int64
}

// readRange fills pages from a file's blocks, whatever its size; in.mu is held.
func (in *Inode) readRange(pages [][]byte, off int64) (err error) {
	scratch := batches.Get().(*[]Transfer)
	batch := (*scratch)[:0]
	defer func() {
		clear(batch)
		*scratch = batch
		batches.Put(scratch)
	}()
	var edges []edge
	for _, p := range pages {
		if batch, edges, err = in.planRead(batch, edges, p, off); err != nil {
			return err
		}
		off += int64(len(p))
	}
	if len(batch) > 0 {
		if err := in.fs.dev.ReadAt(batch); err != nil {
			return ioError(err)
		}
	}
	for _, e := range edges {
		copy(e.dst, e.blk[e.skip:])
	}
	return nil
}

// planRead appends the reads that p needs.
func (in *Inode) planRead(batch []Transfer, edges []edge, p []byte, off int64) ([]Transfer, []edge, error) {
	fs := in.fs
	bs := int64(fs.s.blockSize)
	for len(p) > 0 {
		if off/bs >= maxFileBlocks {
			return batch, edges, linux.EFBIG
		}
		m, err := in.mapBlock(uint32(off / bs))
		if err != nil {
			return batch, edges, err
		}
		skip := off % bs
		n := min(int64(len(p)), int64(m.N)*bs-skip)
		at := fs.byteOf(m.Phys)
		switch {
		case m.Phys == 0 || m.Unwritten:
			clear(p[:n])
		case skip == 0 && n >= bs:
			n = n / bs * bs
			batch = append(batch, Transfer{at, p[:n]})
		default:
			n = min(n, bs-skip)
			b := make([]byte, bs)
			batch = append(batch, Transfer{at, b})
			edges = append(edges, edge{p[:n], b, skip})
		}
		p, off = p[n:], off+n
	}
	return batch, edges, nil
}

// Seek finds the next data (SEEK_DATA) or hole (SEEK_HOLE) from off: ENXIO at
// or beyond the end. Allocated blocks that were never written are a hole.
func (fs *FS) Seek(in *Inode, off int64, whence int) (int64, error) {
	in.mu.RLock()
	defer in.mu.RUnlock()
	if whence != linux.SEEK_DATA && whence != linux.SEEK_HOLE {
		return 0, linux.EINVAL
	}
	if off < 0 || off >= in.size() {
		return 0, linux.ENXIO
	}
	bs := int64(fs.s.blockSize)
	for off < in.size() {
		m, err := in.mapBlock(uint32(off / bs))
		if err != nil {
			return 0, err
		}
		if data := m.Phys != 0 && !m.Unwritten; data == (whence == linux.SEEK_DATA) {
			return off, nil
		}
		off = (off/bs + int64(m.N)) * bs
	}
	if whence == linux.SEEK_HOLE {
		return in.size(), nil
	}
	return 0, linux.ENXIO
}

// fastSymlink reports whether a link's text is in the inode itself.
func (in *Inode) fastSymlink() bool {
	return in.mode()&linux.S_IFMT == linux.S_IFLNK && in.size() < inBlockLen && in.flags()&flagExtents == 0
}

// Readlink returns a symbolic link's text.
func (fs *FS) Readlink(in *Inode) (string, error) {
	in.mu.RLock()
	defer in.mu.RUnlock()
	if in.mode()&linux.S_IFMT != linux.S_IFLNK {
		return "", linux.EINVAL
	}
	n := in.size()
	if in.fastSymlink() {
		return string(in.raw[inBlock : inBlock+n]), nil
	}
	if n == 0 || n > int64(fs.s.blockSize) {
		return "", corrupt("inode %d: a symbolic link of %d bytes", in.ino, n)
	}
	m, err := in.mapBlock(0)
	if err != nil {
		return "", err
	}
	if m.Phys == 0 {
		return "", corrupt("inode %d: a symbolic link without text", in.ino)
	}
	b, err := fs.read(m.Phys) // metadata: it may still be in the log only
	if err != nil {
		return "", err
	}
	return string(b.bytes()[:n]), nil
}
