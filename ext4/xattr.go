package ext4

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"hardtack/abi/linux"
)

// Extended attributes are in the inode, after its fields; those that do not fit are in one
// separate block. Either area has a magic number (in a block, a longer header), entries,
// four zero bytes, free space, and the values, which grow from the end backwards.
const (
	xaMagic    = 0xea020000
	xaHeader   = 32 // of a block
	xaRefs     = 4  // offsets in it
	xaBlocks   = 8
	xaHash     = 12
	xaChecksum = 16
	xaEntry    = 16
)

// xaPrefixes are the prefixes that the number in an entry stands for.
var xaPrefixes = []struct {
	index  uint8
	prefix string
}{
	{1, "user."}, {2, "system.posix_acl_access"}, {3, "system.posix_acl_default"}, {4, "trusted."},
	{6, "security."}, {8, "system.richacl"}, {7, "system."},
}

// xattr is one attribute.
type xattr struct {
	index uint8
	name  string // without the prefix
	value []byte
}

func (x xattr) entrySize() int { return (xaEntry + len(x.name) + 3) &^ 3 }
func (x xattr) size() int      { return x.entrySize() + (len(x.value)+3)&^3 }

func (x xattr) full() string {
	for _, p := range xaPrefixes {
		if p.index == x.index {
			return p.prefix + x.name
		}
	}
	return ""
}

func splitXattr(name string) (uint8, string, bool) {
	for _, p := range xaPrefixes {
		if rest, ok := strings.CutPrefix(name, p.prefix); ok && (rest != "") == strings.HasSuffix(p.prefix, ".") {
			return p.index, rest, len(rest) <= maxName
		}
	}
	return 0, "", false
}

// hash is an entry's: of name and value.
func (x xattr) hash() uint32 {
	h := uint32(0)
	for i := range len(x.name) {
		h = h<<5 ^ h>>27 ^ uint32(x.name[i])
	}
	v := x.value
	for len(v) > 0 {
		var w [4]byte
		v = v[copy(w[:], v):]
		h = h<<16 ^ h>>16 ^ le.Uint32(w[:])
	}
	return h
}

// parseXattrs decodes entries from offset at; values are relative to base.
func parseXattrs(area []byte, at, base int) ([]xattr, error) {
	var list []xattr
	for {
		if at+4 > len(area) {
			return nil, corrupt("attributes: no end")
		}
		if le.Uint32(area[at:]) == 0 {
			return list, nil
		}
		if at+xaEntry > len(area) {
			return nil, corrupt("attributes: an entry beyond the end")
		}
		e := area[at:]
		n, off, size := int(e[0]), int(le.Uint16(e[2:])), le.Uint32(e[8:])
		x := xattr{index: e[1]}
		if at+xaEntry+n > len(area) || base+off > len(area) || size > uint32(len(area)-base-off) {
			return nil, corrupt("attributes: a value of %d bytes at %d", size, off)
		}
		if le.Uint32(e[4:]) != 0 {
			return nil, fmt.Errorf("an attribute in an inode of its own: %w", linux.EOPNOTSUPP)
		}
		x.name = string(e[xaEntry : xaEntry+n])
		x.value = slices.Clone(area[base+off : base+off+int(size)])
		list = append(list, x)
		at += x.entrySize()
	}
}

// buildXattrs encodes entries from offset at of a zeroed area.
func buildXattrs(area []byte, at, base int, list []xattr) {
	slices.SortFunc(list, func(a, b xattr) int {
		return cmp.Or(cmp.Compare(a.index, b.index), cmp.Compare(len(a.name), len(b.name)), cmp.Compare(a.name, b.name))
	})
	end := len(area)
	for _, x := range list {
		e := area[at:]
		e[0], e[1] = byte(len(x.name)), x.index
		if len(x.value) > 0 {
			end -= (len(x.value) + 3) &^ 3
			copy(area[end:], x.value)
			le.PutUint16(e[2:], uint16(end-base))
		}
		le.PutUint32(e[8:], uint32(len(x.value)))
		le.PutUint32(e[12:], x.hash())
		copy(e[xaEntry:], x.name)
		at += x.entrySize()
	}
}

// bodyArea is the space for attributes in the inode, nil if there is none.
func (in *Inode) bodyArea() []byte {
	if len(in.raw) <= 128 {
		return nil
	}
	if at := 128 + int(in.u16(inExtra)); at+8 <= len(in.raw) {
		return in.raw[at:]
	}
	return nil
}

// xattrs reads all attributes; in.mu is held.
func (in *Inode) xattrs() ([]xattr, error) {
	var list []xattr
	if a := in.bodyArea(); a != nil && le.Uint32(a) == xaMagic {
		var err error
		if list, err = parseXattrs(a, 4, 4); err != nil {
			return nil, in.blame(err)
		}
	}
	if in.fileACL() == 0 {
		return list, nil
	}
	b, err := in.xattrBlock()
	if err != nil {
		return nil, err
	}
	b.mu.Lock() // other files may have the block, too
	more, err := parseXattrs(b.data, xaHeader, 0)
	b.mu.Unlock()
	if err != nil {
		return nil, in.blame(err)
	}
	return append(list, more...), nil
}

func (in *Inode) xattrBlock() (*buffer, error) {
	blk := in.fileACL()
	b, _, err := in.fs.checked(blk, kindXattr, 0, func(d []byte) error {
		if le.Uint32(d) != xaMagic || le.Uint32(d[xaBlocks:]) != 1 || le.Uint32(d[xaRefs:]) == 0 {
			return corrupt("attributes: bad header")
		}
		if in.fs.s.metadataCsum && in.fs.s.xattrSum(blk, d) != le.Uint32(d[xaChecksum:]) {
			return corrupt("attributes: bad checksum")
		}
		return nil
	})
	if err != nil {
		return nil, in.blame(err)
	}
	return b, nil
}

func (s *super) xattrSum(blk uint64, d []byte) uint32 {
	var n [8]byte
	le.PutUint64(n[:], blk)
	c := crc32c(crc32c(s.csumSeed, n[:]), d[:xaChecksum])
	c = crc32c32(c, 0)
	return crc32c(c, d[xaChecksum+4:])
}

// Getxattr returns an attribute's value, ENODATA if there is none.
func (fs *FS) Getxattr(in *Inode, name string) ([]byte, error) {
	index, rest, ok := splitXattr(name)
	if !ok {
		return nil, linux.EOPNOTSUPP
	}
	in.mu.RLock()
	defer in.mu.RUnlock()
	list, err := in.xattrs()
	if err != nil {
		return nil, err
	}
	for _, x := range list {
		if x.index == index && x.name == rest {
			if isACL(index) {
				return aclFromDisk(x.value)
			}
			return x.value, nil
		}
	}
	return nil, linux.ENODATA
}

// Listxattr returns the names of all attributes, sorted.
func (fs *FS) Listxattr(in *Inode) ([]string, error) {
	in.mu.RLock()
	defer in.mu.RUnlock()
	list, err := in.xattrs()
	if err != nil {
		return nil, err
	}
	var names []string
	for _, x := range list {
		if n := x.full(); n != "" {
			names = append(names, n)
		}
	}
	slices.Sort(names)
	return names, nil
}

// Setxattr sets an attribute; flags are XATTR_CREATE and XATTR_REPLACE. ENOSPC if
// it does not fit into the inode and one block. A nil value removes it: ENODATA if
// it is not there.
func (fs *FS) Setxattr(in *Inode, name string, value []byte, flags uint32) error {
	index, rest, ok := splitXattr(name)
	if !ok {
		return linux.EOPNOTSUPP
	}
	if isACL(index) && value != nil {
		var err error
		if value, err = aclToDisk(value); err != nil {
			return err
		}
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	list, err := in.xattrs()
	if err != nil {
		return err
	}
	i := slices.IndexFunc(list, func(x xattr) bool { return x.index == index && x.name == rest })
	switch {
	case i >= 0 && flags&linux.XATTR_CREATE != 0:
		return linux.EEXIST
	case i < 0 && (flags&linux.XATTR_REPLACE != 0 || value == nil):
		return linux.ENODATA
	case value == nil:
		list = slices.Delete(list, i, i+1)
	case i >= 0:
		list[i].value = value
	default:
		list = append(list, xattr{index, rest, value})
	}
	return fs.storeXattrs(in, list)
}

// Removexattr removes an attribute.
func (fs *FS) Removexattr(in *Inode, name string) error { return fs.Setxattr(in, name, nil, 0) }

// storeXattrs rewrites all attributes: as many as fit into the inode, the others into the
// block.
func (fs *FS) storeXattrs(in *Inode, list []xattr) error {
	area := in.bodyArea()
	var body, block []xattr
	room, blockRoom := len(area)-8, int(fs.s.blockSize)-xaHeader-4
	for _, x := range list {
		if x.size() <= room {
			body, room = append(body, x), room-x.size()
		} else {
			block, blockRoom = append(block, x), blockRoom-x.size()
		}
	}
	if blockRoom < 0 {
		return linux.ENOSPC
	}
	promised := int64(min(len(block), 1))
	if promised > 0 {
		if err := fs.promiseAbove(promised, fs.keep(fs.margin()/2, fs.late.Load())); err != nil {
			return err
		}
	}
	var free account
	free.open(fs, promised)
	free.watch(in)
	defer free.settle()
	h, err := fs.begin(2*markCredits + 3)
	if err != nil {
		return err
	}
	defer h.end()
	if err := fs.putXattrBlock(h, in, block); err != nil {
		return fs.fail(err)
	}
	if area != nil {
		clear(area)
		if len(body) > 0 {
			le.PutUint32(area, xaMagic)
			buildXattrs(area, 4, 4, body)
		}
	}
	in.touch(h.now, false)
	return fs.fail(in.store(h))
}

// putXattrBlock writes the block of attributes, or drops it if none are left. A block
// shared with other inodes, as Linux makes them, is left unchanged.
func (fs *FS) putXattrBlock(h *handle, in *Inode, list []xattr) error {
	var b *buffer
	if in.fileACL() != 0 {
		var err error
		if b, err = in.xattrBlock(); err != nil {
			return err
		}
		if len(list) == 0 || le.Uint32(b.bytes()[xaRefs:]) > 1 {
			if err := fs.dropXattrs(h, in); err != nil {
				return err
			}
			b = nil
		}
	}
	if len(list) == 0 {
		return nil
	}
	if b == nil {
		var err error
		if b, err = fs.newMeta(h, in, in.homeGoal(), kindXattr); err != nil {
			return err
		}
		in.setFileACL(b.blk)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	d := h.writeLocked(b)
	clear(d)
	le.PutUint32(d, xaMagic)
	le.PutUint32(d[xaRefs:], 1)
	le.PutUint32(d[xaBlocks:], 1)
	buildXattrs(d, xaHeader, 0, list)
	sum := uint32(0)
	for _, x := range list {
		sum = sum<<16 ^ sum>>16 ^ x.hash()
	}
	le.PutUint32(d[xaHash:], sum)
	return nil
}

// dropXattrs drops an inode's reference to its block of attributes.
func (fs *FS) dropXattrs(h *handle, in *Inode) error {
	if in.fileACL() == 0 {
		return nil
	}
	b, err := in.xattrBlock()
	if err != nil {
		return err
	}
	blk := in.fileACL()
	in.setFileACL(0)
	b.mu.Lock()
	refs := le.Uint32(b.data[xaRefs:])
	if refs > 1 {
		d := h.writeLocked(b)
		le.PutUint32(d[xaRefs:], refs-1)
		b.mu.Unlock()
		in.addBlocks(-1)
		return nil
	}
	b.mu.Unlock()
	return fs.freeMeta(h, in, blk, kindXattr, 0)
}
