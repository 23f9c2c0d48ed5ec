package proc

import "hardtack/abi/linux"

// Unshare is unshare(2): the thread gets its own descriptors and directories.
func (t *Thread) Unshare(flags uint64) linux.Errno {
	const known = linux.CLONE_FILES | linux.CLONE_FS | linux.CLONE_SYSVSEM |
		linux.CLONE_VM | linux.CLONE_SIGHAND | linux.CLONE_THREAD
	if flags&^known != 0 {
		return linux.EINVAL
	}
	// A thread of several cannot leave them.
	if flags&(linux.CLONE_THREAD|linux.CLONE_SIGHAND|linux.CLONE_VM) != 0 && len(t.Proc.Threads()) > 1 {
		return linux.EINVAL
	}
	if flags&linux.CLONE_VM != 0 && t.Space.Users() > 1 {
		return linux.EINVAL
	}
	p := t.Proc
	if flags&linux.CLONE_FILES != 0 && t.FDs.Users() > 1 {
		if e := t.UnshareFiles(); e != 0 {
			return e
		}
	}
	if flags&linux.CLONE_FS != 0 && t.FS.Users() > 1 {
		old := t.FS
		p.mu.Lock()
		t.FS = old.Clone()
		p.mu.Unlock()
		old.Release()
	}
	return 0
}
