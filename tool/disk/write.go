package disk

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"

	"hardtack/abi/linux"
	"hardtack/ext4"
	"hardtack/tool/fault"
	"hardtack/tool/rootfs"
)

// ConfigName is where a disk made from an image keeps the image's config.
const ConfigName = ".hardtack/config.json"

// Options describe a disk to be made.
type Options struct {
	Label  string // at most 16 bytes
	Zeroed bool   // the file reads as zeros: a new one
}

// mountPoints are what every guest mounts on or expects to be there.
var mountPoints = []struct {
	name string
	mode uint32
}{{"dev", 0o755}, {"proc", 0o555}, {"sys", 0o555}, {"run", 0o755}, {"tmp", 0o1777}}

// Write makes a file system on the first size bytes of f and puts the tree into
// it. Times of last access and change are those of now; everything else is as the
// tree says. Blocks of zeros become holes.
func Write(f *os.File, size int64, tree *rootfs.Tree, o Options) error {
	if err := complete(tree); err != nil {
		return err
	}
	need := measure(tree)
	dev := ext4.NewFileDevice(lazy{f}, size)
	small := func(err error) error {
		return fault.Bad("%d MiB are too few for this root, which takes about %d MiB and %d files: %v",
			size>>20, need.bytes()>>20+1, need.files, err)
	}
	err := ext4.Mkfs(dev, ext4.MkfsOptions{Label: o.Label, Zeroed: o.Zeroed, BytesPerInode: need.perInode(size)})
	if errors.Is(err, linux.ENOSPC) {
		return small(err)
	}
	if err != nil {
		return err
	}
	fs, err := ext4.Mount(dev, ext4.Options{})
	if err != nil {
		return err
	}
	w := writer{fs: fs, written: map[*rootfs.Inode]uint32{}, buf: make([]byte, chunk)}
	err = w.tree(tree.Root)
	if e := fs.Unmount(); err == nil {
		err = e
	}
	if errors.Is(err, linux.ENOSPC) {
		return small(err)
	}
	if err != nil {
		return err
	}
	return f.Sync()
}

// lazy is a file whose content need not be durable before the end: who has half
// a disk throws it away.
type lazy struct{ *os.File }

func (lazy) Sync() error { return nil }

// complete adds to a tree what a root needs, and the image's config.
func complete(tree *rootfs.Tree) error {
	for _, m := range mountPoints {
		if _, err := tree.Lookup(m.name, true); err == nil {
			continue
		}
		if err := tree.Put(m.name, &rootfs.Inode{Mode: rootfs.Dir | m.mode}); err != nil {
			return err
		}
	}
	if tree.Config == nil {
		return nil
	}
	text, err := json.MarshalIndent(tree.Config, "", "  ")
	if err != nil {
		return err
	}
	return tree.Put(ConfigName, &rootfs.Inode{Mode: rootfs.Regular | 0o644, Data: rootfs.Bytes(text)})
}

// size is what a tree takes.
type size struct{ data, files, dirs int64 }

func measure(tree *rootfs.Tree) (s size) {
	seen := map[*rootfs.Inode]bool{}
	_ = tree.Walk(func(_ string, n *rootfs.Inode) error {
		if seen[n] {
			return nil
		}
		seen[n] = true
		s.files++
		switch n.Type() {
		case rootfs.Dir:
			s.dirs++
		case rootfs.Regular:
			s.data += (n.Data.Cost() + 4095) &^ 4095
		}
		return nil
	})
	return s
}

// bytes is a guess at the disk that the tree needs: contents, inodes, blocks of
// directories, 5 % that are kept for the superuser, journal and bitmaps.
func (s size) bytes() int64 {
	n := s.data + 256*s.files + 4096*s.dirs
	return n + n/16 + 8<<20
}

// perInode is how many bytes of the disk have an inode: mke2fs's number unless
// the tree has more files than that gives, and a fourth more.
func (s size) perInode(disk int64) int64 {
	return max(min(16384, disk/(s.files+s.files/4+64)), 4096)
}

// chunk is how much of a file is read at a time, a multiple of the block size.
const chunk = 1 << 20

// writer puts a tree on a disk.
type writer struct {
	fs      *ext4.FS
	written map[*rootfs.Inode]uint32 // files with more names may come
	buf     []byte
}

func (w *writer) tree(root *rootfs.Inode) error {
	in, err := w.fs.Root()
	if err != nil {
		return err
	}
	err = w.dir("", in, root)
	if e := w.fs.Put(in); err == nil {
		err = e
	}
	return err
}

// dir fills a directory, then gives it its attributes: a name that is made
// changes its time.
func (w *writer) dir(name string, in *ext4.Inode, n *rootfs.Inode) error {
	for _, child := range n.Names() {
		if err := w.entry(path.Join(name, child), in, child, n.Child(child)); err != nil {
			return err
		}
	}
	return w.attributes(name, in, n)
}

// entry makes one name.
func (w *writer) entry(name string, dir *ext4.Inode, child string, n *rootfs.Inode) (err error) {
	if ino, ok := w.written[n]; ok {
		in, err := w.fs.Get(ino)
		if err != nil {
			return err
		}
		err = w.fs.Link(dir, child, in)
		if e := w.fs.Put(in); err == nil {
			err = e
		}
		return named(name, err)
	}
	in, err := w.create(dir, child, n)
	if err != nil {
		return named(name, err)
	}
	defer func() {
		if e := w.fs.Put(in); err == nil {
			err = e
		}
	}()
	switch n.Type() {
	case rootfs.Dir:
		return w.dir(name, in, n)
	case rootfs.Regular:
		if err := w.content(in, n.Data); err != nil {
			return named(name, err)
		}
	}
	w.written[n] = in.Ino()
	return w.attributes(name, in, n)
}

// create makes a file, or finds the directory that each file system has.
func (w *writer) create(dir *ext4.Inode, child string, n *rootfs.Inode) (*ext4.Inode, error) {
	if n.Type() == rootfs.Dir {
		ino, err := w.fs.Lookup(dir, child)
		if err != nil {
			return nil, err
		}
		if ino != 0 { // lost+found
			return w.fs.Get(ino)
		}
	}
	return w.fs.Create(dir, child, ext4.NewInode{Mode: n.Mode, UID: n.UID, GID: n.GID,
		Rdev: linux.Makedev(n.Major, n.Minor), Target: n.Target})
}

// content writes a file's bytes, but for blocks of zeros.
func (w *writer) content(in *ext4.Inode, b rootfs.Blob) error {
	for off := int64(0); off < b.Size(); {
		start, end, err := b.NextData(off)
		if err != nil {
			return err
		}
		if off = start &^ (blockSize - 1); off >= b.Size() {
			break
		}
		for off < end {
			n, err := b.Open().ReadAt(w.buf[:min(chunk, b.Size()-off)], off)
			if err != nil && err != io.EOF {
				return err
			}
			if n == 0 {
				return errors.New("it changed while it was read")
			}
			if err := w.blocks(in, w.buf[:n], off); err != nil {
				return err
			}
			off += int64(n)
		}
	}
	return w.fs.Truncate(in, b.Size())
}

const blockSize = 4096

var zeros [blockSize]byte

// blocks writes the runs of blocks that are not all zeros.
func (w *writer) blocks(in *ext4.Inode, p []byte, off int64) error {
	isZero := func(at int) bool {
		b := p[at:min(at+blockSize, len(p))]
		return bytes.Equal(b, zeros[:len(b)])
	}
	for at := 0; at < len(p); {
		if isZero(at) {
			at += blockSize
			continue
		}
		end := at
		for end < len(p) && !isZero(end) {
			end += blockSize
		}
		end = min(end, len(p))
		if _, err := w.fs.WriteAt(in, p[at:end], off+int64(at)); err != nil {
			return err
		}
		at = end
	}
	return nil
}

// attributes sets what creating a file does not.
func (w *writer) attributes(name string, in *ext4.Inode, n *rootfs.Inode) error {
	for _, x := range sorted(n.Xattrs) {
		if err := w.fs.Setxattr(in, x, append([]byte{}, n.Xattrs[x]...), 0); err != nil {
			return named(name+": attribute "+x, err)
		}
	}
	mode, uid, gid, mtime := n.Perm(), n.UID, n.GID, n.Mtime*1e9+int64(n.Nanos)
	return named(name, w.fs.SetAttr(in, ext4.Attr{Mode: &mode, UID: &uid, GID: &gid, Mtime: &mtime}))
}

func sorted(m map[string]string) []string {
	list := make([]string, 0, len(m))
	for name := range m {
		list = append(list, name)
	}
	slices.Sort(list)
	return list
}

func named(name string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("/%s: %w", name, err)
}
