package ext4

import (
	"fmt"
	"sync"

	"hardtack/abi/linux"
)

// transaction is a set of changed blocks that reach the disk together or not at all.
// Everything is guarded by journal.mu.
type transaction struct {
	id      uint32
	buffers []*buffer
	revokes map[uint64]struct{} // freed metadata: older copies in the log are void
	freed   []run               // blocks that may be used again after the commit
	handles int                 // open
	credits int                 // blocks that open handles may still add
	locked  bool                // about to commit: no new handles
}

// run is n blocks from blk.
type run struct{ blk, n uint64 }

// journal is the log of a mounted file system: see the package comment.
//
// Locks: homeMu (whoever checkpoints), commitMu (whoever commits), then buffer.mu,
// then mu.
type journal struct {
	fs *FS

	homeMu sync.Mutex
	sorted []homeless // scratch of a checkpoint; guarded by homeMu

	flushes  flushCount // of commits
	together gathering
	commitMu sync.Mutex
	log      logArea             // guarded by commitMu; its super block by homeMu
	pending  map[uint64]homeless // committed and not home; guarded by commitMu
	goingTo  bool                // a checkpoint is writing; guarded by commitMu
	asked    bool                // for one that has not begun; guarded by commitMu
	held     []run               // freed meanwhile: a write to them may be on its way; guarded by commitMu
	scratch  commitScratch       // guarded by commitMu

	mu        sync.Mutex
	wake      sync.Cond    // running changed, or its handles did
	running   *transaction // nil: none open
	nextID    uint32
	committed uint32 // the last transaction that is durable
	err       error  // what ended the journal; nothing changes any more
	closing   bool   // an unmount is under way: nothing new begins
	idle      []*handle
	idleTx    *transaction
	spare     [][]byte // blocks that nothing points to any more
	maxBlocks int      // of one transaction; immutable
	fullAt    uint32   // blocks in use from which on the log is emptied; immutable
	perRevoke int      // revoke records a block; immutable
}

// handle is the right to change up to some number of blocks within the running
// transaction: one file system operation. After a crash either all changes between begin
// and end are there or none. While a handle is open, its owner must not lock an inode or
// wait for a commit.
type handle struct {
	fs      *FS
	tx      *transaction
	credits int
	now     int64 // the operation's time, nanoseconds since 1970
}

// begin opens a handle for at most credits changed blocks. It may wait for a commit.
func (fs *FS) begin(credits int) (*handle, error) { return fs.beginAs(credits, false) }

// beginAs is begin; last is the unmount's own change.
func (fs *FS) beginAs(credits int, last bool) (*handle, error) {
	if fs.readOnly.Load() { // first: Remount sets j while it is
		return nil, linux.EROFS
	}
	j := fs.j
	now := fs.o.Now()
	j.mu.Lock()
	for {
		if j.err != nil {
			j.mu.Unlock()
			return nil, fmt.Errorf("%v: %w", j.err, linux.EROFS)
		}
		if j.closing && !last {
			j.mu.Unlock()
			return nil, linux.EROFS
		}
		tx := j.running
		if tx == nil {
			tx = j.newTransaction()
		}
		switch {
		case tx.locked:
			j.wake.Wait()
		case j.size(tx, credits) <= j.maxBlocks:
			tx.handles++
			tx.credits += credits
			h := j.newHandle()
			*h = handle{fs, tx, credits, now}
			j.mu.Unlock()
			return h, nil
		case j.size(tx, 0) == 0: // no operation of a sound file system needs as many
			j.mu.Unlock()
			return nil, corrupt("a change of %d blocks in a journal that takes %d", credits, j.maxBlocks)
		default:
			id := tx.id
			j.mu.Unlock()
			if err := j.commit(id); err != nil {
				return nil, err
			}
			j.mu.Lock()
		}
	}
}

// newTransaction opens the next one; mu is held.
func (j *journal) newTransaction() *transaction {
	tx := j.idleTx
	if j.idleTx = nil; tx == nil {
		tx = &transaction{revokes: map[uint64]struct{}{}}
	}
	tx.id = j.nextID
	j.nextID++
	j.running = tx
	return tx
}

// newHandle returns one that is not in use; mu is held.
func (j *journal) newHandle() *handle {
	if n := len(j.idle); n > 0 {
		h := j.idle[n-1]
		j.idle = j.idle[:n-1]
		return h
	}
	return &handle{}
}

// size is the number of blocks that tx may take in the log, with more added to
// it: contents, descriptors (at least 32 tags each), revoke blocks and the commit block.
func (j *journal) size(tx *transaction, more int) int {
	n := len(tx.buffers) + tx.credits + more
	if n == 0 && len(tx.revokes) == 0 {
		return 0
	}
	return n + n/32 + 1 + len(tx.revokes)/j.perRevoke + 1 + 1
}

// extend asks for more credits without waiting. If it returns false the caller must reach
// a consistent point, end the handle and begin another.
func (h *handle) extend(credits int) bool {
	j := h.fs.j
	j.mu.Lock()
	defer j.mu.Unlock()
	if h.tx.locked || j.err != nil || j.size(h.tx, credits) > j.maxBlocks {
		return false
	}
	h.tx.credits += credits
	h.credits += credits
	return true
}

// end closes the handle, which must not be used after.
func (h *handle) end() {
	j := h.fs.j
	j.mu.Lock()
	tx := h.tx
	tx.credits -= h.credits
	if tx.handles--; tx.handles == 0 && tx.locked {
		j.wake.Broadcast()
	}
	h.tx = nil
	j.idle = append(j.idle, h)
	j.mu.Unlock()
}

// strictCredits makes a handle that changes more than it asked for panic; set
// by tests. Without it the transaction grows into the reserve that the log has,
// since a transaction is at most a quarter of it.
var strictCredits bool

// write makes the block part of the transaction and returns its bytes, which may
// be changed until the handle ends. Its checksum is stored at the commit.
func (h *handle) write(b *buffer) []byte {
	b.mu.Lock()
	d := h.writeLocked(b)
	b.mu.Unlock()
	return d
}

// writeLocked is write with b.mu held. Of a block of records (inodes, descriptors)
// the caller says which one changes, by writeRecord.
func (h *handle) writeLocked(b *buffer) []byte {
	if b.tx != h.tx {
		b.tx = h.tx
		j := h.fs.j
		j.mu.Lock()
		h.tx.buffers = append(h.tx.buffers, b)
		if h.credits > 0 {
			h.credits--
			h.tx.credits--
		} else if strictCredits {
			j.mu.Unlock()
			panic("ext4: a handle changed more blocks than it asked for")
		}
		j.mu.Unlock()
	}
	if b.shared {
		old := b.data
		b.data = h.fs.j.block()
		copy(b.data, old)
		b.shared = false
	}
	if b.kind != kindTable && b.kind != kindDesc {
		b.stale[0] |= 1
	}
	return b.data
}

// writeRecord is writeLocked for record i of a block.
func (h *handle) writeRecord(b *buffer, i uint32) []byte {
	d := h.writeLocked(b)
	b.staleRecord(i)
	return d
}

// block returns a block of memory with arbitrary content.
func (j *journal) block() []byte {
	j.mu.Lock()
	defer j.mu.Unlock()
	if n := len(j.spare); n > 0 {
		d := j.spare[n-1]
		j.spare = j.spare[:n-1]
		return d
	}
	return make([]byte, j.fs.s.blockSize)
}

// recycle takes back a block of memory that nothing points to.
func (j *journal) recycle(d []byte) {
	const most = 256
	j.mu.Lock()
	if len(j.spare) < most {
		j.spare = append(j.spare, d)
	}
	j.mu.Unlock()
}

// forget ends a block of metadata of kind k and owner of that was freed: it leaves the
// transaction, and copies of it in the log must never be replayed over what comes to lie
// there.
func (h *handle) forget(blk uint64, k kind, of uint64) error {
	if b := h.fs.cache.peek(blk); b != nil {
		b.mu.Lock()
		other := b.pinned || b.kind != kindRaw && (b.kind.use() != k || b.of != of)
		b.gone = !other
		b.mu.Unlock()
		if other {
			return corrupt("block %d is used for two things", blk)
		}
		h.fs.cache.drop(blk)
	}
	j := h.fs.j
	j.mu.Lock()
	h.tx.revokes[blk] = struct{}{}
	j.mu.Unlock()
	return nil
}

// freeLater notes blocks that may be allocated again once h's transaction is durable.
func (h *handle) freeLater(r run) {
	j := h.fs.j
	j.mu.Lock()
	if n := len(h.tx.freed); n > 0 && h.tx.freed[n-1].blk+h.tx.freed[n-1].n == r.blk {
		h.tx.freed[n-1].n += r.n
	} else {
		h.tx.freed = append(h.tx.freed, r)
	}
	j.mu.Unlock()
}

// id is the number of the handle's transaction.
func (h *handle) id() uint32 { return h.tx.id }

// abort ends the journal: the file system is read-only from now on.
func (j *journal) abort(err error) error {
	j.mu.Lock()
	if j.err == nil {
		j.err = err
	}
	j.wake.Broadcast()
	j.mu.Unlock()
	j.fs.readOnly.Store(true)
	return err
}

// noteDamage records in the log that the file system is damaged, if the disk still accepts
// writes. The next mount copies this to the super block, where fsck finds it.
// The journal has been aborted: no commit waits for the caller's handle any more.
func (j *journal) noteDamage() {
	j.homeMu.Lock()
	defer j.homeMu.Unlock()
	if j.log.noted() {
		return
	}
	errno := int32(linux.EUCLEAN)
	be.PutUint32(j.log.super[jsErrno:], uint32(-errno))
	j.log.writeSuper(j.fs.dev) // nothing can be done if this fails
}

// evict shrinks the cache if no handle is open just now.
func (j *journal) evict() {
	if j == nil {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.running == nil || j.running.handles == 0 && !j.running.locked {
		j.fs.cache.shrink()
	}
}

// durable reports whether transaction id is on disk.
func (j *journal) durable(id uint32) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return int32(j.committed-id) >= 0
}

// previous is the newest transaction that accepts no more changes.
func (j *journal) previous() uint32 {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.running != nil {
		return j.running.id - 1
	}
	return j.nextID - 1
}
