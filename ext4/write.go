package ext4

import (
	"fmt"
	"slices"
	"sync"

	"hardtack/abi/linux"
)

// Writing data. New blocks are allocated in memory, written, and only then linked to the
// file, in the same handle as its size. No crash leaves a file with blocks of foreign
// content, and a commit never waits for data. The flush before the commit block covers
// both.

// maxChunk is how many bytes one round of WriteAt moves.
const maxChunk = 4 << 20

// WriteAt writes bytes to a file on disk, bypassing any cache of the caller. Bytes between
// the old end and off read as zeros. Until Fsync has returned, a crash may leave any part
// of the write; n is short only with an error.
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

// WriteOut is WritePages for a caller that knows the number of holes in the range and has
// reserved as many blocks.
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
	// Direct is for data that nobody set blocks aside for: new blocks leave as many
	// free as Reserve does.
	Direct bool
	// Mtime and Ctime become the file's, nanoseconds since 1970; 0 is now.
	Mtime, Ctime int64

	exact bool // Reserved is what the holes need
}

// WritePages is for a page cache: it writes whole blocks of a file and sets its
// size. Holes are filled from reserved blocks (Reserve). The caller must not change the
// pages until it returns. Bytes between the old end and Off read as zeros.
func (fs *FS) WritePages(in *Inode, o *Out) error {
	in.mu.Lock()
	defer in.mu.Unlock()
	late := o.Reserved
	defer func() {
		fs.free.Add(o.Reserved)
		fs.late.Add(-late)
	}()
	pages, off := o.Pages, o.Off
	if _, err := fs.writablePages(in, pages, off); err != nil {
		return err
	}
	if off > in.size() {
		if err := in.zeroTail(); err != nil {
			return err
		}
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

// writablePages checks that pages are whole blocks that may be written at off, and
// returns their bytes.
func (fs *FS) writablePages(in *Inode, pages [][]byte, off int64) (n int64, err error) {
	bs := int64(fs.s.blockSize)
	if off%bs != 0 {
		return 0, linux.EINVAL
	}
	for _, p := range pages {
		if len(p) == 0 || int64(len(p))%bs != 0 {
			return 0, linux.EINVAL
		}
		n += int64(len(p))
	}
	return n, fs.writable(in, off, n)
}

// Overwrite writes whole blocks of a file in place. It returns false, and does nothing,
// unless all of them are within the file's size and have written blocks on disk. Calls may
// run concurrently with each other and with reads. The caller sets the times by Written.
func (fs *FS) Overwrite(in *Inode, pages [][]byte, off int64) (bool, error) {
	in.mu.RLock()
	defer in.mu.RUnlock()
	n, err := fs.writablePages(in, pages, off)
	if err != nil || n == 0 || off+n > in.size() {
		return false, err
	}
	bs := int64(fs.s.blockSize)
	var room [4]piece
	list := room[:0]
	for at, last := uint32(off/bs), uint32((off+n-1)/bs); at <= last; {
		m, err := in.mapBlock(at)
		if err != nil || m.Phys == 0 || m.Unwritten {
			return false, err
		}
		k := min(m.N, last-at+1)
		list = append(list, piece{extent: extent{at, k, m.Phys, false}})
		at += k
	}
	if err := in.writePieces(pages, off, list); err != nil {
		return true, err
	}
	in.wroteOver()
	return true, nil
}

// Written sets the times of a file of which Overwrite has written some, nanoseconds
// since 1970.
func (fs *FS) Written(in *Inode, mtime, ctime int64) error {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.link(nil, 0, &Out{Mtime: mtime, Ctime: ctime})
}

// wroteOver records for Fsync that data was written in place.
func (in *Inode) wroteOver() {
	if j := in.fs.j; j != nil {
		j.flushes.wrote(&in.over)
	}
}

// draw promises n blocks, taken from reserved ones first.
func (fs *FS) draw(o *Out, n int64) error {
	if o == nil {
		return fs.promise(n)
	}
	if o.exact {
		return nil
	}
	if o.Direct {
		return fs.promiseAbove(n, fs.keep(fs.margin(), fs.late.Load()))
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

// end is how long the file will be when all is written that its owner has: at least size.
func (o *Out) end(size int64) int64 {
	if o == nil {
		return size
	}
	return max(size, o.Size)
}

// touchAt is touch with the times of a write that was earlier.
func (in *Inode) touchAt(now int64, o *Out) {
	if o == nil || o.Mtime == 0 {
		in.touch(now, true)
		return
	}
	in.setTime(inMtime, inMtimeX, o.Mtime)
	in.setTime(inCtime, inCtimeX, o.Ctime)
}

// touchedAt reports whether the file has those times already.
func (in *Inode) touchedAt(o *Out) bool {
	return o != nil && o.Mtime != 0 && in.time(inMtime, inMtimeX) == o.Mtime && in.time(inCtime, inCtimeX) == o.Ctime
}

// batches are lists for reads and writes to reuse.
var batches = sync.Pool{New: func() any { return new([]Transfer) }}

// source is the bytes of a write: one slice, or a page cache's pages.
type source [][]byte

func (s source) len() (n int64) {
	for _, p := range s {
		n += int64(len(p))
	}
	return n
}

// transfers appends the pieces of bytes from … to-1, which go to phys on the device.
func (s source) transfers(batch []Transfer, from, to, phys int64) []Transfer {
	for _, p := range s {
		n := int64(len(p))
		if from < n && to > 0 {
			b := p[max(from, 0):min(to, n)]
			batch = append(batch, Transfer{phys, b})
			phys += int64(len(b))
		}
		from, to = from-n, to-n
	}
	return batch
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
	case off+n < off || off+n > maxFileBlocks<<(10+fs.s.logBlock):
		return linux.EFBIG
	}
	return nil
}

// piece is a run of a write: where it goes, and whether it has to be linked.
type piece struct {
	extent
	fresh  bool // allocated for this write
	zeroed bool // the rest of its unwritten extent holds zeros: all of it becomes written
}

// pieces finds or allocates the blocks first … last of a write, appended to list.
// Blocks taken so are only in memory; the caller links them or gives them back with
// undo.
func (in *Inode) pieces(list []piece, first, last uint32, o *Out) (all []piece, taken int64, err error) {
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
	goal := in.goalFor(first)
	for i := 0; i < len(list); i++ {
		x := &list[i]
		if x.phys == 0 {
			r, err := in.allocateData(goal, x.lblk, x.n)
			if err != nil {
				in.undo(list, taken)
				fs.free.Add(holes - taken)
				return nil, 0, err
			}
			rest := extent{lblk: x.lblk + uint32(r.n), n: x.n - uint32(r.n)}
			x.n, x.phys, x.fresh = uint32(r.n), r.blk, true
			taken += int64(r.n)
			if rest.n > 0 {
				list = slices.Insert(list, i+1, piece{extent: rest})
				x = &list[i]
			}
		}
		goal = x.phys + uint64(x.n)
	}
	return list, taken, nil
}

// allocateData takes up to n blocks for a hole of the file from block lblk on.
func (in *Inode) allocateData(goal uint64, lblk, n uint32) (run, error) {
	fs := in.fs
	n = min(n, exMaxLen)
	end := uint64(lblk) + uint64(n)
	switch bs := uint64(fs.s.blockSize); {
	case end <= smallFile && uint64(in.size()) <= smallFile*bs:
		return fs.allocateSmall(goal, n)
	case end*bs >= uint64(in.size()): // it grows
		return fs.allocateAhead(in, goal, n, uint32(end))
	}
	return fs.allocate(goal, n)
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

// goalFor is the preferred place of the blocks from lblk on: after the preceding block,
// or else in the inode's group.
func (in *Inode) goalFor(lblk uint32) uint64 {
	var p path
	if in.findPath(&p, lblk) == nil {
		if l := p.leaf(); l.pos >= 0 {
			x := l.d.extent(l.pos)
			return x.phys + uint64(x.n)
		}
	}
	return in.homeGoal()
}

// homeGoal is a place in the inode's group, different for neighbouring inodes.
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
	var room [4]piece
	list, taken, err := in.pieces(room[:0], first, last, o)
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
	scratch := batches.Get().(*[]Transfer)
	batch := (*scratch)[:0]
	defer func() {
		clear(batch)
		*scratch = batch
		batches.Put(scratch)
	}()
	for _, x := range list {
		for at, end := int64(x.lblk)*bs, int64(x.end())*bs; at < end; {
			phys := fs.byteOf(x.phys) + at - int64(x.lblk)*bs
			lo, hi := max(at, off), min(end, off+n)
			if lo == at && hi-at >= bs { // whole blocks
				hi = at + (hi-at)/bs*bs
				batch = p.transfers(batch, at-off, hi-off, phys)
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

// link adds written blocks to the file. After each handle the file's size is covered by
// its blocks.
func (in *Inode) link(list []piece, size int64, o *Out) error {
	fs := in.fs
	bs := int64(fs.s.blockSize)
	const each = cutCredits + extentCredits + markCredits
	if !slices.ContainsFunc(list, func(x piece) bool { return x.fresh || x.unwritten }) {
		in.wroteOver()
		if size <= in.size() && in.touchedAt(o) {
			return nil
		}
		h, err := fs.begin(1)
		if err != nil {
			return err
		}
		defer h.end()
		in.touchAt(h.now, o)
		if size <= in.size() {
			return in.storeTimes(h)
		}
		in.setSize(size)
		return in.store(h)
	}
	for len(list) > 0 {
		promised, err := in.promiseNodes(list[0].lblk)
		if Errno(err) == linux.ENOSPC && list[0].unwritten {
			promised, list[0].zeroed, err = in.unsplit(list[0].extent, o.end(size))
		}
		if err != nil {
			in.undo(list, freshBlocks(list))
			return err
		}
		h, err := fs.begin(each + 1)
		if err != nil {
			fs.free.Add(promised)
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
			if x.zeroed { // no written block may be behind the end
				in.setSize(max(in.size(), o.end(size)))
			}
			if len(list) == 0 || used > 0 || promised < nodesPromise || !h.extend(each) {
				break
			}
		}
		in.touchAt(h.now, o)
		err = in.store(h)
		h.end()
		fs.free.Add(promised - used)
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

// linkOne adds one written run to the tree.
func (in *Inode) linkOne(h *handle, x piece) (used int64, err error) {
	switch {
	case x.fresh:
		if err := in.fs.markUsed(h, run{x.phys, uint64(x.n)}); err != nil {
			return 0, err
		}
		in.addBlocks(int64(x.n))
		in.goal = x.phys + uint64(x.n)
	case x.zeroed:
		return 0, in.markWritten(h, x.lblk)
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
