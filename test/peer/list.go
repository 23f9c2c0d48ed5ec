package peer

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"hardtack/abi/linux"
	"hardtack/ext4"
)

// block is the unit in which contents are hashed.
const block = 4096

// list tells of all files of a file system as peer.c's list does, a line each.
func list(fs *ext4.FS, disk int) (string, error) {
	l := lister{fs: fs, disk: disk, buf: make([]byte, block)}
	root, err := fs.Root()
	if err != nil {
		return "", err
	}
	defer fs.Put(root)
	err = l.file(root, "")
	return l.out.String(), err
}

type lister struct {
	fs   *ext4.FS
	disk int
	out  strings.Builder
	buf  []byte
}

func (l *lister) tell(format string, args ...any) { fmt.Fprintf(&l.out, format, args...) }

func (l *lister) quoted(s string) {
	for _, c := range []byte(s) {
		if c > ' ' && c < 127 && c != '%' {
			l.tell("%c", c)
		} else {
			l.tell("%%%02x", c)
		}
	}
}

func (l *lister) file(in *ext4.Inode, name string) error {
	var st linux.Stat
	in.Stat(&st)
	kind := st.Mode & linux.S_IFMT
	size := st.Size
	if kind == linux.S_IFDIR {
		size = 0
	}
	l.tell("%d ", l.disk)
	if name == "" {
		l.tell("/")
	}
	l.quoted(name)
	l.tell(" %06o %d:%d %d %d %d.%09d %d.%09d", st.Mode, st.UID, st.GID, st.Nlink, size,
		st.Mtime.Sec, st.Mtime.Nsec, st.Ctime.Sec, st.Ctime.Nsec)
	switch kind {
	case linux.S_IFREG:
		h, err := l.content(in)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		l.tell(" %016x", h)
	case linux.S_IFLNK:
		target, err := l.fs.Readlink(in)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		l.tell(" ")
		l.quoted(target)
	case linux.S_IFCHR, linux.S_IFBLK:
		l.tell(" %d:%d", linux.Major(st.Rdev), linux.Minor(st.Rdev))
	default:
		l.tell(" -")
	}
	names, err := l.fs.Listxattr(in)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	for _, x := range names {
		v, err := l.fs.Getxattr(in, x)
		if err != nil {
			return fmt.Errorf("%s: %s: %w", name, x, err)
		}
		l.tell(" ")
		l.quoted(x)
		l.tell("=%d:%016x", len(v), mix(mixStart, v))
	}
	l.tell("\n")
	if kind == linux.S_IFDIR {
		return l.dir(in, name)
	}
	return nil
}

func (l *lister) dir(in *ext4.Inode, name string) error {
	var list []ext4.Dirent
	err := l.fs.ReadDir(in, 0, func(d ext4.Dirent) bool {
		if d.Name != "." && d.Name != ".." {
			list = append(list, d)
		}
		return true
	})
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	slices.SortFunc(list, func(a, b ext4.Dirent) int { return strings.Compare(a.Name, b.Name) })
	for _, d := range list {
		child, err := l.fs.Get(d.Ino)
		if err != nil {
			return fmt.Errorf("%s/%s: %w", name, d.Name, err)
		}
		err = l.file(child, name+"/"+d.Name)
		if e := l.fs.Put(child); err == nil {
			err = e
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// content is a hash of the blocks that are not all zeros, and their numbers.
func (l *lister) content(in *ext4.Inode) (uint64, error) {
	h := uint64(mixStart)
	for off := int64(0); off < in.Size(); off += block {
		data, err := l.fs.Seek(in, off, linux.SEEK_DATA)
		if errors.Is(err, linux.ENXIO) {
			break
		}
		if err != nil {
			return 0, err
		}
		off = data / block * block
		n, err := l.fs.ReadAt(in, l.buf, off)
		if err != nil && err != io.EOF {
			return 0, err
		}
		if !slices.ContainsFunc(l.buf[:n], func(c byte) bool { return c != 0 }) {
			continue
		}
		var number [8]byte
		binary.LittleEndian.PutUint64(number[:], uint64(off/block))
		h = mix(mix(h, number[:]), l.buf[:n])
	}
	return h, nil
}

const mixStart = 14695981039346656037

// mix adds bytes to a hash, eight at a time; peer.c has the same.
func mix(h uint64, p []byte) uint64 {
	for ; len(p) > 0; p = p[min(8, len(p)):] {
		var w [8]byte
		copy(w[:], p)
		h = (h ^ binary.LittleEndian.Uint64(w[:])) * 1099511628211
		h ^= h >> 32
	}
	return h
}
