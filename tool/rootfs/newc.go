package rootfs

import (
	"bytes"
	"fmt"
	"io"
	"path"
	"strconv"
	"strings"

	"hardtack/tool/fault"
)

// The "newc" cpio format: for each file a header of 110 ASCII bytes, the name
// with its zero byte, and the content; name and content are padded to 4 bytes.
// The header's fields are 8 hexadecimal digits each.
const (
	newcHeader = 110
	newcMagic  = "070701"
	newcCRC    = "070702" // the same with a checksum field in use
	newcEnd    = "TRAILER!!!"
)

// pageSize is the alignment of large contents in the archive: the kernel
// takes such pages over where they lie instead of copying them.
const pageSize = 4096

// newcWriter writes an archive.
type newcWriter struct {
	w    io.Writer
	off  int64 // bytes written
	next uint32
	inos map[*Inode]uint32
	nlin map[*Inode]uint32
	buf  []byte
}

func newNewcWriter(w io.Writer) *newcWriter {
	return &newcWriter{w: w, inos: map[*Inode]uint32{}, nlin: map[*Inode]uint32{}, buf: make([]byte, copySize)}
}

func (c *newcWriter) write(b []byte) error {
	n, err := c.w.Write(b)
	c.off += int64(n)
	return err
}

var zeros [pageSize]byte

// pad writes zeros up to the next multiple of 4.
func (c *newcWriter) pad() error { return c.write(zeros[:-c.off&3]) }

// entry writes one file. For a content of a page or more the name is followed
// by as many zeros (counted in the name's size, so the archive stays valid) as
// bring the content to a page boundary.
func (c *newcWriter) entry(name string, n *Inode) error {
	ino, again := c.inos[n]
	if !again {
		c.next++
		ino = c.next
		c.inos[n] = ino
	}
	nlink := max(c.nlin[n], 1)
	if n.Type() == Dir {
		nlink = 2
	}
	size := n.Data.Size()
	if n.Type() == Symlink {
		size = int64(len(n.Target))
	}
	if again {
		size = 0 // the content went with the first name
	}
	if len(name) > pathMax {
		return fault.Bad("%.40q… is longer than %d bytes", name, pathMax)
	}
	if size > 1<<32-1 {
		return fault.Bad("%q is larger than 4 GiB", name)
	}
	nameSize := len(name) + 1
	if n.Type() == Regular && size >= pageSize {
		nameSize += int(-(c.off + newcHeader + int64(nameSize)) & (pageSize - 1))
	}
	head := fmt.Sprintf("%s%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X",
		newcMagic, ino, n.Mode, n.UID, n.GID, nlink, uint32(max(n.Mtime, 0)), uint32(size),
		0, 0, n.Major, n.Minor, nameSize, 0)
	if err := c.write([]byte(head + name)); err != nil {
		return err
	}
	if err := c.write(zeros[:nameSize-len(name)]); err != nil {
		return err
	}
	if err := c.pad(); err != nil {
		return err
	}
	switch {
	case size == 0:
	case n.Type() == Symlink:
		if err := c.write([]byte(n.Target)); err != nil {
			return err
		}
	default:
		m, err := io.CopyBuffer(onlyWriter{c.w}, n.Data.Open(), c.buf)
		c.off += m
		if err != nil {
			return err
		}
		if m != size {
			return fmt.Errorf("%s changed while it was read", name)
		}
	}
	return c.pad()
}

func (c *newcWriter) close() error {
	if err := c.entry(newcEnd, &Inode{}); err != nil {
		return err
	}
	return c.write(zeros[:-c.off&511])
}

// WriteInitrd writes what the kernel boots from: the boot record first, then
// the tree.
func (t *Tree) WriteInitrd(w io.Writer, boot *Boot) error {
	c := newNewcWriter(w)
	text, err := boot.encode()
	if err != nil {
		return err
	}
	if err := c.entry(bootName, &Inode{Mode: Regular | 0o600, Data: Bytes(text)}); err != nil {
		return err
	}
	err = t.Walk(func(_ string, n *Inode) error {
		if n.Type() != Dir {
			c.nlin[n]++
		}
		return nil
	})
	if err != nil {
		return err
	}
	err = t.Walk(func(name string, n *Inode) error {
		if name == "" {
			name = "."
		}
		return c.entry(name, n)
	})
	if err != nil {
		return err
	}
	return c.close()
}

// ReadCPIO puts the members of a newc archive into the tree; contents stay
// in r.
func (t *Tree) ReadCPIO(r *io.SectionReader) error {
	type link struct{ dev, ino uint32 }
	// A file of several names has its content with one of them, mostly the
	// last, and all of them share it.
	links := map[link]*Inode{}
	for off := int64(0); ; {
		m, err := readMember(r, off)
		if err != nil {
			return err
		}
		if m.name == newcEnd {
			return nil
		}
		off = m.end
		n := &m.inode
		switch n.Type() {
		case Symlink:
			if m.size > pathMax {
				return fault.Bad("%q is a damaged symbolic link", m.name)
			}
			target, err := io.ReadAll(m.data(r).Open())
			if err != nil {
				return damaged("cpio archive", err)
			}
			n.Target = strings.TrimRight(string(target), "\x00")
		case Regular:
			n.Data = m.data(r)
			if m.nlink <= 1 {
				break
			}
			key := link{m.dev, m.ino}
			shared := links[key]
			if shared == nil {
				links[key] = n
				break
			}
			if m.size > 0 {
				if err := t.charge(m.size, 0); err != nil {
					return err
				}
				shared.Data = n.Data
			}
			if err := t.putLink(m.name, shared); err != nil {
				return err
			}
			continue
		default:
			if m.size != 0 {
				return fault.Bad("damaged cpio archive: %q cannot have content", m.name)
			}
		}
		if path.Clean("/"+m.name) == "/"+bootName {
			continue // somebody's saved initrd: the record is this boot's alone
		}
		if err := t.Put(m.name, n); err != nil {
			return err
		}
	}
}

// putLink stores a further name of a file.
func (t *Tree) putLink(name string, n *Inode) error {
	bare := *n
	bare.Data = Blob{} // its bytes are charged already
	if err := t.Put(name, &bare); err != nil {
		return err
	}
	dir, last, err := t.parent(name)
	if err != nil {
		return err
	}
	dir.names[last] = n
	return nil
}

// member is one file of an archive as its header tells it.
type member struct {
	name     string
	inode    Inode
	ino, dev uint32
	nlink    uint32
	start    int64 // of the content
	size     int64
	end      int64 // where the next header is
}

func (m *member) data(r *io.SectionReader) Blob {
	return Blob{at: r, off: m.start, size: m.size, used: m.size}
}

func readMember(r *io.SectionReader, off int64) (*member, error) {
	var head [newcHeader]byte
	if _, err := r.ReadAt(head[:], off); err != nil {
		return nil, damaged("cpio archive", err)
	}
	if magic := string(head[:6]); magic != newcMagic && magic != newcCRC {
		return nil, fault.Bad("damaged cpio archive: no header at byte %d", off)
	}
	var f [13]uint32
	for i := range f {
		v, err := strconv.ParseUint(string(head[6+8*i:14+8*i]), 16, 32)
		if err != nil {
			return nil, fault.Bad("damaged cpio archive: header at byte %d", off)
		}
		f[i] = uint32(v)
	}
	m := &member{
		inode: Inode{Mode: f[1], UID: f[2], GID: f[3], Mtime: int64(f[5]), Major: f[9], Minor: f[10]},
		ino:   f[0], nlink: f[4], size: int64(f[6]), dev: f[7]<<16 ^ f[8],
	}
	nameSize := int64(f[11])
	if nameSize == 0 || nameSize > pathMax+1+pageSize {
		return nil, fault.Bad("damaged cpio archive: name of %d bytes at byte %d", nameSize, off)
	}
	name := make([]byte, nameSize)
	if _, err := r.ReadAt(name, off+newcHeader); err != nil {
		return nil, damaged("cpio archive", err)
	}
	text, rest, ok := bytes.Cut(name, []byte{0})
	if !ok || len(bytes.TrimLeft(rest, "\x00")) != 0 {
		return nil, fault.Bad("damaged cpio archive: name without end at byte %d", off)
	}
	m.name = string(text)
	m.start = (off + newcHeader + nameSize + 3) &^ 3
	m.end = (m.start + m.size + 3) &^ 3
	if m.start+m.size > r.Size() {
		return nil, damaged("cpio archive", io.ErrUnexpectedEOF)
	}
	if m.name != newcEnd && m.inode.Type() == 0 {
		return nil, fault.Bad("damaged cpio archive: %q has no file type", m.name)
	}
	return m, nil
}
