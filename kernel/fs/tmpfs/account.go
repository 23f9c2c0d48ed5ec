package tmpfs

import (
	"sync/atomic"

	"hardtack/kernel/base/accounts"
	"hardtack/kernel/base/mem"
)

// account is what one user's files take of a file system. A file belongs to the account
// of its owner. Accounts stay as long as the file system: there is one for each owner.
type account struct {
	fs     *FS
	uid    uint32
	pages  atomic.Int64
	inodes atomic.Int64
}

// accountOf returns a user's account, which it makes if there is none.
func (fs *FS) accountOf(uid uint32) *account {
	if a := fs.recent.Load(); a != nil && a.uid == uid {
		return a
	}
	fs.mu.Lock()
	a := fs.accounts[uid]
	if a == nil {
		a = &account{fs: fs, uid: uid}
		fs.accounts[uid] = a
	}
	fs.mu.Unlock()
	fs.recent.Store(a)
	return a
}

// enter counts one more inode of a user and returns the account, nil if there is no room.
func (fs *FS) enter(uid uint32) *account {
	a := fs.accountOf(uid)
	own, all := a.inodes.Add(1), fs.inodes.Add(1)
	if limit := fs.maxInodes.Load(); all > limit-limit/4 && !fs.granted(uid, own, all, limit, fs.shareInodes) {
		a.leave()
		return nil
	}
	return a
}

// leave counts one inode less; its pages were released before.
func (a *account) leave() {
	a.inodes.Add(-1)
	a.fs.inodes.Add(-1)
}

// move puts an inode with its pages into another user's account, whether or not that
// one has room, as a change of owner does.
func (a *account) move(uid uint32, pages int64) *account {
	if uid == a.uid {
		return a
	}
	to := a.fs.accountOf(uid)
	to.inodes.Add(1)
	to.pages.Add(pages)
	a.pages.Add(-pages)
	a.inodes.Add(-1)
	return to
}

// charge counts one more frame, if there is room.
func (a *account) charge() bool {
	fs := a.fs
	own, all := a.pages.Add(1), fs.pages.Add(1)
	if limit := fs.maxPages.Load(); all > limit-limit/4 && !fs.granted(a.uid, own, all, limit, fs.sharePages) ||
		!mem.Keep(a.uid == 0, own) {
		a.pages.Add(-1)
		fs.pages.Add(-1)
		return false
	}
	return true
}

// release counts n frames less.
func (a *account) release(n int) {
	if n != 0 {
		a.pages.Add(-int64(n))
		a.fs.pages.Add(-int64(n))
		mem.Unkeep(n)
	}
}

// granted decides whether a user may have own of a limit, all users having all. A limit
// that mount named is a budget, for whoever comes; any other is shared.
func (fs *FS) granted(uid uint32, own, all, limit int64, shared bool) bool {
	if !shared {
		return all <= limit
	}
	s := accounts.SharesOf(limit)
	return s.Grant(own, all, uid == 0)
}

// available is what there is for a user who has taken little.
func available(limit, used int64, shared bool) uint64 {
	if shared {
		limit = accounts.SharesOf(limit).Little
	}
	return uint64(max(limit-used, 0))
}
