package proc

import (
	"hardtack/kernel/fs/vfs"
	"hardtack/kernel/mm/vm"
	"hardtack/kernel/process/program"
)

// What /proc tells everybody. It is taken under Process.mu, and of descriptors and
// directories without a share (see Inspect).

// Dirs returns root directory and umask; false once the thread has given them up.
func (t *Thread) Dirs() (root vfs.Path, umask uint32, ok bool) {
	t.Proc.mu.Lock()
	defer t.Proc.mu.Unlock()
	if t.FS == nil {
		return vfs.Path{}, 0, false
	}
	return t.FS.Root(), t.FS.Umask(), true
}

// FDSize returns how many descriptors the thread's table has room for.
func (t *Thread) FDSize() int {
	t.Proc.mu.Lock()
	defer t.Proc.mu.Unlock()
	if t.FDs == nil {
		return 0
	}
	return t.FDs.Size()
}

// Program returns the address space to look at (EndLook), or nil, and the program in it.
func (t *Thread) Program() (*vm.Space, *program.Image) {
	t.Proc.mu.Lock()
	defer t.Proc.mu.Unlock()
	if t.Space == nil {
		return nil, nil
	}
	t.Space.Look()
	return t.Space, t.Proc.image.Load()
}
