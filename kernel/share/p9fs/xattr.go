package p9fs

import (
	"strings"

	"hardtack/abi/linux"
	"hardtack/kernel/fs/vfs"
)

// Xattr returns an extended attribute.
func (n *node) Xattr(_ *vfs.Inode, name string) ([]byte, linux.Errno) {
	if !served(name) {
		return nil, linux.ENODATA
	}
	return n.readXattr(name)
}

// served reports whether a host may keep the attribute. Those of the security modules are
// not asked for: QEMU serves "user." and lists of access control, and each question costs
// a round trip at the first write to a file.
func served(name string) bool { return strings.HasPrefix(name, "user.") }

func (n *node) readXattr(name string) ([]byte, linux.Errno) {
	of, e := n.request()
	if e != 0 {
		return nil, e
	}
	fid, size, e := n.fs.c.XattrWalk(nil, of, name)
	if e != 0 {
		return nil, e
	}
	defer n.fs.c.Clunk(fid)
	b := make([]byte, size) //maxlive:len 65536 because an attribute has at most XATTR_SIZE_MAX bytes
	got, e := n.fs.c.Read(nil, fid, [][]byte{b}, 0, len(b))
	return b[:got], e
}

// Xattrs returns their names.
func (n *node) Xattrs(*vfs.Inode) ([]string, linux.Errno) {
	b, e := n.readXattr("")
	if e == linux.EOPNOTSUPP {
		return nil, 0
	}
	if e != 0 {
		return nil, e
	}
	var list []string
	for name := range strings.SplitSeq(string(b), "\x00") {
		if served(name) {
			list = append(list, name) //maxlive:len 65536 because the list has at most XATTR_LIST_MAX bytes
		}
	}
	return list, 0
}

// SetXattr sets or, with nil, removes one.
func (n *node) SetXattr(_ *vfs.Inode, name string, value []byte, flags uint32) linux.Errno {
	if !served(name) {
		if value == nil {
			return linux.ENODATA
		}
		return linux.EOPNOTSUPP
	}
	of, e := n.request()
	if e != 0 {
		return e
	}
	if e = n.mayReplace(name, value, flags); e != 0 {
		return e
	}
	c := n.fs.c
	fid, _, e := c.Walk(nil, of, "")
	if e != 0 {
		return e
	}
	if e = c.XattrCreate(nil, fid, name, uint64(len(value)), flags); e != 0 {
		c.Clunk(fid)
		return e
	}
	if len(value) > 0 {
		if _, e = c.Write(nil, fid, [][]byte{value}, 0, len(value)); e != 0 {
			c.Clunk(fid)
			return e
		}
	}
	return c.ClunkNow(nil, fid)
}

// mayReplace asks whether there is an attribute where that matters: the protocol removes
// one that is to be set to nothing.
func (n *node) mayReplace(name string, value []byte, flags uint32) linux.Errno {
	if value == nil {
		_, e := n.readXattr(name)
		return e
	}
	if len(value) == 0 {
		return linux.EOPNOTSUPP
	}
	if flags == 0 {
		return 0
	}
	_, e := n.readXattr(name)
	switch {
	case e == 0 && flags&linux.XATTR_CREATE != 0:
		return linux.EEXIST
	case e == linux.ENODATA && flags&linux.XATTR_REPLACE == 0:
		return 0
	}
	return e
}
