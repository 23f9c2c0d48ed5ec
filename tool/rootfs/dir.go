package rootfs

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"sort"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"hardtack/tool/fault"
)

// ReadDir puts a directory of the host into the tree. Links are kept, never
// followed; sockets, and unless the tree becomes a disk device nodes, are the
// host's business and left out. Files of one inode stay one file.
//
// Whoever owns the directory may change it meanwhile. Nothing outside of it is read
// then: every name is looked up in its directory's descriptor.
func (t *Tree) ReadDir(dir string, owner Owner) error {
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return openError(dir, err)
	}
	root := os.NewFile(uintptr(fd), dir)
	w := &dirWalk{tree: t, owner: owner, root: root, links: map[fileID]string{}}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return &fs.PathError{Op: "stat", Path: dir, Err: err}
	}
	if err := w.put("", fd, "", &st); err != nil {
		return err
	}
	return w.read(root, "")
}

// dirWalk is the reading of a directory.
type dirWalk struct {
	tree  *Tree
	owner Owner
	root  *os.File
	links map[fileID]string // the first name of files that have several
}

type fileID struct{ dev, ino uint64 }

func idOf(st *unix.Stat_t) fileID { return fileID{uint64(st.Dev), st.Ino} }

// read reads what an open directory holds.
func (w *dirWalk) read(dir *os.File, rel string) error {
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return err
	}
	sort.Strings(names)
	fd := int(dir.Fd())
	for _, name := range names {
		if err := w.entry(fd, name, path.Join(rel, name)); err != nil {
			return err
		}
	}
	return nil
}

// entry reads what a name stands for.
func (w *dirWalk) entry(dir int, name, rel string) error {
	var st unix.Stat_t
	if err := unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return &fs.PathError{Op: "stat", Path: w.path(rel), Err: err}
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		return w.put(rel, dir, name, &st)
	}
	fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return openError(w.path(rel), err)
	}
	sub := os.NewFile(uintptr(fd), w.path(rel))
	defer sub.Close()
	if err := unix.Fstat(fd, &st); err != nil {
		return &fs.PathError{Op: "stat", Path: w.path(rel), Err: err}
	}
	if err := w.put(rel, fd, "", &st); err != nil {
		return err
	}
	return w.read(sub, rel)
}

func (w *dirWalk) path(rel string) string { return filepath.Join(w.root.Name(), rel) }

func openError(name string, err error) error {
	err = &fs.PathError{Op: "open", Path: name, Err: err}
	if errors.Is(err, fs.ErrPermission) {
		return fault.Bad("%v", err)
	}
	return err
}

// put makes the inode of rel, which is called name in dir, or is dir itself.
func (w *dirWalk) put(rel string, dir int, name string, st *unix.Stat_t) (err error) {
	t := w.tree
	n := &Inode{Mode: st.Mode, UID: st.Uid, GID: st.Gid, Mtime: st.Mtim.Sec, Nanos: uint32(st.Mtim.Nsec)}
	if w.owner == Superuser {
		n.UID, n.GID = 0, 0
	}
	if n.Type() == Socket {
		return nil
	}
	if n.Type() != Dir && st.Nlink > 1 && (n.Type() == Regular || t.budget.Disk) {
		if first, ok := w.links[idOf(st)]; ok {
			return t.Link(rel, first)
		}
		w.links[idOf(st)] = rel
	}
	if t.budget.Disk {
		if err := n.readXattrs(dir, name, w.path(rel)); err != nil {
			return err
		}
	}
	switch n.Type() {
	case Regular:
		if st.Size > 0 {
			n.Data = NewBlob(&hostFile{w.root, rel, idOf(st)}, st.Size, st.Blocks*512)
		}
	case Symlink:
		if n.Target, err = readLink(dir, name); err != nil {
			return &fs.PathError{Op: "readlink", Path: w.path(rel), Err: err}
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
	return t.Put(rel, n)
}

func readLink(dir int, name string) (string, error) {
	var b [unix.PathMax]byte
	n, err := unix.Readlinkat(dir, name, b[:])
	return string(b[:max(n, 0)]), err
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

// readXattrs reads the extended attributes of the file that is called name in dir, or
// of dir itself; path is for messages.
func (n *Inode) readXattrs(dir int, name, path string) error {
	fd := dir
	if name != "" {
		var err error
		if fd, err = unix.Openat(dir, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0); err != nil {
			return openError(path, err)
		}
		defer unix.Close(fd)
	}
	here := "/proc/self/fd/" + strconv.Itoa(fd) // leads to what is open, even a link
	var names []byte
	for {
		size, err := unix.Listxattr(here, nil)
		if err != nil || size == 0 {
			if err == nil || errors.Is(err, unix.ENOTSUP) {
				return nil
			}
			return &fs.PathError{Op: "listxattr", Path: path, Err: err}
		}
		names = make([]byte, size)
		if size, err = unix.Listxattr(here, names); err == nil {
			names = names[:size]
			break
		}
		if !errors.Is(err, unix.ERANGE) { // another was added meanwhile
			return &fs.PathError{Op: "listxattr", Path: path, Err: err}
		}
	}
	value := make([]byte, 1<<16) // XATTR_SIZE_MAX
	for x := range strings.SplitSeq(strings.TrimRight(string(names), "\x00"), "\x00") {
		size, err := unix.Getxattr(here, x, value)
		if errors.Is(err, unix.ENODATA) {
			continue
		}
		if err != nil {
			return &fs.PathError{Op: "getxattr " + x, Path: path, Err: err}
		}
		n.setXattr(x, string(value[:size]))
	}
	return nil
}
