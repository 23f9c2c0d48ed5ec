package tmpfs

import (
	"sync"

	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/mem"
	"hardtack/kernel/base/uio"
	"hardtack/kernel/fs/vfs"
)

// Adopt makes frames from first on the first n pages of a new, empty file; they
// were never in the allocator. The limit on the size does not count for them.
func (fs *FS) Adopt(i *vfs.Inode, first mem.Frame, n int) {
	f := i.Node.(*file)
	if lent.has(first) {
		f.seals |= sealLent
	}
	for k := range n {
		mem.Adopt(first + mem.Frame(k))
		if lent.has(first) {
			(first + mem.Frame(k)).Get() // a reference for ever: it is not ours to free
		}
		f.pages.set(uint64(k), first+mem.Frame(k))
	}
	f.account.pages.Add(int64(n))
	fs.pages.Add(int64(n))
	mem.KeepGiven(n)
	f.SetSize(int64(n) * mem.PageSize)
}

// Fill writes a copy of data to a new file from page on, where it ends so far.
func (fs *FS) Fill(i *vfs.Inode, page int, data []byte) linux.Errno {
	f := i.Node.(*file)
	var v uio.Vec
	for ; len(data) > 0; page++ {
		k := min(len(data), mem.PageSize)
		v.InitBytes(data[:k])
		if _, e := f.writeHole(&v, uint64(page), 0, k); e != 0 {
			return e
		}
		data = data[k:]
		f.SetSize(int64(page)*mem.PageSize + int64(k))
	}
	return 0
}

// Sealer is a file that can be sealed.
type Sealer interface {
	Seals() uint32
	AddSeals(uint32) linux.Errno
}

// anonymousMount holds the files of memfd_create; no path leads there.
var anonymousMount = sync.OnceValue(func() *vfs.Mount {
	_, root := vfs.NewNamespace(New(Options{}).FileSystem, "tmpfs")
	return root.Mnt
})

// MemFD makes an unnamed file in memory (memfd_create).
func MemFD(c *caller.Ctx, name string, sealable bool) (*vfs.File, linux.Errno) {
	m := anonymousMount()
	fs := m.FS
	cred := c.Cred()
	i, e := fs.Root.Inode.Node.Create(c, fs.Root.Inode, "", vfs.NewNode{
		Mode: linux.S_IFREG | 0o777, UID: cred.FSUID, GID: cred.FSGID})
	if e != 0 {
		return nil, e
	}
	if sealable {
		i.Node.(*file).seals = 0
	}
	return vfs.OpenUnnamed(c, vfs.Path{Mnt: m, Dentry: fs.Root}, i, "memfd:"+name, linux.O_RDWR)
}
