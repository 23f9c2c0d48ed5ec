package ext4

import (
	"cmp"
	"slices"
	"time"

	"hardtack/abi/linux"
)

// homeless is a block's newest committed content, not written home yet.
type homeless struct {
	blk  uint64
	data []byte
}

// commitScratch is memory that commits reuse.
type commitScratch struct {
	blocks  []logBlock
	revokes []uint64
	headers [][]byte   // blocks for descriptors, revokes and the commit block
	batch   []Transfer // of the log
}

// header returns the i-th header block, zeroed.
func (c *commitScratch) header(i int, size int) []byte {
	if i == len(c.headers) {
		c.headers = append(c.headers, make([]byte, size))
	}
	clear(c.headers[i])
	return c.headers[i]
}

// maxBatch is the most blocks of one call of the device.
const maxBatch = 1024

// commitAll makes everything that was done before durable.
func (j *journal) commitAll() error {
	j.mu.Lock()
	id := j.nextID - 1
	j.mu.Unlock()
	return j.commit(id)
}

// commit makes transactions up to id durable. Concurrent callers share the work: the first
// commits for all whose changes are in the transaction by then, while others fill the next
// one. The caller has no open handle. A caller that finds the log half full afterwards
// checkpoints it, while others use the remaining space.
func (j *journal) commit(id uint32) error {
	for {
		j.commitMu.Lock()
		if j.log.length()-j.log.used() >= uint32(j.maxBlocks+j.maxBlocks/2) || j.log.used() == 0 {
			break
		}
		j.commitMu.Unlock() // a transaction might not fit
		if err := j.checkpoint(); err != nil {
			return err
		}
	}
	err := j.commitLocked(id)
	full := err == nil && j.log.used() > j.fullAt && !j.goingTo && !j.asked
	j.asked = j.asked || full
	j.commitMu.Unlock()
	if !full {
		return err
	}
	if in := j.fs.o.Background; in != nil {
		in(func() { j.checkpoint() })
		return nil
	}
	return j.checkpoint()
}

// commitLocked is commit with commitMu held and room in the log.
func (j *journal) commitLocked(id uint32) error {
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
	began := time.Now()
	tx.locked = true
	for tx.handles > 0 && j.err == nil {
		j.wake.Wait()
	}
	if j.err != nil {
		err := j.err
		j.mu.Unlock()
		return ioError(err)
	}
	j.mu.Unlock()

	s := &j.scratch
	j.freeze(tx)
	j.mu.Lock()
	j.running = nil
	j.fs.cache.shrink()
	j.wake.Broadcast()
	j.mu.Unlock()

	for blk := range tx.revokes {
		s.revokes = append(s.revokes, blk)
	}
	slices.Sort(s.revokes)
	if len(s.blocks)+len(s.revokes) > 0 {
		if err := j.writeLog(s.blocks, s.revokes); err != nil {
			return j.abort(ioError(err))
		}
	} else if err := j.flushes.run(j.fs.dev); err != nil {
		return j.abort(ioError(err))
	}
	j.committedBlocks()
	if j.goingTo && len(s.revokes) > 0 {
		j.held = append(j.held, tx.freed...)
	} else {
		j.fs.release(tx.freed)
	}
	j.together.committed(tx.id, time.Since(began))
	j.mu.Lock()
	j.committed = tx.id
	clear(tx.buffers)
	clear(tx.revokes)
	*tx = transaction{buffers: tx.buffers[:0], revokes: tx.revokes, freed: tx.freed[:0]}
	j.idleTx = tx
	j.mu.Unlock()
	return nil
}

// freeze collects the blocks of a transaction for the log. No handle is open and none can
// begin, so the bytes do not change. From here on they belong to the log, and a later
// change copies the block first.
func (j *journal) freeze(tx *transaction) {
	j.fs.seal(tx.buffers)
	s := &j.scratch
	s.blocks, s.revokes = s.blocks[:0], s.revokes[:0]
	for _, b := range tx.buffers {
		b.mu.Lock()
		b.tx = nil
		if !b.gone {
			b.shared = true
			s.blocks = append(s.blocks, logBlock{b.blk, b.data})
		}
		b.mu.Unlock()
	}
}

// committedBlocks records what must be written home. The memory of a block's older content
// can be reused, unless a checkpoint may be writing it.
func (j *journal) committedBlocks() {
	for _, x := range j.scratch.blocks {
		old, had := j.pending[x.blk]
		j.pending[x.blk] = homeless(x)
		if had && !j.goingTo && &old.data[0] != &x.data[0] {
			j.recycle(old.data)
		}
	}
	for _, blk := range j.scratch.revokes {
		delete(j.pending, blk)
	}
	clear(j.scratch.blocks)
}

// checkpoint writes home what is committed when it begins, and frees its part of the log.
// Commits continue meanwhile while there is room.
func (j *journal) checkpoint() error {
	j.homeMu.Lock()
	defer j.homeMu.Unlock()
	j.commitMu.Lock()
	j.mu.Lock()
	err := j.err
	j.mu.Unlock()
	if err != nil {
		j.commitMu.Unlock()
		return ioError(err)
	}
	list := j.sorted[:0]
	for _, x := range j.pending {
		list = append(list, x)
	}
	head, seq := j.log.head, j.log.nextSeq
	j.goingTo, j.asked = true, false
	j.commitMu.Unlock()

	slices.SortFunc(list, func(a, b homeless) int { return cmp.Compare(a.blk, b.blk) })
	err = j.writeHome(list)
	if err == nil {
		err = j.log.setStart(j.fs.dev, head, seq)
	}

	j.commitMu.Lock()
	defer j.commitMu.Unlock()
	j.goingTo = false
	if err != nil {
		return j.abort(ioError(err))
	}
	for _, x := range list {
		if p, ok := j.pending[x.blk]; !ok || &p.data[0] != &x.data[0] {
			continue // newer content waits, or it was freed
		}
		delete(j.pending, x.blk)
		if b := j.fs.cache.peek(x.blk); b != nil {
			b.mu.Lock()
			known := b.data != nil
			same := known && &b.data[0] == &x.data[0]
			if same {
				b.shared = false
			}
			b.mu.Unlock()
			if known && !same {
				j.recycle(x.data)
			}
		}
	}
	clear(list)
	j.sorted = list[:0]
	j.log.tail = head
	j.log.full = false
	j.fs.release(j.held)
	j.held = j.held[:0]
	return nil
}

// settle waits until freed blocks that a checkpoint holds are free.
func (j *journal) settle() {
	j.homeMu.Lock()
	defer j.homeMu.Unlock()
}

// writeHome writes blocks, in ascending order, to where they belong, durably.
func (j *journal) writeHome(list []homeless) error {
	batch := make([]Transfer, 0, min(len(list), maxBatch))
	for len(list) > 0 {
		n := min(len(list), maxBatch)
		batch = batch[:0]
		for _, x := range list[:n] {
			batch = append(batch, Transfer{j.fs.byteOf(x.blk), x.data})
		}
		if err := j.fs.dev.WriteAt(batch, false); err != nil {
			return err
		}
		list = list[n:]
	}
	return j.fs.dev.Flush()
}

// writeLog makes one transaction durable; the journal's commitMu is held. Its flush also
// makes data durable that was written in place before.
func (j *journal) writeLog(blocks []logBlock, revokes []uint64) error {
	l, s := &j.log, &j.scratch
	seq, size := l.nextSeq, l.blockSize
	need := uint32(len(blocks)+len(blocks)/(l.room(jHeader+16)/l.tagSize())+1) +
		uint32(len(revokes)*l.recordSize()/l.room(jHeader+4)+1) + 1
	if need > l.length()-l.used() {
		return linux.ENOSPC // a transaction beyond the log: our bug, but nothing is harmed
	}
	headers := 0
	header := func(kind uint32) []byte {
		b := s.header(headers, size)
		headers++
		putLogHeader(b, kind, seq)
		return b
	}
	s.batch = s.batch[:0]
	defer func() { clear(s.batch) }()
	for len(revokes) > 0 {
		b := header(jRevoke)
		revokes = revokes[l.putRevokes(b, revokes):]
		s.batch = append(s.batch, Transfer{l.phys(l.take()), b})
	}
	for len(blocks) > 0 {
		blocks = blocks[j.describe(header(jDescriptor), blocks):]
	}
	for batch := s.batch; len(batch) > 0; {
		n := min(len(batch), maxBatch)
		if err := j.fs.dev.WriteAt(batch[:n], false); err != nil {
			return err
		}
		batch = batch[n:]
	}
	if err := j.flushes.run(j.fs.dev); err != nil {
		return err
	}
	c := header(jCommit)
	now := l.now()
	be.PutUint64(c[jCommitSec:], uint64(now/1e9))
	be.PutUint32(c[jCommitSec+8:], uint32(now%1e9))
	if l.csums() {
		be.PutUint32(c[jCommitCsum:], crc32c(l.seed, c))
	}
	s.batch = append(s.batch, Transfer{l.phys(l.take()), c})
	if err := j.fs.dev.WriteAt(s.batch[len(s.batch)-1:], true); err != nil {
		return err
	}
	l.nextSeq++
	return nil
}

// describe adds a descriptor and the blocks for which it has room to the batch, and
// returns how many.
func (j *journal) describe(b []byte, blocks []logBlock) int {
	l, s := &j.log, &j.scratch
	s.batch = append(s.batch, Transfer{l.phys(l.take()), b})
	n := min(len(blocks), 1+(l.room(jHeader)-l.tagSize()-16)/l.tagSize())
	at := jHeader
	for i, x := range blocks[:n] {
		flags, d := uint32(0), x.data
		if be.Uint32(d) == jMagic {
			d = slices.Clone(d)
			clear(d[:4])
			flags |= tagEscaped
		}
		if i > 0 {
			flags |= tagSameUUID
		}
		if i == n-1 {
			flags |= tagLast
		}
		l.putTag(b[at:], x.blk, flags, l.dataChecksum(l.nextSeq, d))
		at += l.tagSize()
		if i == 0 {
			copy(b[at:at+16], l.super[jsUUID:])
			at += 16
		}
		s.batch = append(s.batch, Transfer{l.phys(l.take()), d})
	}
	l.seal(b)
	return n
}
