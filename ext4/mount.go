package ext4

import (
	"cmp"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"hardtack/abi/linux"
)

// Options are what a mount may choose; the zero value is Linux's defaults.
type Options struct {
	ReadOnly bool // nothing changes but what recovery writes
	// NoLoad reads the disk as it is: no recovery, and nothing is written. Only with ReadOnly.
	NoLoad bool
	// Discard tells the device of freed blocks.
	Discard bool
	// Now is the time in nanoseconds since 1970; nil is the machine's clock.
	Now func() int64
	// CacheBlocks is how many blocks of metadata are wanted in memory; 0 is 16384.
	CacheBlocks int
	// Background is given work that nobody waits for: writing home what the log
	// holds, when it is half full. It runs do once, at any time, without waiting for
	// it. nil: the call that found the log half full does it.
	Background func(do func())
	// Processors is how many may allocate at once without meeting, and Processor
	// tells which one the caller runs on: 0 … Processors-1. nil: there is one.
	Processors int
	Processor  func() int
}

// FS is a mounted file system. All its methods may be called from many goroutines.
type FS struct {
	dev      BlockDevice
	s        *super // immutable
	o        Options
	readOnly atomic.Bool
	cache    cache
	j        *journal // nil: read-only, or without one
	groups   []group
	zone     zone // of the layout and the journal; immutable once mounted

	free     atomic.Int64 // blocks that are free and not promised; see Reserve
	late     atomic.Int64 // blocks that Reserve promised and nobody has written yet
	freeIno  atomic.Int64
	superBuf *buffer

	inodesMu sync.Mutex
	loaded   sync.Cond         // some inode of inodes has been loaded
	inodes   map[uint32]*Inode // in use; guarded by inodesMu

	windows []window            // one a processor; see window.go
	aheadMu sync.Mutex          // before window.mu
	ahead   map[*Inode]struct{} // with a window of their own; guarded by aheadMu

	renameMu sync.Mutex // one directory changes its parent at a time
	orphanMu sync.Mutex // the list of orphans; see orphan.go
	orphans  []uint32   // newest last; guarded by orphanMu
}

// Mount opens the file system on dev. It first recovers a disk that was not unmounted: it
// replays the log and completes interrupted deletions and truncations.
func Mount(dev BlockDevice, o Options) (*FS, error) {
	if o.Now == nil {
		o.Now = func() int64 { return time.Now().UnixNano() }
	}
	if o.CacheBlocks == 0 {
		o.CacheBlocks = 16384
	}
	s, torn, err := readSuper(dev)
	if err != nil && !(torn && !o.NoLoad) {
		return nil, err
	}
	if err := s.writable(); err != nil && !o.ReadOnly {
		return nil, err
	}
	fs := &FS{dev: dev, s: s, o: o, inodes: map[uint32]*Inode{}, ahead: map[*Inode]struct{}{},
		windows: make([]window, max(o.Processors, 1))}
	fs.loaded.L = &fs.inodesMu
	fs.cache.init(fs, o.CacheBlocks)
	fs.readOnly.Store(true) // until all is well
	var l *logArea
	if s.compat&compatHasJournal != 0 && !o.NoLoad {
		var bad error
		if l, bad = fs.findLog(); bad == nil && l.dirty() {
			bad = l.recover(dev, s)
			torn = true // the log may have changed anything
		}
		if bad != nil {
			return nil, cmp.Or(err, bad)
		}
		if torn {
			// A crash while the super block was being written leaves half of
			// it; the log has it whole.
			if s, _, err = readSuper(dev); err != nil {
				return nil, err
			}
			if err := s.writable(); err != nil && !o.ReadOnly {
				return nil, err
			}
			fs.s = s
			fs.cache.init(fs, o.CacheBlocks)
			if l, err = fs.findLog(); err != nil {
				return nil, err
			}
		}
	}
	if err != nil {
		return nil, err
	}
	if err := fs.loadGroups(); err != nil {
		return nil, err
	}
	if err := fs.findZone(l); err != nil {
		return nil, err
	}
	if o.ReadOnly {
		return fs, nil
	}
	if l == nil {
		return nil, fmt.Errorf("the disk has no journal: %w", linux.EROFS)
	}
	if err := fs.openJournal(l); err != nil {
		return nil, err
	}
	if err := fs.replayOrphans(); err != nil {
		fs.j.abort(err)
		return nil, err
	}
	return fs, nil
}

// openJournal makes the file system writable.
func (fs *FS) openJournal(l *logArea) error {
	l.now = fs.o.Now
	b, err := fs.pin(fs.superBlock(), kindSuper, 0)
	if err != nil {
		return err
	}
	fs.superBuf = b
	if err := l.open(fs.dev, fs.s); err != nil {
		return err
	}
	j := &journal{fs: fs, log: *l, pending: map[uint64]homeless{}, nextID: 1,
		maxBlocks: int(l.length() / 4), fullAt: l.length() / 2,
		perRevoke: l.room(jHeader+4) / l.recordSize()}
	j.wake.L = &j.mu
	fs.j = j
	fs.readOnly.Store(false)
	noted := l.noted()
	return fs.writeSuper(false, func(raw []byte) {
		if noted {
			le.PutUint16(raw[sbState:], le.Uint16(raw[sbState:])|stateError)
			le.PutUint32(raw[sbErrorCount:], le.Uint32(raw[sbErrorCount:])+1)
			be.PutUint32(fs.j.log.super[jsErrno:], 0) // written once this is durable
		}
		le.PutUint32(raw[sbIncompat:], le.Uint32(raw[sbIncompat:])|incompatRecover)
		le.PutUint16(raw[sbMountCount:], le.Uint16(raw[sbMountCount:])+1)
		le.PutUint32(raw[sbMtime:], uint32(fs.o.Now()/1e9))
		le.PutUint16(raw[sbState:], le.Uint16(raw[sbState:])&^stateClean)
	})
}

// superBlock is the block that holds the super block.
func (fs *FS) superBlock() uint64 { return uint64(superOffset / fs.s.blockSize) }

// superBytes is the super block within its block.
func (fs *FS) superBytes(d []byte) []byte {
	off := superOffset % fs.s.blockSize
	return d[off : off+superSize]
}

// writeSuper changes the super block in its own transaction and writes it home. The flag
// that the log must be replayed has to be on disk before anything else is in the log, and
// gone once the log is empty for good. After a crash in between, the log itself says
// whether it must be replayed.
func (fs *FS) writeSuper(last bool, change func(raw []byte)) error {
	h, err := fs.beginAs(1, last)
	if err != nil {
		return err
	}
	b := fs.superBuf
	b.mu.Lock()
	raw := fs.superBytes(h.writeLocked(b))
	change(raw)
	b.mu.Unlock()
	h.end()
	if err := fs.j.commitAll(); err != nil {
		return err
	}
	return fs.j.checkpoint()
}

// readSuper reads and decodes the super block; see parseSuper.
func readSuper(dev BlockDevice) (s *super, torn bool, err error) {
	size := int64(dev.BlockSize())
	if dev.Size() < 2*superOffset+superSize {
		return nil, false, fmt.Errorf("a device of %d bytes holds no file system: %w", dev.Size(), linux.EINVAL)
	}
	// The super block is at 1 KiB, whatever the device's blocks are.
	n := max(size, superSize)
	from := superOffset / n * n
	d := make([]byte, n)
	if err := dev.ReadAt([]Transfer{{from, d}}); err != nil {
		return nil, false, ioError(err)
	}
	s, torn, err = parseSuper(d[superOffset-from:superOffset-from+superSize], dev.Size())
	if (err == nil || torn) && int(s.blockSize) < dev.BlockSize() {
		return nil, false, fmt.Errorf("blocks of %d bytes on a device that has %d: %w", s.blockSize, dev.BlockSize(), linux.EINVAL)
	}
	return s, torn, err
}

// findLog opens the journal's inode.
func (fs *FS) findLog() (*logArea, error) {
	if fs.s.journal == 0 {
		return nil, fmt.Errorf("a journal on another device is not supported: %w", linux.EOPNOTSUPP)
	}
	in, err := fs.loadInode(fs.s.journal)
	if err != nil {
		return nil, fmt.Errorf("journal: %w", err)
	}
	runs, err := fs.allRuns(in)
	if err != nil {
		return nil, fmt.Errorf("journal: %w", err)
	}
	return openLog(fs.dev, fs.s, runs)
}

// Sync makes all earlier changes durable.
func (fs *FS) Sync() error {
	if fs.j == nil {
		return nil
	}
	return fs.j.commitAll()
}

// ReadOnly reports whether the file system is read-only, by mount option or by an error.
func (fs *FS) ReadOnly() bool { return fs.readOnly.Load() }

// Unmount writes everything home and marks the disk clean. No other call may be in
// progress or follow. An error leaves the disk as a crash would: its log has what could
// not be written home, and the next mount replays it. The next mount also frees inodes
// without names that were still in use.
func (fs *FS) Unmount() error {
	j := fs.j
	if j == nil || j.ended() == errUnmounted {
		return nil
	}
	j.mu.Lock()
	j.closing = true
	j.mu.Unlock()
	if err := j.commitAll(); err != nil {
		return err
	}
	// The super block that calls the disk clean goes home with nothing else: a block
	// that cannot be written must be found by whoever replays the log.
	if err := j.checkpoint(); err != nil {
		return err
	}
	if err := fs.writeSuper(true, func(raw []byte) {
		fs.countInto(raw)
		le.PutUint32(raw[sbIncompat:], le.Uint32(raw[sbIncompat:])&^incompatRecover)
		le.PutUint32(raw[sbWtime:], uint32(fs.o.Now()/1e9))
		le.PutUint16(raw[sbState:], le.Uint16(raw[sbState:])&stateError|stateClean)
	}); err != nil {
		return err
	}
	j.homeMu.Lock()
	defer j.homeMu.Unlock()
	j.commitMu.Lock()
	defer j.commitMu.Unlock()
	if err := j.log.stop(fs.dev); err != nil {
		return j.abort(ioError(err))
	}
	j.abort(errUnmounted)
	return nil
}

// byteOf is the place of a block on the device.
func (fs *FS) byteOf(blk uint64) int64 { return int64(blk) << (10 + fs.s.logBlock) }

// BlockSize returns the size of a block in bytes.
func (fs *FS) BlockSize() int { return int(fs.s.blockSize) }

// Statfs fills in what statfs(2) shows.
func (fs *FS) Statfs(st *linux.Statfs) {
	st.Type, st.Bsize, st.Frsize = superMagic, int64(fs.s.blockSize), int64(fs.s.blockSize)
	var over uint64
	for g := range fs.s.groups {
		over += uint64(fs.s.overhead(g) + 2 + fs.s.inodeTableBlocks())
	}
	st.Blocks = fs.s.blocks - min(over, fs.s.blocks)
	st.Bfree = uint64(max(fs.free.Load(), 0))
	st.Bavail = st.Bfree - min(st.Bfree, fs.s.reservedBlocks+uint64(fs.margin()))
	st.Files, st.Ffree = uint64(fs.s.inodes), uint64(fs.freeIno.Load())
	st.Namelen = maxName
	st.Fsid = [2]int32{int32(le.Uint32(fs.s.raw[sbUUID:])), int32(le.Uint32(fs.s.raw[sbUUID+4:]))}
}
