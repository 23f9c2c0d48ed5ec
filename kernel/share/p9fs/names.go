package p9fs

import (
	"sync"

	"hardtack/abi/linux"
	"hardtack/kernel/fs/vfs"
	"hardtack/kernel/share/p9"
)

// maxNames is how many names of a file are remembered.
const maxNames = 4

// name is a name by which a file was found, with the server's number for that.
type name struct {
	dir  uint64 // the directory's number
	name string
	fid  uint32
}

// names are those of one file, the last one in use last. They are no part of the node: they
// outlive it until the server was told.
type names struct {
	path uint64 // immutable

	mu    sync.Mutex
	list  []name    // guarded by mu
	open  [3]uint32 // numbers of the open file, by mode, 0 if there is none; guarded by file.mu
	ended bool      // guarded by mu
}

// fid returns the number that requests about the file use; p9.NoFID where no name is known.
func (n *node) fid() uint32 {
	x := n.names
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(x.list) == 0 {
		return p9.NoFID
	}
	return x.list[len(x.list)-1].fid
}

// takes notes a name by which the node was found again. It returns false, and the node
// is left alone, if it must be another file: one of another kind, or a file that lost its
// names or a directory that is somewhere else now, by the host's doing.
func (n *node) takes(is *name, a *p9.Attr) bool {
	x := n.names
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.ended || n.Type() != a.Stat.Mode&linux.S_IFMT || n.Rdev != a.Stat.Rdev || len(x.list) == 0 || n.Nlink() == 0 {
		return false
	}
	for i, has := range x.list {
		if has.dir == is.dir && has.name == is.name {
			n.fs.c.Clunk(is.fid)
			copy(x.list[i:], x.list[i+1:])
			x.list[len(x.list)-1] = has
			return true
		}
	}
	if n.IsDir() {
		return false
	}
	if len(x.list) == maxNames {
		n.fs.c.Clunk(x.list[0].fid)
		x.list = append(x.list[:0], x.list[1:]...)
	}
	x.list = append(x.list, *is)
	return true
}

// find returns the number by which the file was found under a name.
func (n *node) find(dir uint64, nm string) (uint32, bool) {
	x := n.names
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, has := range x.list {
		if has.dir == dir && has.name == nm {
			return has.fid, true
		}
	}
	return p9.NoFID, false
}

// lose forgets a name that has gone, and reports whether another one is known.
func (n *node) lose(dir uint64, nm string) bool {
	x := n.names
	x.mu.Lock()
	defer x.mu.Unlock()
	for i, has := range x.list {
		if has.dir == dir && has.name == nm {
			n.fs.c.Clunk(has.fid)
			x.list = append(x.list[:i], x.list[i+1:]...)
			break
		}
	}
	return len(x.list) > 0
}

// moved notes that a name is another one now. The server has followed.
func (n *node) moved(dir uint64, nm string, to uint64, as string) {
	x := n.names
	x.mu.Lock()
	defer x.mu.Unlock()
	for i := range x.list {
		if has := &x.list[i]; has.dir == dir && has.name == nm {
			has.dir, has.name = to, as
		}
	}
}

// end tells the server that the file is not used any more.
func (x *names) end(c *p9.Client) {
	x.mu.Lock()
	list, was := x.list, x.ended
	x.list, x.ended = nil, true
	x.mu.Unlock()
	for _, has := range list {
		c.Clunk(has.fid)
	}
	if !was {
		for _, fid := range x.open {
			if fid != 0 {
				c.Clunk(fid)
			}
		}
	}
}

func nodeOf(i *vfs.Inode) *node { return i.Node.(based).base() }

// based is every kind of node.
type based interface{ base() *node }

func (n *node) base() *node { return n }
