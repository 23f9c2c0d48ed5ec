package ext4

import (
	"sync"
	"time"

	"hardtack/abi/linux"
)

// gathering lets programs that sync at the same time share one commit. Without it they
// would split into two halves, one of which waits while the other commits. A caller waits
// before it commits until as many have come as the last commit served or kept waiting,
// because most of them come again at once. Nobody waits longer than one and a half times
// that commit's duration, and a single caller does not wait at all.
type gathering struct {
	mu     sync.Mutex
	id     uint32        // the transaction that the callers in here need
	here   int           // callers that came for it
	before int           // callers that came for the one before it
	opened bool          // full is closed
	full   chan struct{} // closed when nobody waits for more
	crowd  int           // callers waiting when the last commit ended
	took   time.Duration // the last commit
}

// join waits for others that want transaction id durable.
func (g *gathering) join(id uint32) {
	g.mu.Lock()
	if g.full == nil || int32(id-g.id) > 0 {
		g.open()
		g.before = 0
		if id == g.id+1 {
			g.before = g.here
		}
		g.id, g.here, g.full, g.opened = id, 0, make(chan struct{}), false
	}
	if id != g.id { // its commit is under way
		g.mu.Unlock()
		return
	}
	if g.here++; g.here >= g.crowd {
		g.open()
	}
	full, limit := g.full, g.took*3/2
	if g.opened {
		g.mu.Unlock()
		return
	}
	g.mu.Unlock()
	t := time.NewTimer(limit)
	defer t.Stop()
	select {
	case <-full:
	case <-t.C:
		g.mu.Lock()
		if g.id == id {
			g.open()
		}
		g.mu.Unlock()
	}
}

// open ends the waiting; mu is held.
func (g *gathering) open() {
	if g.full != nil && !g.opened {
		g.opened = true
		close(g.full)
	}
}

// committed notes the end of a commit.
func (g *gathering) committed(id uint32, took time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.took, g.crowd = took, 0
	switch g.id {
	case id:
		g.crowd = g.here
		g.open()
	case id + 1:
		g.crowd = g.before + g.here
	}
}

// Fsync makes a file's content and attributes durable; with dataOnly times alone
// may stay behind. Callers that meet share a commit.
func (fs *FS) Fsync(in *Inode, dataOnly bool) error {
	if fs.j == nil {
		return nil
	}
	if fs.readOnly.Load() {
		if fs.j.ended() == errUnmounted { // it was made so, and all is home
			return nil
		}
		return linux.EROFS // after an error, as on Linux, whatever the file has to write
	}
	id := in.tx.Load()
	if dataOnly {
		id = in.dataTx.Load()
	}
	if fs.j.durable(id) {
		// Nothing to commit, but data may have been written over in place.
		return ioError(fs.dev.Flush())
	}
	fs.j.together.join(id)
	if err := fs.j.commit(id); err != nil || fs.j.flushes.covers(&in.over) {
		return err
	}
	return ioError(fs.dev.Flush())
}
