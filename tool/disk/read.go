package disk

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"hardtack/abi/linux"
	"hardtack/ext4"
	"hardtack/tool/fault"
	"hardtack/tool/rootfs"
)

// depthMax bounds directories in each other: a damaged disk may have a circle.
const depthMax = 1000

// Read reads the tree of a file system. Contents stay on the disk, which must
// remain mounted as long as the tree is used. The image's config, if the disk was
// made from one, is the tree's.
func Read(fs *ext4.FS) (*rootfs.Tree, error) {
	t := rootfs.New(rootfs.Budget{Disk: true})
	r := reader{fs: fs, seen: map[uint32]*rootfs.Inode{}}
	root, err := fs.Root()
	if err != nil {
		return nil, err
	}
	if t.Root, err = r.file(root, 0); err != nil {
		return nil, err
	}
	return t, readConfig(t)
}

// Peek reads the tree of a disk as it is or, if it was not unmounted, as its
// recovery will leave it; the disk is not written to.
func Peek(dev ext4.BlockDevice) (*rootfs.Tree, error) {
	fs, err := ext4.Mount(Overlay(dev), ext4.Options{ReadOnly: true})
	if err != nil {
		return nil, fault.Bad("%w", err)
	}
	return Read(fs)
}

func readConfig(t *rootfs.Tree) error {
	n, err := t.Lookup(ConfigName, false)
	if err != nil || n.Type() != rootfs.Regular {
		return nil
	}
	text, err := io.ReadAll(io.LimitReader(n.Data.Open(), 1<<20))
	if err != nil {
		return err
	}
	t.Config = new(rootfs.Config)
	if err := json.Unmarshal(text, t.Config); err != nil {
		return fault.Bad("/%s: %v", ConfigName, err)
	}
	return nil
}

type reader struct {
	fs   *ext4.FS
	seen map[uint32]*rootfs.Inode // files, for those with several names
}

// file takes the reference in over; only files of content keep it.
func (r *reader) file(in *ext4.Inode, depth int) (*rootfs.Inode, error) {
	var st linux.Stat
	in.Stat(&st)
	n := &rootfs.Inode{Mode: st.Mode, UID: st.UID, GID: st.GID, Mtime: st.Mtime.Sec, Nanos: uint32(st.Mtime.Nsec)}
	keep := false
	err := r.attributes(in, n)
	if err == nil {
		switch n.Type() {
		case rootfs.Dir:
			err = r.dir(in, n, depth)
		case rootfs.Regular:
			keep = true
			n.Data = rootfs.NewBlob(content{r.fs, in}, st.Size, st.Blocks*512)
		case rootfs.Symlink:
			n.Target, err = r.fs.Readlink(in)
		case rootfs.Char, rootfs.Block:
			n.Major, n.Minor = linux.Major(st.Rdev), linux.Minor(st.Rdev)
		}
	}
	r.seen[in.Ino()] = n
	if !keep {
		if e := r.fs.Put(in); err == nil {
			err = e
		}
	}
	return n, err
}

func (r *reader) attributes(in *ext4.Inode, n *rootfs.Inode) error {
	names, err := r.fs.Listxattr(in)
	if err != nil || len(names) == 0 {
		return err
	}
	n.Xattrs = map[string]string{}
	for _, x := range names {
		value, err := r.fs.Getxattr(in, x)
		if err != nil {
			return err
		}
		n.Xattrs[x] = string(value)
	}
	return nil
}

func (r *reader) dir(in *ext4.Inode, n *rootfs.Inode, depth int) error {
	if depth > depthMax {
		return fmt.Errorf("more than %d directories in each other", depthMax)
	}
	var list []ext4.Dirent
	err := r.fs.ReadDir(in, 0, func(d ext4.Dirent) bool {
		if d.Name != "." && d.Name != ".." {
			list = append(list, d)
		}
		return true
	})
	if err != nil {
		return err
	}
	for _, d := range list {
		child := r.seen[d.Ino]
		if child == nil {
			c, err := r.fs.Get(d.Ino)
			if err == nil {
				child, err = r.file(c, depth+1)
			}
			if err != nil {
				return fmt.Errorf("%s: %w", d.Name, err)
			}
		}
		n.Enter(d.Name, child)
	}
	return nil
}

// content is a file on a disk.
type content struct {
	fs *ext4.FS
	in *ext4.Inode
}

func (c content) ReadAt(p []byte, off int64) (int, error) {
	n, err := c.fs.ReadAt(c.in, p, off)
	if err == nil && n < len(p) {
		err = io.EOF
	}
	return n, err
}

func (c content) NextData(off int64) (start, end int64, err error) {
	if start, err = c.fs.Seek(c.in, off, linux.SEEK_DATA); errors.Is(err, linux.ENXIO) {
		return c.in.Size(), c.in.Size(), nil
	}
	if err == nil {
		end, err = c.fs.Seek(c.in, start, linux.SEEK_HOLE)
	}
	return start, end, err
}
