package ext4

import (
	"fmt"

	"hardtack/abi/linux"
)

// ended is what ended the journal.
func (j *journal) ended() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.err
}

// closeUnused ends changes for good unless there are orphans: a change after a look at them could
// leave one behind, whose user could not delete it any more. No handle is open.
func (j *journal) closeUnused() error {
	j.fs.orphanMu.Lock()
	busy := len(j.fs.orphans) > 0
	j.fs.orphanMu.Unlock()
	if busy {
		return linux.EBUSY
	}
	j.mu.Lock()
	j.closing = true
	j.mu.Unlock()
	return nil
}

var errUnmounted = fmt.Errorf("unmounted: %w", linux.EROFS)

// Remount makes a mounted file system writable, or read-only with a clean disk. While it becomes
// read-only, changes that begin get EROFS; while it becomes writable, the caller ensures that there
// are none. EBUSY if deleted files are still in use; EROFS after an error that made
// the file system read-only.
func (fs *FS) Remount(readOnly bool) error {
	if readOnly == fs.readOnly.Load() {
		return nil
	}
	if readOnly {
		if err := fs.j.alone(fs.j.closeUnused); err != nil {
			return err
		}
		return fs.Unmount()
	}
	if fs.o.NoLoad {
		return fmt.Errorf("mounted without its log: %w", linux.EROFS)
	}
	if fs.j != nil {
		if err := fs.j.ended(); err != errUnmounted {
			return fmt.Errorf("%v: %w", err, linux.EROFS)
		}
	}
	if err := fs.s.writable(); err != nil {
		return err
	}
	l, err := fs.findLog()
	if err != nil {
		return err
	}
	fs.orphans = nil
	if err := fs.openJournal(l); err != nil {
		return err
	}
	if err := fs.replayOrphans(); err != nil {
		return fs.j.abort(err)
	}
	return nil
}
