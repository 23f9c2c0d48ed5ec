package ext4

import (
	"sync"
	"sync/atomic"

	"hardtack/abi/linux"
)

// Inode on disk: offsets of fields.
const (
	inMode       = 0
	inUID        = 2
	inSize       = 4
	inAtime      = 8
	inCtime      = 12
	inMtime      = 16
	inDtime      = 20 // time of deletion; of an orphan, the next one's number
	inGID        = 24
	inLinks      = 26
	inBlocks     = 28
	inFlags      = 32
	inBlock      = 40 // 60 bytes: extent root, short symbolic link, device number
	inGeneration = 100
	inFileACL    = 104
	inSizeHi     = 108
	inBlocksHi   = 116 // 16 bits
	inFileACLHi  = 118 // 16 bits
	inUIDHi      = 120
	inGIDHi      = 122
	inCsum       = 124 // 16 bits
	inExtra      = 128 // 16 bits: bytes in use beyond 128
	inCsumHi     = 130
	inCtimeX     = 132
	inMtimeX     = 136
	inAtimeX     = 140
	inCrtime     = 144
	inCrtimeX    = 148

	inBlockLen = 60

	flagSync      = 0x8
	flagImmutable = 0x10
	flagAppend    = 0x20
	flagIndex     = 0x1000 // a directory with a hash tree
	flagHuge      = 0x40000
	flagExtents   = 0x80000
	flagEAInode   = 0x200000
	flagInline    = 0x10000000

	maxLinks = 65000
)

// Inode is a file in use. Attributes and content are guarded by mu: readers
// hold it shared, whoever changes anything exclusively.
type Inode struct {
	fs   *FS
	ino  uint32 // immutable
	seed uint32 // of checksums; immutable
	blk  uint64 // where it is in the inode table; immutable
	off  int    // in bytes, immutable
	rec  uint32 // in inodes, immutable

	mu  sync.RWMutex
	raw []byte    // as on disk, but for checksums, and inDtime while it is an orphan; guarded by mu
	buf [256]byte // where raw mostly lies

	refs    int           // guarded by FS.inodesMu
	loading bool          // guarded by FS.inodesMu
	err     error         // how loading ended; immutable then
	tx      atomic.Uint32 // the last transaction that changed it
	dataTx  atomic.Uint32 // the same, without changes of times alone
	over    atomic.Uint64 // the flush that covers what was written in place last, see flushCount
	orphan  atomic.Bool   // on the list of orphans; changed under FS.orphanMu
	next    atomic.Uint32 // the next orphan; changed with the table's buffer.mu held
	goal    uint64        // where the last block was allocated; guarded by mu
	ahead   window        // free blocks behind its end
	listed  atomic.Bool   // in FS.ahead, under whose lock it changes
	rootOK  atomic.Bool   // the root of the tree of extents was looked at
}

// Ino returns the inode's number.
func (in *Inode) Ino() uint32 { return in.ino }

func (in *Inode) u16(off int) uint16      { return le.Uint16(in.raw[off:]) }
func (in *Inode) u32(off int) uint32      { return le.Uint32(in.raw[off:]) }
func (in *Inode) put16(off int, v uint16) { le.PutUint16(in.raw[off:], v) }
func (in *Inode) put32(off int, v uint32) { le.PutUint32(in.raw[off:], v) }
func (in *Inode) mode() uint32            { return uint32(in.u16(inMode)) }
func (in *Inode) isDir() bool             { return in.mode()&linux.S_IFMT == linux.S_IFDIR }
func (in *Inode) isReg() bool             { return in.mode()&linux.S_IFMT == linux.S_IFREG }
func (in *Inode) links() uint32           { return uint32(in.u16(inLinks)) }
func (in *Inode) flags() uint32           { return in.u32(inFlags) }
func (in *Inode) size() int64             { return int64(uint64(in.u32(inSizeHi))<<32 | uint64(in.u32(inSize))) }
func (in *Inode) fileACL() uint64         { return uint64(in.u16(inFileACLHi))<<32 | uint64(in.u32(inFileACL)) }
func (in *Inode) has(off int) bool        { return len(in.raw) > 128 && off+4 <= 128+int(in.u16(inExtra)) }
func (in *Inode) set(off int, b bool, f uint32) {
	if b {
		in.put32(off, in.u32(off)|f)
	} else {
		in.put32(off, in.u32(off)&^f)
	}
}

func (in *Inode) setSize(n int64) {
	in.put32(inSize, uint32(n))
	in.put32(inSizeHi, uint32(n>>32))
}

func (in *Inode) setFileACL(blk uint64) {
	in.put32(inFileACL, uint32(blk))
	in.put16(inFileACLHi, uint16(blk>>32))
}

// blocks is the space taken, in units of 512 bytes.
func (in *Inode) blocks() uint64 {
	n := uint64(in.u32(inBlocks)) | uint64(in.u16(inBlocksHi))<<32
	if in.flags()&flagHuge != 0 {
		n <<= in.fs.s.logBlock + 1
	}
	return n
}

// addBlocks counts n more blocks of the file system.
func (in *Inode) addBlocks(n int64) {
	v := in.blocks() + uint64(n<<(in.fs.s.logBlock+1))
	if n < 0 && v > in.blocks() {
		v = 0 // a damaged count
	}
	huge := v >= 1<<48
	if huge {
		v >>= in.fs.s.logBlock + 1
	}
	in.set(inFlags, huge, flagHuge)
	in.put32(inBlocks, uint32(v))
	in.put16(inBlocksHi, uint16(v>>32))
}

// time decodes a time, nanoseconds since 1970.
func (in *Inode) time(off, extra int) int64 {
	s := int64(int32(in.u32(off)))
	if !in.has(extra) {
		return s * 1e9
	}
	x := in.u32(extra)
	s += int64(x&3) << 32
	return s*1e9 + int64(x>>2)%1e9
}

func (in *Inode) setTime(off, extra int, ns int64) {
	in.putTime(off, extra, stampOf(ns))
}

// stamp is a time as inodes have it.
type stamp struct {
	sec   int64
	extra uint32 // nanoseconds, and two more bits of seconds
	short uint32 // seconds where there is no extra field
}

// Clamp returns the time nearest to ns, nanoseconds since 1970, that an inode can hold.
func Clamp(ns int64) int64 { return max(ns, -1e9<<31) }

func stampOf(ns int64) stamp {
	s, n := ns/1e9, ns%1e9
	if n < 0 {
		s, n = s-1, n+1e9
	}
	t := stamp{sec: max(-1<<31, min(s, 1<<34-1<<31-1)), short: uint32(max(-1<<31, min(s, 1<<31-1)))}
	t.extra = uint32(n)<<2 | uint32((t.sec-int64(int32(t.sec)))>>32)&3
	return t
}

func (in *Inode) putTime(off, extra int, t stamp) {
	if in.has(extra) {
		in.put32(extra, t.extra)
		in.put32(off, uint32(t.sec))
	} else {
		in.put32(off, t.short)
	}
}

// touch sets the times of change, and of modification if the content changed.
func (in *Inode) touch(now int64, content bool) {
	t := stampOf(now)
	in.putTime(inCtime, inCtimeX, t)
	if content {
		in.putTime(inMtime, inMtimeX, t)
	}
}

// inodeSeed begins the checksums of an inode and of what it owns.
func (s *super) inodeSeed(ino, generation uint32) uint32 {
	return crc32c32(crc32c32(s.csumSeed, ino), generation)
}

// inodeChecksum is the checksum of a raw inode.
func (s *super) inodeChecksum(ino uint32, raw []byte) uint32 {
	c := s.inodeSeed(ino, le.Uint32(raw[inGeneration:]))
	c = crc32c(c, raw[:inCsum])
	c = crc32cZeros(c, 2)
	c = crc32c(c, raw[inCsum+2:128])
	if len(raw) > 128 {
		c = crc32c(c, raw[128:inCsumHi])
		if le.Uint16(raw[inExtra:]) >= 4 {
			c = crc32cZeros(c, 2)
			c = crc32c(c, raw[inCsumHi+2:])
		} else {
			c = crc32c(c, raw[inCsumHi:])
		}
	}
	return c
}

func hasCsumHi(raw []byte) bool { return len(raw) > 128 && le.Uint16(raw[inExtra:]) >= 4 }

func (s *super) sealInode(ino uint32, raw []byte) {
	if !s.metadataCsum {
		return
	}
	c := s.inodeChecksum(ino, raw)
	le.PutUint16(raw[inCsum:], uint16(c))
	if hasCsumHi(raw) {
		le.PutUint16(raw[inCsumHi:], uint16(c>>16))
	}
}

func (s *super) inodeOK(ino uint32, raw []byte) bool {
	if !s.metadataCsum || allZero(raw) { // never written
		return true
	}
	c, have := s.inodeChecksum(ino, raw), uint32(le.Uint16(raw[inCsum:]))
	if hasCsumHi(raw) {
		have |= uint32(le.Uint16(raw[inCsumHi:])) << 16
	} else {
		c &= 0xffff
	}
	return c == have
}

func allZero(p []byte) bool {
	for _, c := range p {
		if c != 0 {
			return false
		}
	}
	return true
}

// owner tells the blocks of metadata that are the inode's own from those of others:
// its number and, in the lower half, the seed of their checksums.
func (in *Inode) owner() uint64 { return uint64(in.ino)<<32 | uint64(in.seed) }

// inodePlace is where an inode is in the tables.
func (fs *FS) inodePlace(ino uint32) (blk uint64, off int, err error) {
	if ino == 0 || ino > fs.s.inodes {
		return 0, 0, corrupt("inode %d of %d", ino, fs.s.inodes)
	}
	g, i := (ino-1)/fs.s.inodesPerGroup, (ino-1)%fs.s.inodesPerGroup
	per := fs.s.blockSize / fs.s.inodeSize
	table, err := fs.inodeTable(g)
	return table + uint64(i/per), int(i % per * fs.s.inodeSize), err
}

// loadInode reads an inode without entering it among those in use.
func (fs *FS) loadInode(ino uint32) (*Inode, error) {
	blk, off, err := fs.inodePlace(ino)
	if err != nil {
		return nil, err
	}
	in := fs.makeInode(ino, blk, off)
	return in, in.load()
}

// makeInode makes the object, with one reference.
func (fs *FS) makeInode(ino uint32, blk uint64, off int) *Inode {
	in := &Inode{fs: fs, ino: ino, blk: blk, off: off, rec: uint32(off) / fs.s.inodeSize, refs: 1}
	if in.raw = in.buf[:]; fs.s.inodeSize <= uint32(len(in.buf)) {
		in.raw = in.buf[:fs.s.inodeSize]
	} else {
		in.raw = make([]byte, fs.s.inodeSize)
	}
	return in
}

// anyBytes accepts a block of inodes: each is checked when it is loaded.
func anyBytes([]byte) error { return nil }

// tableBlock returns the block where an inode lies, and its place among others there.
func (fs *FS) tableBlock(ino uint32, blk uint64, off int) (b *buffer, rec uint32, err error) {
	rec = uint32(off) / fs.s.inodeSize
	b, _, err = fs.checked(blk, kindTable, uint64(ino-rec), anyBytes)
	return b, rec, err
}

func (in *Inode) load() error {
	fs := in.fs
	b, _, err := fs.tableBlock(in.ino, in.blk, in.off)
	if err != nil {
		return err
	}
	b.mu.Lock()
	copy(in.raw, b.data[in.off:])
	good := b.good>>in.rec&1 != 0
	if j := fs.j; j != nil {
		// It may have been changed and forgotten: fsync must still wait.
		var id uint32
		if b.tx != nil {
			id = b.tx.id
		} else if b.shared {
			id = j.previous()
		}
		in.tx.Store(id)
		in.dataTx.Store(id)
	}
	if !good && fs.s.inodeOK(in.ino, in.raw) {
		b.good |= 1 << in.rec
		good = true
	}
	b.mu.Unlock()
	if !good {
		return corrupt("inode %d: bad checksum", in.ino)
	}
	in.seed = fs.s.inodeSeed(in.ino, in.u32(inGeneration))
	if len(in.raw) > 128 && (int(in.u16(inExtra))+128 > len(in.raw) || in.u16(inExtra)%4 != 0) {
		return corrupt("inode %d: %d extra bytes", in.ino, in.u16(inExtra))
	}
	if in.size() < 0 {
		return corrupt("inode %d: size %d", in.ino, in.size())
	}
	switch blocks := uint64(in.size()) >> (10 + fs.s.logBlock); {
	case blocks > maxFileBlocks, in.isDir() && blocks > fs.s.blocks:
		return corrupt("inode %d: size %d", in.ino, in.size())
	}
	in.next.Store(in.u32(inDtime))
	return nil
}

// Get returns inode ino, which must be in use on disk, with a reference. Only
// numbers that came from Lookup, Root and file handles make sense: ENOENT for a
// free inode.
func (fs *FS) Get(ino uint32) (*Inode, error) {
	in, err := fs.get(ino)
	if err != nil {
		return nil, err
	}
	if in.refsToNothing() {
		fs.Put(in)
		return nil, linux.ENOENT
	}
	if mode := in.Mode(); fileType(mode) == ftUnknown {
		fs.Put(in)
		return nil, corrupt("inode %d: mode %#o is no type of file", ino, mode)
	}
	return in, nil
}

func (in *Inode) refsToNothing() bool {
	in.mu.RLock()
	defer in.mu.RUnlock()
	return in.links() == 0 && !in.orphan.Load()
}

// get is Get for free inodes too.
func (fs *FS) get(ino uint32) (*Inode, error) {
	fs.inodesMu.Lock()
	in := fs.inodes[ino]
	if in == nil {
		blk, off, err := fs.inodePlace(ino)
		if err != nil {
			fs.inodesMu.Unlock()
			return nil, err
		}
		in = fs.makeInode(ino, blk, off)
		in.loading = true
		fs.inodes[ino] = in
		fs.inodesMu.Unlock()
		err = in.load()
		fs.inodesMu.Lock()
		in.err, in.loading = err, false
		fs.inodesMu.Unlock()
		fs.loaded.Broadcast()
	} else {
		for in.refs++; in.loading; {
			fs.loaded.Wait()
		}
		fs.inodesMu.Unlock()
	}
	if in.err != nil {
		fs.unref(in)
		return nil, in.err
	}
	return in, nil
}

// unref drops a reference without looking at what the file is.
func (fs *FS) unref(in *Inode) {
	fs.inodesMu.Lock()
	in.refs--
	last := in.refs == 0
	if last {
		delete(fs.inodes, in.ino)
	}
	fs.inodesMu.Unlock()
	if last {
		fs.forgetAhead(in)
	}
}

// Hold takes another reference to an inode in use.
func (fs *FS) Hold(in *Inode) {
	fs.inodesMu.Lock()
	in.refs++
	fs.inodesMu.Unlock()
}

// Put drops a reference. With the last one, a file without names goes: its
// blocks and its inode become free. An error leaves that to the next mount.
func (fs *FS) Put(in *Inode) error {
	fs.inodesMu.Lock()
	last := in.refs == 1
	if !last || !in.orphan.Load() {
		if in.refs--; last {
			delete(fs.inodes, in.ino)
		}
		fs.inodesMu.Unlock()
		if last {
			fs.forgetAhead(in)
		}
		return nil
	}
	fs.inodesMu.Unlock()
	// Nobody can find it any more: it has no name. The reference keeps the
	// number from being given out until the inode is free on disk.
	var err error
	if in.links() == 0 && !fs.readOnly.Load() {
		err = fs.destroy(in)
	}
	fs.unref(in)
	return err
}

// store makes the inode's present attributes part of the handle's transaction.
func (in *Inode) store(h *handle) error {
	fs := in.fs
	b, rec, err := fs.tableBlock(in.ino, in.blk, in.off)
	if err != nil {
		return err
	}
	b.mu.Lock()
	d := h.writeRecord(b, rec)
	if in.orphan.Load() {
		in.put32(inDtime, in.next.Load())
	}
	copy(d[in.off:], in.raw)
	b.good |= 1 << rec
	b.mu.Unlock()
	in.tx.Store(h.id())
	in.dataTx.Store(h.id())
	return nil
}

// storeTimes is store where fdatasync need not care.
func (in *Inode) storeTimes(h *handle) error {
	keep := in.dataTx.Load()
	err := in.store(h)
	in.dataTx.Store(keep)
	return err
}

// Stat fills a struct stat; Dev is the caller's.
func (in *Inode) Stat(st *linux.Stat) {
	in.mu.RLock()
	defer in.mu.RUnlock()
	st.Ino, st.Nlink, st.Mode = uint64(in.ino), uint64(in.links()), in.mode()
	st.UID, st.GID = in.uid(), in.gid()
	st.Size, st.Blksize, st.Blocks = in.size(), int64(in.fs.s.blockSize), int64(in.blocks())
	st.Rdev = in.rdev()
	at, mt, ct := in.time(inAtime, inAtimeX), in.time(inMtime, inMtimeX), in.time(inCtime, inCtimeX)
	st.Atime, st.Mtime, st.Ctime = timespec(at), timespec(mt), timespec(ct)
}

func timespec(ns int64) linux.Timespec {
	s, n := ns/1e9, ns%1e9
	if n < 0 {
		s, n = s-1, n+1e9
	}
	return linux.Timespec{Sec: s, Nsec: n}
}

// Btime is the time of creation, nanoseconds since 1970; 0 on disks with small inodes.
func (in *Inode) Btime() int64 {
	in.mu.RLock()
	defer in.mu.RUnlock()
	if !in.has(inCrtime) {
		return 0
	}
	return in.time(inCrtime, inCrtimeX)
}

// Size returns the length in bytes.
func (in *Inode) Size() int64 {
	in.mu.RLock()
	defer in.mu.RUnlock()
	return in.size()
}

// Mode returns type and permissions.
func (in *Inode) Mode() uint32 {
	in.mu.RLock()
	defer in.mu.RUnlock()
	return in.mode()
}

func (in *Inode) uid() uint32 { return uint32(in.u16(inUID)) | uint32(in.u16(inUIDHi))<<16 }
func (in *Inode) gid() uint32 { return uint32(in.u16(inGID)) | uint32(in.u16(inGIDHi))<<16 }

func (in *Inode) setOwner(uid, gid uint32) {
	in.put16(inUID, uint16(uid))
	in.put16(inUIDHi, uint16(uid>>16))
	in.put16(inGID, uint16(gid))
	in.put16(inGIDHi, uint16(gid>>16))
}

// rdev is a device node's number: the old form of 16 bits or the new one of 32.
func (in *Inode) rdev() uint64 {
	switch in.mode() & linux.S_IFMT {
	case linux.S_IFCHR, linux.S_IFBLK:
	default:
		return 0
	}
	if v := in.u32(inBlock); v != 0 {
		return linux.Makedev(v>>8&0xff, v&0xff)
	}
	v := in.u32(inBlock + 4)
	return linux.Makedev(v>>8&0xfff, v&0xff|v>>12&0xfff00)
}

func (in *Inode) setRdev(dev uint64) {
	major, minor := uint32(dev>>8&0xfff|dev>>32&^0xfff), uint32(dev&0xff|dev>>12&^0xff)
	if major < 256 && minor < 256 {
		in.put32(inBlock, major<<8|minor)
	} else {
		in.put32(inBlock+4, minor&0xff|major<<8|minor&^0xff<<12)
	}
}

// Attr is a change of attributes; a nil field stays. Times are nanoseconds since 1970.
type Attr struct {
	Mode, UID, GID      *uint32 // Mode: permissions only
	Atime, Mtime, Ctime *int64
}

// SetAttr changes attributes.
func (fs *FS) SetAttr(in *Inode, a Attr) error {
	in.mu.Lock()
	defer in.mu.Unlock()
	h, err := fs.begin(1)
	if err != nil {
		return err
	}
	defer h.end()
	if a.Mode != nil {
		in.put16(inMode, in.u16(inMode)&linux.S_IFMT|uint16(*a.Mode&0o7777))
	}
	uid, gid := in.uid(), in.gid()
	if a.UID != nil {
		uid = *a.UID
	}
	if a.GID != nil {
		gid = *a.GID
	}
	in.setOwner(uid, gid)
	if a.Atime != nil {
		in.setTime(inAtime, inAtimeX, *a.Atime)
	}
	if a.Mtime != nil {
		in.setTime(inMtime, inMtimeX, *a.Mtime)
	}
	if a.Ctime != nil {
		in.setTime(inCtime, inCtimeX, *a.Ctime)
	} else {
		in.touch(h.now, false)
	}
	return in.store(h)
}
