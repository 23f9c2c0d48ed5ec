package ext4

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	"hardtack/abi/linux"
)

// transaction is a set of changed blocks that reach the disk all or none.
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
// Locks: commitMu (whoever commits or checkpoints), then buffer.mu, then mu.
type journal struct {
	fs *FS

	commitMu sync.Mutex
	log      logArea             // guarded by commitMu
	pending  map[uint64]homeless // committed and not home; guarded by commitMu

	mu        sync.Mutex
	wake      sync.Cond    // running changed, or its handles did
	running   *transaction // nil: none open
	nextID    uint32
	committed uint32 // the last transaction that is durable
	err       error  // what ended the journal; nothing changes any more
	maxBlocks int    // of one transaction; immutable
	fullAt    uint32 // blocks in use from which on the log is emptied; immutable
	perRevoke int    // revoke records a block; immutable
}

// homeless is a block's newest committed content.
type homeless struct {
	data []byte
	tx   uint32
}

// handle is the right to change up to some number of blocks within the running
// transaction: one file system operation. What is changed between begin and end
// is found after a crash all or not at all. While it is open no lock of an
// inode may be taken, and nothing may wait for a commit.
type handle struct {
	fs      *FS
	tx      *transaction
	credits int
}

// begin opens a handle for at most credits changed blocks. It may wait for a commit.
func (fs *FS) begin(credits int) (*handle, error) {
	j := fs.j
	if j == nil || fs.readOnly.Load() {
		return nil, linux.EROFS
	}
	j.mu.Lock()
	for {
		if j.err != nil {
			j.mu.Unlock()
			return nil, fmt.Errorf("%v: %w", j.err, linux.EROFS)
		}
		tx := j.running
		if tx == nil {
			tx = &transaction{id: j.nextID, revokes: map[uint64]struct{}{}}
			j.nextID++
			j.running = tx
		}
		switch {
		case tx.locked:
			j.wake.Wait()
		case j.size(tx, credits) <= j.maxBlocks:
			tx.handles++
			tx.credits += credits
			j.mu.Unlock()
			return &handle{fs, tx, credits}, nil
		case j.size(tx, 0) == 0:
			panic(fmt.Sprintf("ext4: a handle of %d blocks in a journal that takes %d", credits, j.maxBlocks))
		default:
			j.mu.Unlock()
			if err := j.commit(tx.id); err != nil {
				return nil, err
			}
			j.mu.Lock()
		}
	}
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

// extend asks for more credits without waiting; false means that the caller
// must come to a consistent point, end the handle and begin another.
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

// end closes the handle.
func (h *handle) end() {
	j := h.fs.j
	j.mu.Lock()
	h.tx.credits -= h.credits
	h.tx.handles--
	if h.tx.handles == 0 {
		j.wake.Broadcast()
	}
	j.mu.Unlock()
}

// strictCredits makes a handle that changes more than it asked for panic; set
// by tests. Without it the transaction grows into the reserve that the log has,
// since a transaction is at most a quarter of it.
var strictCredits bool

// write makes the block part of the transaction and returns its bytes, which may
// be changed until the handle ends.
func (h *handle) write(b *buffer) []byte {
	b.mu.Lock()
	d := h.writeLocked(b)
	b.mu.Unlock()
	return d
}

// writeLocked is write with b.mu held.
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
		b.data = slices.Clone(b.data)
		b.shared = false
	}
	return b.data
}

// forget ends a block of metadata that was freed: it leaves the transaction, and
// copies of it in the log must never be replayed over what comes to lie there.
func (h *handle) forget(blk uint64) {
	if b := h.fs.cache.drop(blk); b != nil {
		b.mu.Lock()
		b.gone = true
		b.mu.Unlock()
	}
	j := h.fs.j
	j.mu.Lock()
	h.tx.revokes[blk] = struct{}{}
	j.mu.Unlock()
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

// commitAll makes everything that was done before durable.
func (j *journal) commitAll() error {
	j.mu.Lock()
	id := j.nextID - 1
	j.mu.Unlock()
	return j.commit(id)
}

// durable reports whether transaction id is on disk.
func (j *journal) durable(id uint32) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return int32(j.committed-id) >= 0
}

// previous is the newest transaction that takes no more changes.
func (j *journal) previous() uint32 {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.running != nil {
		return j.running.id - 1
	}
	return j.nextID - 1
}

// commit makes transactions up to id durable. Callers that meet here share
// the work: the first commits for all that are in the transaction by then, while
// others fill the next one. No handle may be open in the caller.
func (j *journal) commit(id uint32) error {
	j.commitMu.Lock()
	defer j.commitMu.Unlock()
	j.mu.Lock()
	tx := j.running
	if j.err != nil {
		err := j.err
		j.mu.Unlock()
		return ioError(err)
	}
	if tx == nil || int32(tx.id-id) > 0 || int32(j.committed-id) >= 0 {
		j.mu.Unlock()
		return nil
	}
	tx.locked = true
	for tx.handles > 0 {
		j.wake.Wait()
	}
	if j.err != nil {
		err := j.err
		j.mu.Unlock()
		return ioError(err)
	}
	j.mu.Unlock()

	// No handle is open and none can begin: the bytes stand still. From here
	// on they belong to the log, and who changes a block again copies it.
	blocks := make([]logBlock, 0, len(tx.buffers))
	for _, b := range tx.buffers {
		b.mu.Lock()
		b.tx = nil
		if !b.gone {
			b.shared = true
			blocks = append(blocks, logBlock{b.blk, b.data})
		}
		b.mu.Unlock()
	}
	j.mu.Lock()
	j.running = nil
	j.fs.cache.shrink()
	j.wake.Broadcast()
	j.mu.Unlock()

	revokes := slices.Sorted(maps.Keys(tx.revokes))
	if len(blocks)+len(revokes) > 0 {
		if err := j.writeLog(blocks, revokes); err != nil {
			return j.abort(ioError(err))
		}
	} else if err := j.fs.dev.Flush(); err != nil {
		return j.abort(ioError(err))
	}
	for _, b := range blocks {
		j.pending[b.blk] = homeless{b.data, tx.id}
	}
	for _, blk := range revokes {
		delete(j.pending, blk)
	}
	j.mu.Lock()
	j.committed = tx.id
	j.mu.Unlock()
	j.fs.release(tx.freed)
	if j.log.used() > j.fullAt {
		return j.checkpoint()
	}
	return nil
}

// checkpoint writes all committed blocks home and empties the log; commitMu is held.
func (j *journal) checkpoint() error {
	blks := slices.Sorted(maps.Keys(j.pending))
	batch := make([]Transfer, 0, min(len(blks), maxBatch))
	for len(blks) > 0 {
		batch = batch[:0]
		for _, blk := range blks[:min(len(blks), maxBatch)] {
			batch = append(batch, Transfer{j.fs.byteOf(blk), j.pending[blk].data})
		}
		blks = blks[len(batch):]
		if err := j.fs.dev.WriteAt(batch, false); err != nil {
			return j.abort(ioError(err))
		}
	}
	if err := j.fs.dev.Flush(); err != nil {
		return j.abort(ioError(err))
	}
	for blk, p := range j.pending {
		if b := j.fs.cache.peek(blk); b != nil {
			b.mu.Lock()
			if b.shared && &b.data[0] == &p.data[0] {
				b.shared = false
			}
			b.mu.Unlock()
		}
	}
	clear(j.pending)
	if err := j.log.empty(j.fs.dev, j.log.nextSeq); err != nil {
		return j.abort(ioError(err))
	}
	return nil
}

// maxBatch is the most blocks of one call of the device.
const maxBatch = 1024
