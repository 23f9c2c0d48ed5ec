package rootfs

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"hardtack/tool/fault"
)

const openNoFollow = unix.O_NOFOLLOW | unix.O_NONBLOCK

// ReadDir puts a directory of the host into the tree. Links are kept, never
// followed; sockets, and unless the tree becomes a disk device nodes, are the
// host's business and left out. Files of one inode stay one file.
func (t *Tree) ReadDir(dir string, owner Owner) error {
	type id struct{ dev, ino uint64 }
	links := map[id]string{}
	return filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			if errors.Is(err, fs.ErrPermission) {
				return fault.Bad("%v", err)
			}
			return err
		}
		rel, err := filepath.Rel(dir, name)
		if err != nil {
			return err
		}
		info, err := d.Info()
		if rel == "." {
			info, err = os.Stat(name) // the root itself may be named by a link
		}
		if err != nil {
			return err
		}
		st, ok := info.Sys().(*syscall.Stat_t)
		if !ok {
			return errors.ErrUnsupported
		}
		n := &Inode{Mode: st.Mode, UID: st.Uid, GID: st.Gid, Mtime: st.Mtim.Sec, Nanos: uint32(st.Mtim.Nsec)}
		if owner == Superuser {
			n.UID, n.GID = 0, 0
		}
		if n.Type() == Socket {
			return nil
		}
		if n.Type() != Dir && st.Nlink > 1 && (n.Type() == Regular || t.budget.Disk) {
			key := id{st.Dev, st.Ino}
			if first, ok := links[key]; ok {
				return t.Link(rel, first)
			}
			links[key] = rel
		}
		if t.budget.Disk {
			if err := n.readXattrs(name, rel == "."); err != nil {
				return err
			}
		}
		switch n.Type() {
		case Regular:
			if st.Size > 0 {
				n.Data = NewBlob(hostFile(name), st.Size, st.Blocks*512)
			}
		case Symlink:
			if n.Target, err = os.Readlink(name); err != nil {
				return err
			}
		case Dir, FIFO:
		case Char, Block:
			if !t.budget.Disk {
				return nil
			}
			n.Major, n.Minor = unix.Major(st.Rdev), unix.Minor(st.Rdev)
		default:
			return nil
		}
		if rel == "." {
			rel = ""
		}
		return t.Put(rel, n)
	})
}

// Owner says whose files a directory's files become.
type Owner int

const (
	AsIs      Owner = iota // the owners they have on the host
	Superuser              // all belong to root
)

// setXattr keeps an attribute of the kinds that Linux's disks have.
func (n *Inode) setXattr(name, value string) {
	for _, prefix := range []string{"user.", "trusted.", "security.", "system.posix_acl_"} {
		if strings.HasPrefix(name, prefix) {
			if n.Xattrs == nil {
				n.Xattrs = map[string]string{}
			}
			n.Xattrs[name] = value
		}
	}
}

// readXattrs reads a file's extended attributes.
func (n *Inode) readXattrs(name string, follow bool) error {
	list, get := unix.Llistxattr, unix.Lgetxattr
	if follow {
		list, get = unix.Listxattr, unix.Getxattr
	}
	var names []byte
	for {
		size, err := list(name, nil)
		if err != nil || size == 0 {
			if err == nil || errors.Is(err, unix.ENOTSUP) {
				return nil
			}
			return &fs.PathError{Op: "listxattr", Path: name, Err: err}
		}
		names = make([]byte, size)
		if size, err = list(name, names); err == nil {
			names = names[:size]
			break
		}
		if !errors.Is(err, unix.ERANGE) { // another was added meanwhile
			return &fs.PathError{Op: "listxattr", Path: name, Err: err}
		}
	}
	value := make([]byte, 1<<16) // XATTR_SIZE_MAX
	for x := range strings.SplitSeq(strings.TrimRight(string(names), "\x00"), "\x00") {
		size, err := get(name, x, value)
		if errors.Is(err, unix.ENODATA) {
			continue
		}
		if err != nil {
			return &fs.PathError{Op: "getxattr " + x, Path: name, Err: err}
		}
		n.setXattr(x, string(value[:size]))
	}
	return nil
}
