package rootfs

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"hardtack/tool/fault"
)

const openNoFollow = unix.O_NOFOLLOW | unix.O_NONBLOCK

// ReadDir puts a directory of the host into the tree. Links are kept, never
// followed; sockets and device nodes are the host's business and left out.
// Files of one inode stay one file.
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
		n := &Inode{Mode: st.Mode, UID: st.Uid, GID: st.Gid, Mtime: st.Mtim.Sec}
		if owner == Superuser {
			n.UID, n.GID = 0, 0
		}
		switch n.Type() {
		case Regular:
			if st.Nlink > 1 {
				key := id{st.Dev, st.Ino}
				if first, ok := links[key]; ok {
					return t.Link(rel, first)
				}
				links[key] = rel
			}
			if st.Size > 0 {
				n.Data = Blob{at: hostFile(name), size: st.Size}
			}
		case Symlink:
			if n.Target, err = os.Readlink(name); err != nil {
				return err
			}
		case Dir, FIFO:
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
