package ext4

import (
	"fmt"
	"slices"

	"hardtack/abi/linux"
)

// How data reaches a file. New blocks are taken in memory, written, and only then
// linked to the file, in one handle with its size: so no crash leaves a file with
// blocks whose content is not its own, and a commit never waits for data. The
// flush before the commit block covers both.

// maxChunk is how many bytes one round of WriteAt moves.
const maxChunk = 4 << 20

// WriteAt writes bytes to a file: to the disk, past any cache of the caller's.
// What lies between the old end and off reads as zeros. A crash later may leave
// any part of the write until Fsync returned; n is short only with an error.
func (fs *FS) WriteAt(in *Inode, p []byte, off int64) (n int, err error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if err := fs.writable(in, off, int64(len(p))); err != nil || len(p) == 0 {
		return 0, err
	}
	if off > in.size() {
		if err := in.zeroTail(); err != nil {
			return 0, err
		}
	}
	for n < len(p) {
		c := min(len(p)-n, maxChunk-int(off%int64(fs.s.blockSize)))
		end := off + int64(c)
		if err := in.writeChunk(source{p[n : n+c]}, off, max(in.size(), end), nil); err != nil {
			return n, err
		}
		n, off = n+c, end
	}
	return n, nil
}

// WriteOut is WritePages for a caller that knows how many holes the range has, and
// set aside as many blocks.
func (fs *FS) WriteOut(in *Inode, pages [][]byte, off, size int64) error {
	return fs.WritePages(in, &Out{Pages: pages, Off: off, Size: size, exact: true})
}

// Out is what WritePages writes.
type Out struct {
	Pages [][]byte // each a multiple of the block size long
	Off   int64    // where they begin in the file, a multiple of the block size
	Size  int64    // the file's, set where that grows what the disk has
	// Reserved is how many blocks the caller had set aside for the range. The call
	// takes them over, whether it succeeds or not, and gives back what it did not need.
	Reserved int64
	// Mtime and Ctime become the file's, nanoseconds since 1970; 0 is now.
	Mtime, Ctime int64

	exact bool // Reserved is what the holes need
}

// WritePages is for a page cache: it writes whole blocks of a file and sets its
// size. Holes are filled from what Reserve set aside. The pages are left alone by
// the caller until it returns.
func (fs *FS) WritePages(in *Inode, o *Out) error {
	in.mu.Lock()
	defer in.mu.Unlock()
	defer func() { fs.free.Add(o.Reserved) }()
	pages, off := o.Pages, o.Off
	bs := int64(fs.s.blockSize)
	if off%bs != 0 {
		return linux.EINVAL
	}
	var n int64
	for _, p := range pages {
		if len(p) == 0 || int64(len(p))%bs != 0 {
			return linux.EINVAL
		}
		n += int64(len(p))
	}
	if err := fs.writable(in, off, n); err != nil {
		return err
	}
	for len(pages) > 0 {
		c, k := int64(0), 0
		for k < len(pages) && (k == 0 || c+int64(len(pages[k])) <= maxChunk) {
			c, k = c+int64(len(pages[k])), k+1
		}
		if err := in.writeChunk(source(pages[:k]), off, max(in.size(), min(o.Size, off+c)), o); err != nil {
			return err
		}
		pages, off = pages[k:], off+c
	}
	return nil
}

// draw promises n blocks, from what is set aside first.
func (fs *FS) draw(o *Out, n int64) error {
	if o == nil {
		return fs.promise(n)
	}
	if o.exact {
		return nil
	}
	if o.Reserved < n { // a hole came where blocks were
		if err := fs.promise(n - o.Reserved); err != nil {
			return err
		}
		o.Reserved = n
	}
	o.Reserved -= n
	return nil
}

// touchAt is touch(true) with the times of a write that was earlier.
func (in *Inode) touchAt(o *Out) {
	if o == nil || o.Mtime == 0 {
		in.touch(true)
		return
	}
	in.setTime(inMtime, inMtimeX, o.Mtime)
	in.setTime(inCtime, inCtimeX, o.Ctime)
}

// source is the bytes of a write: one slice, or a page cache's pages.
type source [][]byte

func (s source) len() (n int64) {
	for _, p := range s {
		n += int64(len(p))
	}
	return n
}

// each calls do for the pieces of bytes from … to-1.
func (s source) each(from, to int64, do func(p []byte)) {
	for _, p := range s {
		n := int64(len(p))
		if from < n && to > 0 {
			do(p[max(from, 0):min(to, n)])
		}
		from, to = from-n, to-n
	}
}

// writable says whether n bytes at off may be written.
func (fs *FS) writable(in *Inode, off, n int64) error {
	switch {
	case fs.readOnly.Load():
		return linux.EROFS
	case in.isDir():
		return linux.EISDIR
	case !in.isReg() || off < 0:
		return linux.EINVAL
	case in.flags()&flagExtents == 0:
		return fmt.Errorf("inode %d has no extents: %w", in.ino, linux.EOPNOTSUPP)
	case off+n < off || off+n > (maxFileBlocks-1)<<(10+fs.s.logBlock):
		return linux.EFBIG
	}
	return nil
}

// piece is a run of a write: where it goes, and whether it has to be linked.
type piece struct {
	extent
	fresh bool // allocated for this write
}

// pieces finds or allocates the blocks first … last of a write. Blocks taken so are
// only in memory; the caller links them or gives them back with unbusy.
func (in *Inode) pieces(first, last uint32, o *Out) (list []piece, taken int64, err error) {
	fs := in.fs
	var holes int64
	for at := first; at <= last; {
		m, err := in.mapBlock(at)
		if err != nil {
			return nil, 0, err
		}
		n := min(m.N, last-at+1)
		if m.Phys == 0 {
			holes += int64(n)
		}
		list = append(list, piece{extent: extent{at, n, m.Phys, m.Unwritten}})
		at += n
	}
	if holes == 0 {
		return list, 0, nil
	}
	if err := fs.draw(o, holes); err != nil {
		return nil, 0, err
	}
	var out []piece
	goal := in.firstGoal(list)
	for _, x := range list {
		if x.phys != 0 {
			out, goal = append(out, x), x.phys+uint64(x.n)
			continue
		}
		for x.n > 0 {
			r, err := fs.allocate(goal, min(x.n, exMaxLen))
			if err != nil {
				in.undo(out, taken)
				fs.free.Add(holes - taken)
				return nil, 0, err
			}
			n := uint32(r.n)
			out = append(out, piece{extent{x.lblk, n, r.blk, false}, true})
			taken += int64(n)
			x.lblk, x.n, goal = x.lblk+n, x.n-n, r.blk+r.n
		}
	}
	return out, taken, nil
}

// undo gives back the blocks of a write that were not linked, and their promise.
func (in *Inode) undo(list []piece, promised int64) {
	for _, x := range list {
		if x.fresh {
			in.fs.unbusy(run{x.phys, uint64(x.n)})
		}
	}
	in.fs.free.Add(promised)
}

// firstGoal is where the blocks of a write had best lie: after the block before,
// else in the inode's group.
func (in *Inode) firstGoal(list []piece) uint64 {
	if p, err := in.findPath(list[0].lblk); err == nil {
		if l := p.leaf(); l.pos >= 0 {
			x := l.d.extent(l.pos)
			return x.phys + uint64(x.n)
		}
	}
	return in.homeGoal()
}

// homeGoal is a place in the inode's group, apart for inodes that are neighbours.
func (in *Inode) homeGoal() uint64 {
	s := in.fs.s
	g := (in.ino - 1) / s.inodesPerGroup
	return s.groupStart(g) + uint64(s.groupBlocks(g)/16*(in.ino%16))
}

// writeChunk writes p at off and sets the size to at most size; in.mu is held.
func (in *Inode) writeChunk(p source, off, size int64, o *Out) error {
	fs := in.fs
	bs := int64(fs.s.blockSize)
	first, last := uint32(off/bs), uint32((off+p.len()-1)/bs)
	list, taken, err := in.pieces(first, last, o)
	if err != nil {
		return err
	}
	if err := in.writePieces(p, off, list); err != nil {
		in.undo(list, taken)
		return err
	}
	return in.link(list, size, o)
}

// writePieces sends the data of a write to its blocks. Blocks written in part are
// completed with what they hold, or zeros.
func (in *Inode) writePieces(p source, off int64, list []piece) error {
	fs := in.fs
	bs, n := int64(fs.s.blockSize), p.len()
	batch := make([]Transfer, 0, len(list)+2)
	for _, x := range list {
		for at, end := int64(x.lblk)*bs, int64(x.end())*bs; at < end; {
			phys := fs.byteOf(x.phys) + at - int64(x.lblk)*bs
			lo, hi := max(at, off), min(end, off+n)
			if lo == at && hi-at >= bs { // whole blocks
				hi = at + (hi-at)/bs*bs
				p.each(at-off, hi-off, func(b []byte) {
					batch = append(batch, Transfer{phys, b})
					phys += int64(len(b))
				})
				at = hi
				continue
			}
			hi = min(hi, at+bs)
			b := make([]byte, bs)
			if !x.fresh && !x.unwritten {
				if err := fs.dev.ReadAt([]Transfer{{phys, b}}); err != nil {
					return ioError(err)
				}
				if tail := in.size() - at; tail < bs { // whatever lies beyond the end
					clear(b[max(tail, 0):])
				}
			}
			part := b[lo-at:]
			p.each(lo-off, hi-off, func(x []byte) { part = part[copy(part, x):] })
			batch = append(batch, Transfer{phys, b})
			at += bs
		}
	}
	return ioError(fs.dev.WriteAt(batch, false))
}

// link makes written blocks the file's. Each handle leaves the file with a size
// that its blocks reach to.
func (in *Inode) link(list []piece, size int64, o *Out) error {
	fs := in.fs
	bs := int64(fs.s.blockSize)
	const each = cutCredits + extentCredits + markCredits
	if !slices.ContainsFunc(list, func(x piece) bool { return x.fresh || x.unwritten }) {
		h, err := fs.begin(1)
		if err != nil {
			return err
		}
		defer h.end()
		in.touchAt(o)
		if size <= in.size() {
			return in.storeTimes(h)
		}
		in.setSize(size)
		return in.store(h)
	}
	for len(list) > 0 {
		if err := fs.promise(2 * extentPromise); err != nil {
			in.undo(list, freshBlocks(list))
			return err
		}
		h, err := fs.begin(each + 1)
		if err != nil {
			fs.free.Add(2 * extentPromise)
			in.undo(list, freshBlocks(list))
			return err
		}
		var used int64
		for {
			x := list[0]
			list = list[1:]
			n, err := in.linkOne(h, x)
			used += n
			if err != nil {
				h.end()
				return fs.fail(err)
			}
			in.setSize(max(in.size(), min(size, int64(x.end())*bs)))
			if len(list) == 0 || used > 0 || !h.extend(each) {
				break
			}
		}
		in.touchAt(o)
		err = in.store(h)
		h.end()
		fs.free.Add(2*extentPromise - used)
		if err != nil {
			return fs.fail(err)
		}
	}
	return nil
}

func freshBlocks(list []piece) (n int64) {
	for _, x := range list {
		if x.fresh {
			n += int64(x.n)
		}
	}
	return n
}

// linkOne enters one written run in the tree.
func (in *Inode) linkOne(h *handle, x piece) (used int64, err error) {
	switch {
	case x.fresh:
		if err := in.fs.markUsed(h, run{x.phys, uint64(x.n)}); err != nil {
			return 0, err
		}
		in.addBlocks(int64(x.n))
		in.goal = x.phys + uint64(x.n)
	case x.unwritten:
		_, used, err = in.cut(h, uint64(x.lblk), uint64(x.end()), false)
		if err != nil {
			return used, err
		}
	default:
		return 0, nil
	}
	e := x.extent
	e.unwritten = false
	n, err := in.insertExtent(h, e)
	return used + n, err
}

// zeroTail makes what the last block holds beyond the end of the file zeros, before
// the file grows over it.
func (in *Inode) zeroTail() error {
	bs := int64(in.fs.s.blockSize)
	size := in.size()
	if size%bs == 0 {
		return nil
	}
	m, err := in.mapBlock(uint32(size / bs))
	if err != nil || m.Phys == 0 || m.Unwritten {
		return err
	}
	return in.zeroIn(m.Phys, size%bs, bs)
}

// zeroIn writes zeros to bytes from … to-1 of a block, in place.
func (in *Inode) zeroIn(phys uint64, from, to int64) error {
	fs := in.fs
	b := make([]byte, fs.s.blockSize)
	t := []Transfer{{fs.byteOf(phys), b}}
	if err := fs.dev.ReadAt(t); err != nil {
		return ioError(err)
	}
	clear(b[from:to])
	return ioError(fs.dev.WriteAt(t, false))
}

// Truncate sets a file's size. A crash leaves the old file or the new one, never
// something between: the block in which a shorter file ends is written anew.
func (fs *FS) Truncate(in *Inode, size int64) error {
	in.mu.Lock()
	defer in.mu.Unlock()
	if size < 0 {
		return linux.EINVAL
	}
	if err := fs.writable(in, size, 0); err != nil {
		return err
	}
	if size > in.size() {
		if err := in.zeroTail(); err != nil {
			return err
		}
		h, err := fs.begin(1)
		if err != nil {
			return err
		}
		defer h.end()
		in.setSize(size)
		in.touch(true)
		return in.store(h)
	}
	tail, err := in.copyTail(size)
	if err != nil {
		return err
	}
	bs := int64(fs.s.blockSize)
	first := uint64((size + bs - 1) / bs)
	if err := fs.promise(2 * extentPromise); err != nil {
		in.undo(tail, freshBlocks(tail))
		return err
	}
	h, err := fs.begin(orphanCredits + 1 + cutCredits + extentCredits + markCredits)
	if err != nil {
		fs.free.Add(2 * extentPromise)
		in.undo(tail, freshBlocks(tail))
		return err
	}
	var used int64
	err = fs.addOrphan(h, in)
	for _, x := range tail {
		if err == nil {
			var n int64
			_, n, err = in.cut(h, uint64(x.lblk), uint64(x.end()), true)
			used += n
		}
		if err == nil {
			var n int64
			n, err = in.linkOne(h, x)
			used += n
		}
	}
	in.setSize(size)
	in.touch(true)
	if err == nil {
		err = in.store(h)
	}
	h.end()
	fs.free.Add(2*extentPromise - used)
	if err != nil {
		return fs.fail(err)
	}
	return fs.cutAll(in, first, maxFileBlocks, func(h *handle) error { return fs.removeOrphan(h, in) }, orphanCredits)
}

// copyTail writes the block in which a file of size bytes ends, zeros after the
// end, to a new place, to be linked in the handle that sets the size. On a full
// disk it is changed in place instead.
func (in *Inode) copyTail(size int64) ([]piece, error) {
	fs := in.fs
	bs := int64(fs.s.blockSize)
	if size%bs == 0 || size == in.size() {
		return nil, nil
	}
	lblk := uint32(size / bs)
	m, err := in.mapBlock(lblk)
	if err != nil || m.Phys == 0 || m.Unwritten {
		return nil, err
	}
	if fs.promise(1) != nil {
		return nil, in.zeroIn(m.Phys, size%bs, bs)
	}
	r, err := fs.allocate(m.Phys, 1)
	if err != nil {
		fs.free.Add(1)
		return nil, err
	}
	tail := []piece{{extent{lblk, 1, r.blk, false}, true}}
	b := make([]byte, bs)
	if err = fs.dev.ReadAt([]Transfer{{fs.byteOf(m.Phys), b}}); err == nil {
		clear(b[size%bs:])
		err = fs.dev.WriteAt([]Transfer{{fs.byteOf(r.blk), b}}, false)
	}
	if err != nil {
		in.undo(tail, 1)
		return nil, ioError(err)
	}
	return tail, nil
}

// Fallocate is fallocate(2): mode 0 and FALLOC_FL_KEEP_SIZE allocate,
// FALLOC_FL_PUNCH_HOLE (with KEEP_SIZE) frees, FALLOC_FL_ZERO_RANGE does both;
// EOPNOTSUPP for others.
func (fs *FS) Fallocate(in *Inode, mode uint32, off, n int64) error {
	in.mu.Lock()
	defer in.mu.Unlock()
	if off < 0 || n <= 0 {
		return linux.EINVAL
	}
	if err := fs.writable(in, off, n); err != nil {
		return err
	}
	keep := mode&linux.FALLOC_FL_KEEP_SIZE != 0
	switch mode &^ linux.FALLOC_FL_KEEP_SIZE {
	case linux.FALLOC_FL_PUNCH_HOLE:
		if !keep {
			return linux.EOPNOTSUPP
		}
		return fs.punch(in, off, n)
	case linux.FALLOC_FL_ZERO_RANGE:
		if err := fs.punch(in, off, n); err != nil {
			return err
		}
	case 0:
	default:
		return linux.EOPNOTSUPP
	}
	return fs.preallocate(in, off, n, keep)
}

// punch makes a range zeros and frees the whole blocks in it.
func (fs *FS) punch(in *Inode, off, n int64) error {
	bs := int64(fs.s.blockSize)
	end := off + n
	first, last := (off+bs-1)/bs, end/bs // whole blocks first … last-1
	zero := func(from, to int64) error { // within one block
		m, err := in.mapBlock(uint32(from / bs))
		if err != nil || m.Phys == 0 || m.Unwritten || from >= to {
			return err
		}
		base := from / bs * bs
		return in.zeroIn(m.Phys, from-base, to-base)
	}
	var err error
	if first > last {
		err = zero(off, end)
	} else {
		if off < first*bs {
			err = zero(off, first*bs)
		}
		if err == nil && last*bs < end {
			err = zero(last*bs, end)
		}
	}
	if err != nil {
		return err
	}
	if first < last {
		if err := fs.cutAll(in, uint64(first), uint64(last), nil, 0); err != nil {
			return err
		}
	}
	h, err := fs.begin(1)
	if err != nil {
		return err
	}
	defer h.end()
	in.touch(true)
	return in.store(h)
}

// preallocate gives the holes of a range unwritten blocks.
func (fs *FS) preallocate(in *Inode, off, n int64, keep bool) error {
	bs := int64(fs.s.blockSize)
	end := off + n
	if !keep && end > in.size() {
		if err := in.zeroTail(); err != nil {
			return err
		}
	}
	for at, last := uint32(off/bs), uint32((end-1)/bs); at <= last; {
		m, err := in.mapBlock(at)
		if err != nil {
			return err
		}
		count := min(m.N, last-at+1)
		if m.Phys == 0 {
			count = min(count, exMaxLen-1)
			if err := fs.preallocateRun(in, at, &count); err != nil {
				return err
			}
		}
		at += count
	}
	h, err := fs.begin(1)
	if err != nil {
		return err
	}
	defer h.end()
	if !keep && end > in.size() {
		in.setSize(end)
	}
	in.touch(true)
	return in.store(h)
}

// preallocateRun fills part of a hole; count becomes what was filled.
func (fs *FS) preallocateRun(in *Inode, at uint32, count *uint32) error {
	promised := int64(*count) + extentPromise
	if err := fs.promise(promised); err != nil {
		return err
	}
	r, err := fs.allocate(in.firstGoal([]piece{{extent: extent{lblk: at}}}), *count)
	if err != nil {
		fs.free.Add(promised)
		return err
	}
	h, err := fs.begin(extentCredits + markCredits + 1)
	if err != nil {
		fs.unbusy(r)
		fs.free.Add(promised)
		return err
	}
	defer h.end()
	*count = uint32(r.n)
	if err := fs.markUsed(h, r); err != nil {
		return fs.fail(err)
	}
	in.addBlocks(int64(r.n))
	used, err := in.insertExtent(h, extent{at, uint32(r.n), r.blk, true})
	if err != nil {
		return fs.fail(err)
	}
	fs.free.Add(promised - int64(r.n) - used)
	return fs.fail(in.store(h))
}
