package ext4

import (
	"fmt"

	"hardtack/abi/linux"
)

// checker examines a whole disk, as e2fsck -fn does. It changes nothing, continues after
// each problem, and trusts nothing that it has not verified.
type checker struct {
	fs       *FS
	report   func(problem string)
	problems int
	used     []byte            // a bit for each block
	inodes   []byte            // a bit for each inode that its bitmap says is in use
	modes    map[uint32]uint16 // of inodes in use
	links    map[uint32]uint32 // as the inodes say
	found    map[uint32]uint32 // as the directories say
	parent   map[uint32]uint32 // of directories: where their name was found
	up       map[uint32]uint32 // of directories: what their ".." says
	dirs     []uint32          // in each group
	shared   map[uint64]uint32 // blocks of attributes: references not seen yet
}

// NotReplayed is the problem that Check reports of a disk that was not unmounted.
const NotReplayed = "the disk was not unmounted: its journal has not been replayed"

// Check examines the file system on dev and calls report with each problem as one line of
// text. It returns the number of problems, or an error if it could not examine the disk. A
// log that was not replayed counts as a problem; Check does not read it.
func Check(dev BlockDevice, report func(problem string)) (problems int, err error) {
	c := &checker{report: report, modes: map[uint32]uint16{}, links: map[uint32]uint32{}, found: map[uint32]uint32{},
		parent: map[uint32]uint32{}, up: map[uint32]uint32{}, shared: map[uint64]uint32{}}
	fs, err := Mount(dev, Options{ReadOnly: true, NoLoad: true})
	if err != nil {
		if Errno(err) == linux.EUCLEAN {
			c.bad("%v", err)
			return c.problems, nil
		}
		return 0, err
	}
	c.fs = fs
	s := fs.s
	c.used, c.inodes, c.dirs = make([]byte, s.blocks/8+1), make([]byte, s.inodes/8+1), make([]uint32, s.groups)
	if s.incompat&incompatRecover != 0 {
		c.bad(NotReplayed)
	} else if fs.logHolds() {
		c.bad("the disk is marked clean, and its journal holds changes that are in no other place")
	}
	if le.Uint16(s.raw[sbState:])&stateError != 0 {
		c.bad("the disk is marked as having errors")
	}
	if o := le.Uint32(s.raw[sbLastOrphan:]); o != 0 && s.incompat&incompatRecover == 0 {
		c.bad("inode %d waits to be deleted on a clean disk", o)
	}
	c.layout()
	for ino := uint32(1); ino <= s.inodes; ino++ {
		if err := c.inode(ino); err != nil {
			return c.problems, err
		}
	}
	c.tree()
	if err := c.counts(); err != nil {
		return c.problems, err
	}
	return c.problems, nil
}

func (c *checker) bad(format string, args ...any) {
	c.problems++
	c.report(fmt.Sprintf(format, args...))
}

// damage reports err if it is about damage, and returns it otherwise.
func (c *checker) damage(err error) error {
	if err == nil {
		return nil
	}
	if e := Errno(err); e == linux.EUCLEAN || e == linux.EOPNOTSUPP || e == linux.EFBIG {
		c.bad("%v", err)
		return nil
	}
	return err
}

// claim marks blocks as used by something.
func (c *checker) claim(blk, n uint64, who string, args ...any) {
	if n > c.fs.s.blocks || blk > c.fs.s.blocks-n {
		c.bad("%s: blocks %d+%d lie beyond the end", fmt.Sprintf(who, args...), blk, n)
		return
	}
	twice := uint64(0)
	for b := blk; b < blk+n; b++ {
		if c.used[b>>3]>>(b&7)&1 != 0 {
			twice++
		}
		c.used[b>>3] |= 1 << (b & 7)
	}
	if twice > 0 {
		c.bad("%s: %d of blocks %d+%d are used for something else too", fmt.Sprintf(who, args...), twice, blk, n)
	}
}

// layout claims what is at fixed places.
func (c *checker) layout() {
	s := c.fs.s
	for g := range s.groups {
		c.claim(s.groupStart(g), min(uint64(s.overhead(g)), uint64(s.groupBlocks(g))), "group %d's copies", g)
		x := &c.fs.groups[g]
		c.claim(x.blockBitmap, 1, "group %d's block bitmap", g)
		c.claim(x.inodeBitmap, 1, "group %d's inode bitmap", g)
		c.claim(x.table, uint64(s.inodeTableBlocks()), "group %d's inode table", g)
	}
}

// inode checks one inode; an error is the device's.
func (c *checker) inode(ino uint32) error {
	s := c.fs.s
	g, i := (ino-1)/s.inodesPerGroup, (ino-1)%s.inodesPerGroup
	b, err := c.fs.inodeBitmapBuffer(g)
	if err != nil {
		if i == 0 {
			return c.damage(err)
		}
		return nil // said already
	}
	if !bit(b.bytes(), i) {
		return nil
	}
	setBit(c.inodes, ino)
	if _, d, err := c.fs.desc(g); err == nil && i >= s.inodesPerGroup-min(d.unusedInodes(), s.inodesPerGroup) {
		c.bad("inode %d is in use in a part of the table that is not", ino)
	}
	in, err := c.fs.loadInode(ino)
	if err != nil {
		return c.damage(err)
	}
	mode := in.mode()
	if ino < s.firstIno && ino != rootInode && in.links() == 0 {
		if ino == resizeInode && mode != 0 {
			return c.resize(in)
		}
		return nil // reserved
	}
	if ino < s.firstIno && ino != rootInode {
		if ino == resizeInode {
			return c.resize(in)
		}
		if ino != s.journal && mode == 0 {
			return nil
		}
	}
	if ino == le.Uint32(s.raw[sbOrphanFile:]) && s.compat&compatOrphanFile != 0 {
		_, err := c.blocksOf(in)
		return err
	}
	if in.links() == 0 {
		c.bad("inode %d is in use and has no links", ino)
	}
	c.modes[ino], c.links[ino] = uint16(mode), in.links()
	if fileType(mode) == ftUnknown {
		c.bad("inode %d: mode %#o is no type of file", ino, mode)
		return nil
	}
	if err := c.attributes(in); err != nil {
		return err
	}
	if in.isSpecial() || in.fastSymlink() {
		return nil
	}
	ok, err := c.blocksOf(in)
	if err != nil || !ok {
		return err
	}
	switch {
	case in.isDir():
		c.dirs[g]++
		return c.directory(in)
	case !in.isReg():
		_, err := c.fs.Readlink(in)
		return c.damage(err)
	}
	return nil
}

// attributes checks the extended attributes.
func (c *checker) attributes(in *Inode) error {
	if _, err := in.xattrs(); err != nil {
		return c.damage(err)
	}
	if blk := in.fileACL(); blk != 0 {
		left, seen := c.shared[blk]
		if !seen {
			b, err := in.xattrBlock()
			if err != nil {
				return c.damage(err)
			}
			c.claim(blk, 1, "inode %d's attributes", in.ino)
			left = le.Uint32(b.bytes()[xaRefs:])
		}
		if left == 0 {
			c.bad("the attributes in block %d have more users than they say", blk)
			return nil
		}
		c.shared[blk] = left - 1
	}
	return nil
}

// resize claims the blocks set aside for more descriptors: the double indirect
// block and the copies are claimed with the layout.
func (c *checker) resize(in *Inode) error {
	if blk := uint64(in.u32(inBlock + 4*13)); blk != 0 {
		c.claim(blk, 1, "the inode for growing the disk")
	}
	return nil
}

// blocksOf claims a file's blocks and checks its tree and counts.
func (c *checker) blocksOf(in *Inode) (bool, error) {
	before := c.problems
	count := uint64(0)
	last := int64(0)
	if in.flags()&flagExtents == 0 {
		c.bad("inode %d has no extents; its blocks are not checked", in.ino)
		return false, nil
	}
	root := node(in.raw[inBlock : inBlock+inBlockLen])
	if err := in.check(root, -1, 0, maxFileBlocks+1); err != nil {
		return false, c.damage(in.blame(err))
	}
	var walk func(d node, hi uint64) error
	walk = func(d node, hi uint64) error {
		for i := range d.count() {
			if d.depth() == 0 {
				x := d.extent(i)
				c.claim(x.phys, uint64(x.n), "inode %d, blocks from %d", in.ino, x.lblk)
				count += uint64(x.n)
				if !x.unwritten {
					last = int64(x.end())
				}
				continue
			}
			end := hi
			if i+1 < d.count() {
				end = uint64(d.key(i + 1))
			}
			blk, lo := d.child(i), uint64(d.key(i))
			c.claim(blk, 1, "inode %d's extents", in.ino)
			count++
			_, child, err := in.readNode(blk, d.depth()-1, lo, end)
			if err == nil {
				err = in.check(child, d.depth()-1, lo, end)
			}
			if err == nil && uint64(child.key(0)) != lo {
				err = corrupt("extent node %d begins at %d, its parent says %d", blk, child.key(0), lo)
			}
			if err != nil {
				if err = c.damage(in.blame(err)); err != nil {
					return err
				}
				continue
			}
			if err := walk(child, end); err != nil {
				return err
			}
		}
		return nil
	}
	if err := walk(root, maxFileBlocks+1); err != nil {
		return false, err
	}
	if in.fileACL() != 0 {
		count++
	}
	bs := int64(c.fs.s.blockSize)
	if want := count << (c.fs.s.logBlock + 1); in.blocks() != want {
		c.bad("inode %d counts %d units of 512 bytes, and has %d", in.ino, in.blocks(), want)
	}
	if size := (in.size() + bs - 1) / bs; last > size {
		c.bad("inode %d is %d bytes long, but has blocks up to %d", in.ino, in.size(), last)
	}
	if in.isDir() && (in.size() == 0 || in.size()%bs != 0) {
		c.bad("directory %d is %d bytes long", in.ino, in.size())
		return false, nil
	}
	return c.problems == before, nil
}

// directory checks a directory's entries and counts the names.
func (c *checker) directory(in *Inode) error {
	c.fs.cache.shrink() // nothing is changed meanwhile
	n, seen := 0, map[string]bool{}
	err := in.eachEntry(func(_ uint32, e entry) bool {
		name := string(e.name)
		n++
		switch {
		case e.ino > c.fs.s.inodes || e.ino < c.fs.s.firstIno && e.ino != rootInode:
			c.bad("directory %d: %q leads to inode %d", in.ino, name, e.ino)
			return true
		case n == 1:
			if name != "." || e.ino != in.ino {
				c.bad("directory %d begins with %q, inode %d", in.ino, name, e.ino)
			}
		case n == 2:
			if name != ".." {
				c.bad("directory %d: the second entry is %q", in.ino, name)
			}
			c.up[in.ino] = e.ino
		case name == "" || checkName(name) != nil:
			c.bad("directory %d: bad name %q", in.ino, name)
		case seen[name]:
			c.bad("directory %d: %q is there twice", in.ino, name)
		}
		seen[name] = true
		c.found[e.ino]++
		if n > 2 && e.ftype == ftDir {
			if p, ok := c.parent[e.ino]; ok {
				c.bad("directory %d has two parents, %d and %d", e.ino, p, in.ino)
			}
			c.parent[e.ino] = in.ino
		}
		if n > 2 {
			c.typeOf(in, name, e)
		}
		return true
	})
	if err != nil {
		return c.damage(err)
	}
	if n < 2 {
		c.bad("directory %d has no . and ..", in.ino)
	}
	if in.indexed() {
		return c.damage(c.hashes(in))
	}
	return nil
}

// typeOf checks that an entry says what its inode is.
func (c *checker) typeOf(in *Inode, name string, e entry) {
	mode, ok := c.modes[e.ino]
	if !ok {
		x, err := c.fs.loadInode(e.ino)
		if err != nil {
			return // said with the inode
		}
		mode = uint16(x.mode())
	}
	if fileType(uint32(mode)) != e.ftype {
		c.bad("directory %d: %q has type %d, its inode is %#o", in.ino, name, e.ftype, mode)
	}
}

// hashes checks that each leaf holds names of its part of the hashes, and that
// every block belongs to the tree.
func (c *checker) hashes(in *Inode) error {
	var x index
	err := x.open(in)
	if err == errNoIndex {
		return nil
	}
	if err == nil {
		err = x.descend(0)
	}
	if err != nil {
		return err
	}
	var list hashList
	lo, leaves := uint32(0), uint32(0)
	for {
		leaves++
		list.list, list.text = list.list[:0], ""
		if err := in.hashLeaf(&list, x.leaf, x.version, 0); err != nil {
			return err
		}
		for i, e := range list.list {
			if h := uint32(uint64(e.pos-2)>>32) << 1; h < lo&^1 || x.end < hashEnd && h > x.end {
				return corrupt("directory %d, block %d: %q is in the wrong place", in.ino, x.leaf, list.dirent(i).Name)
			}
		}
		if x.end >= hashEnd {
			break
		}
		if x.end < lo || leaves > in.dirBlocks() {
			return corrupt("directory %d: the index is not in order", in.ino)
		}
		lo = x.end
		if err := x.next(); err != nil {
			return err
		}
	}
	index := uint32(1)
	for lblk := uint32(1); lblk < in.dirBlocks(); lblk++ {
		if is, err := in.isIndexBlock(lblk); err != nil {
			return err
		} else if is {
			index++
		}
	}
	if leaves+index != in.dirBlocks() {
		return corrupt("directory %d: %d leaves and %d nodes in %d blocks", in.ino, leaves, index, in.dirBlocks())
	}
	return nil
}

// tree checks links, and that every directory hangs from the root.
func (c *checker) tree() {
	if c.modes[rootInode]&linux.S_IFMT != linux.S_IFDIR {
		c.bad("there is no root directory")
	}
	c.parent[rootInode] = rootInode
	for ino, up := range c.up {
		p, ok := c.parent[ino]
		if !ok {
			c.bad("directory %d has no name", ino)
		} else if p != up {
			c.bad("directory %d: .. leads to %d, its parent is %d", ino, up, p)
		}
		at := ino
		for n := 0; at != rootInode; n++ {
			if at, ok = c.parent[at]; !ok || n > len(c.up) {
				c.bad("directory %d does not hang from the root", ino)
				break
			}
		}
	}
	for ino := range c.found {
		if !bit(c.inodes, ino) {
			c.bad("a name leads to inode %d, which is free", ino)
		}
	}
	for ino, n := range c.links {
		want := c.found[ino]
		if ino < c.fs.s.firstIno && ino != rootInode {
			continue
		}
		isDir := uint32(c.modes[ino])&linux.S_IFMT == linux.S_IFDIR
		switch {
		case want == 0:
			c.bad("inode %d has no name", ino)
		case n != want && !(isDir && n == 1 && c.fs.s.roCompat&roDirNlink != 0):
			c.bad("inode %d has %d links and %d names", ino, n, want)
		}
	}
	for blk, left := range c.shared {
		if left != 0 {
			c.bad("the attributes in block %d have %d users less than they say", blk, left)
		}
	}
}

// counts compares bitmaps and counts with what was found.
func (c *checker) counts() error {
	s := c.fs.s
	var free, freeIno uint64
	for g := range s.groups {
		_, d, err := c.fs.desc(g)
		if err != nil {
			return err
		}
		b, err := c.fs.bitmapBuffer(g)
		if err != nil {
			if err = c.damage(err); err != nil {
				return err
			}
			continue
		}
		bm, n, wrong := b.bytes(), uint32(0), 0
		for i := range s.groupBlocks(g) {
			blk := s.groupStart(g) + uint64(i)
			used := c.used[blk>>3]>>(blk&7)&1 != 0
			if used != bit(bm, i) {
				if wrong++; wrong <= 4 {
					c.bad("group %d: block %d is in use: %v; its bitmap says otherwise", g, blk, used)
				}
			}
			if !bit(bm, i) {
				n++
			}
		}
		if n != d.freeBlocks() {
			c.bad("group %d: %d blocks are free, its descriptor says %d", g, n, d.freeBlocks())
		}
		for i := s.groupBlocks(g); i < 8*s.blockSize; i++ {
			if !bit(bm, i) {
				c.bad("group %d: the bitmap is not padded", g)
				break
			}
		}
		ino := uint32(0)
		for i := range s.inodesPerGroup {
			if !bit(c.inodes, g*s.inodesPerGroup+i+1) {
				ino++
			}
		}
		if ino != d.freeInodes() {
			c.bad("group %d: %d inodes are free, its descriptor says %d", g, ino, d.freeInodes())
		}
		if c.dirs[g] != d.usedDirs() {
			c.bad("group %d: %d directories, its descriptor says %d", g, c.dirs[g], d.usedDirs())
		}
		free += uint64(n)
		freeIno += uint64(ino)
	}
	have := uint64(le.Uint32(s.raw[sbFreeBlocks:]))
	if s.incompat&incompat64bit != 0 {
		have |= uint64(le.Uint32(s.raw[sbFreeBlocksHi:])) << 32
	}
	if s.incompat&incompatRecover == 0 { // while mounted the counts stay behind
		if have != free {
			c.bad("%d blocks are free, the super block says %d", free, have)
		}
		if n := uint64(le.Uint32(s.raw[sbFreeInodes:])); n != freeIno {
			c.bad("%d inodes are free, the super block says %d", freeIno, n)
		}
	}
	return nil
}
