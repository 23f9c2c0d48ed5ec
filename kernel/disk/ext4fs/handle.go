package ext4fs

import (
	"hardtack/abi/linux"
	"hardtack/ext4"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/fs/vfs"
)

// handles are the file handles of a file system on a disk: number and generation.
type handles struct{ fs *FS }

// Handle never asks for the parent's number, as name_to_handle_at does not.
func (h handles) Handle(d *vfs.Dentry) (int32, []uint32) {
	in := nodeOf(d.Inode).in
	return vfs.HandleInode, []uint32{in.Ino(), in.Generation()}
}

// Find takes handles with the parent's number too, which are a file server's.
func (h handles) Find(c *caller.Ctx, kind int32, words []uint32) (*vfs.Dentry, linux.Errno) {
	if len(words) < 2 || kind != vfs.HandleInode && kind != vfs.HandleInodeParent {
		return nil, linux.ESTALE
	}
	in, err := h.fs.ext.GetHandle(words[0], words[1])
	if err != nil {
		return nil, linux.ESTALE
	}
	i := h.fs.enterNamed(in)
	if i == nil {
		return nil, linux.ESTALE
	}
	if !i.IsDir() {
		return vfs.NewRoot(i), 0
	}
	return h.connect(c, i)
}

// deepest is how many directories connect climbs.
const deepest = 4096

// connect returns the place of a directory in the tree: from the nearest directory
// above it that has one it looks for the names of those between.
func (h handles) connect(c *caller.Ctx, i *vfs.Inode) (*vfs.Dentry, linux.Errno) {
	chain := []*vfs.Inode{i}
	d := i.Place()
	for ; d == nil; d = i.Place() {
		up, e := i.Node.Lookup(c, i, "..")
		if e != 0 || up == i || !up.IsDir() || len(chain) > deepest {
			return nil, linux.ESTALE
		}
		i = up
		chain = append(chain, i)
	}
	for k := len(chain) - 2; k >= 0; k-- {
		name, e := h.nameOf(d.Inode, chain[k])
		if e != 0 {
			return nil, e
		}
		if d, e = d.Find(c, name); e != 0 || d.Inode != chain[k] {
			return nil, linux.ESTALE
		}
	}
	return d, 0
}

// nameOf looks for a directory's name in the one above.
func (h handles) nameOf(dir, i *vfs.Inode) (name string, e linux.Errno) {
	err := h.fs.ext.ReadDir(nodeOf(dir).in, 0, func(x ext4.Dirent) bool {
		if uint64(x.Ino) == i.Ino && x.Name != "." && x.Name != ".." {
			name = x.Name
		}
		return name == ""
	})
	if err != nil || name == "" {
		return "", linux.ESTALE
	}
	return name, 0
}
