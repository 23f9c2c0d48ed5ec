package ext4

import "sync"

// Windows are free blocks reserved in memory, so that data written together is close
// together on disk. Each processor has a window for small files, which get their blocks
// one after another without a search and without contention. A larger file that grows has
// its own window after its end. A window's blocks are busy in their group but promised to
// nobody: when blocks that were promised cannot be found, all windows are given up.
const (
	smallFile   = 16   // blocks; up to here a file's come from the processor's window
	windowSize  = 512  // of a processor, blocks
	aheadMost   = 2048 // of a file, blocks
	windowShare = 64   // of the free blocks, at most one part of so many
)

// window is a window; the zero value has no blocks.
type window struct {
	mu sync.Mutex // before group.mu
	r  run        // guarded by mu
	_  [40]byte   // windows of processors are in an array: a cache line each
}

// takeFrom cuts up to want blocks off the window's front; mu is held.
func (w *window) takeFrom(want uint32) run {
	r := run{w.r.blk, min(w.r.n, uint64(want))}
	w.r.blk, w.r.n = w.r.blk+r.n, w.r.n-r.n
	return r
}

// allocateSmall takes up to want blocks from the current processor's window. The caller
// was promised them.
func (fs *FS) allocateSmall(goal uint64, want uint32) (run, error) {
	size := uint32(min(windowSize, fs.free.Load()/windowShare))
	if size < 2*want {
		return fs.allocate(goal, want)
	}
	cpu := 0
	if fs.o.Processor != nil {
		cpu = fs.o.Processor() % len(fs.windows)
	}
	w := &fs.windows[cpu]
	w.mu.Lock()
	if w.r.n > 0 && w.r.n < uint64(want) { // rather whole than in two places
		fs.unbusy(w.r)
		w.r = run{}
	}
	if w.r.n == 0 {
		r, err := fs.allocateIn(goal, size)
		if err != nil {
			w.mu.Unlock()
			return fs.allocate(goal, want)
		}
		w.r = r
	}
	r := w.takeFrom(want)
	w.mu.Unlock()
	return r, nil
}

// allocateAhead takes up to want blocks for the end of a file of size blocks, and
// sets as many as it has aside for its next ones. in.mu is held.
func (fs *FS) allocateAhead(in *Inode, goal uint64, want, size uint32) (run, error) {
	w := &in.ahead
	w.mu.Lock()
	if w.r.n > 0 && w.r.blk == goal {
		r := w.takeFrom(want)
		w.mu.Unlock()
		return r, nil
	}
	old := w.r
	w.r = run{}
	w.mu.Unlock()
	fs.unbusy(old)
	ahead := uint32(min(int64(size), aheadMost, fs.free.Load()/windowShare))
	r, err := fs.allocateIn(goal, min(want+ahead, exMaxLen))
	if err != nil {
		return fs.allocate(goal, want)
	}
	if r.n > uint64(want) {
		fs.aheadMu.Lock()
		w.mu.Lock()
		w.r = run{r.blk + uint64(want), r.n - uint64(want)}
		w.mu.Unlock()
		fs.ahead[in] = struct{}{}
		in.listed.Store(true)
		fs.aheadMu.Unlock()
		r.n = uint64(want)
	}
	return r, nil
}

// dropAhead gives up a file's window; aheadMu is held.
func (fs *FS) dropAhead(in *Inode) bool {
	w := &in.ahead
	w.mu.Lock()
	r := w.r
	w.r = run{}
	w.mu.Unlock()
	fs.unbusy(r)
	return r.n > 0
}

// forgetAhead gives up the window of a file that no longer grows.
func (fs *FS) forgetAhead(in *Inode) {
	if in.listed.Load() {
		fs.aheadMu.Lock()
		fs.dropAhead(in)
		delete(fs.ahead, in)
		in.listed.Store(false)
		fs.aheadMu.Unlock()
	}
}

// dropWindows gives up all windows and reports whether there were any.
func (fs *FS) dropWindows() bool {
	any := false
	for i := range fs.windows {
		w := &fs.windows[i]
		w.mu.Lock()
		any = any || w.r.n > 0
		fs.unbusy(w.r)
		w.r = run{}
		w.mu.Unlock()
	}
	fs.aheadMu.Lock()
	defer fs.aheadMu.Unlock()
	for in := range fs.ahead {
		any = fs.dropAhead(in) || any
		delete(fs.ahead, in)
		in.listed.Store(false)
	}
	return any
}
