package vfs

import (
	"hardtack/abi/linux"
	"hardtack/kernel/base/creds"
	"hardtack/kernel/base/settings"
)

// The rules that keep users from luring each other with links and files in
// directories that all may write to (/proc/sys/fs/protected_*).

// mayFollow is the rule for symbolic links at the end of a path (protected_symlinks):
// in a sticky directory that anybody may write to, one follows one's own and those of
// the directory's owner.
func (w *walk) mayFollow(link *Inode) linux.Errno {
	dir := w.cur.Dentry.Inode
	if dir.mode.Load()&(linux.S_ISVTX|0o002) != linux.S_ISVTX|0o002 || settings.ProtectedSymlinks.Get() == 0 {
		return 0
	}
	if owner := link.UID(); owner == w.cred.FSUID || owner == dir.UID() {
		return 0
	}
	return linux.EACCES
}

// mayLink is the rule for hard links (protected_hardlinks): to one's own files, and to
// others that are plain data that one may read and write.
func mayLink(cred *creds.Cred, i *Inode) linux.Errno {
	if settings.ProtectedHardlinks.Get() == 0 || IsOwner(cred, i) {
		return 0
	}
	mode := i.Mode()
	if mode&linux.S_IFMT != linux.S_IFREG || mode&linux.S_ISUID != 0 ||
		mode&(linux.S_ISGID|0o010) == linux.S_ISGID|0o010 || permission(cred, i, MayRead|MayWrite) != 0 {
		return linux.EPERM
	}
	return 0
}

// mayCreateOver is the rule for O_CREAT when the file is there (protected_fifos and
// protected_regular): in a sticky directory it must be the caller's or the directory's
// owner's; with 2 also where only a group may write.
func (w *walk) mayCreateOver(i *Inode) linux.Errno {
	dir := w.cur.Dentry.Inode
	mode := dir.mode.Load()
	if mode&linux.S_ISVTX == 0 || i.UID() == dir.UID() || i.UID() == w.cred.FSUID {
		return 0
	}
	level := int64(1) // devices and sockets have no setting
	switch i.Type() {
	case linux.S_IFIFO:
		level = settings.ProtectedFifos.Get()
	case linux.S_IFREG:
		level = settings.ProtectedRegular.Get()
	}
	if level >= 1 && mode&0o002 != 0 || level >= 2 && mode&0o020 != 0 {
		return linux.EACCES
	}
	return 0
}
