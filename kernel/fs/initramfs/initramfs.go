// Package initramfs unpacks the boot archive (cpio, "newc") into a tmpfs.
//
// The archive is in physical memory. Whole pages of file content that begin at a page
// boundary become the files' pages where they lie; everything else is copied, and the
// pages that are left over are given back, unless others use the archive. The archive is not trusted: damage gives an
// error.
package initramfs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"hardtack/abi/linux"
	"hardtack/kernel/base/mem"
	"hardtack/kernel/fs/tmpfs"
	"hardtack/kernel/fs/vfs"
)

// BootConfig is the record that comes first in the archive: what to run and how.
type BootConfig struct {
	Args     []string `json:"args"`
	Env      []string `json:"env"`
	Cwd      string   `json:"cwd"`
	UID      uint32   `json:"uid"`
	GID      uint32   `json:"gid"`
	Groups   []uint32 `json:"groups"`
	User     string   `json:"user"`
	Terminal bool     `json:"terminal"`
	Rows     int      `json:"rows"`
	Cols     int      `json:"cols"`
	Hostname string   `json:"hostname"`
	Net      struct {
		Mode    string `json:"mode"`
		Address string `json:"address"`
		Gateway string `json:"gateway"`
		DNS     string `json:"dns"`
		MTU     int    `json:"mtu"` // 0: the card's own
	} `json:"net"`
	ReadOnly bool `json:"readonly"`
	Tmpfs    []struct {
		Path    string `json:"path"`
		Options string `json:"options"`
	} `json:"tmpfs"`
	Reap    bool     `json:"reap"`
	Pprof   int      `json:"pprof"`
	Folders []Folder `json:"folders"`
}

// Folder is a folder of the host that is mounted before process 1 starts.
type Folder struct {
	Tag      string `json:"tag"`
	Path     string `json:"path"`
	ReadOnly bool   `json:"readonly"`
	Options  string `json:"options"`
}

// bootName is the record's name; it does not appear in the tree.
const bootName = ".hardtack/boot.json"

// The format: a header of 110 characters (magic, then 13 numbers of 8
// hexadecimal digits), the name with a zero byte, the content; name and content
// are padded to 4 bytes.
const (
	headerSize = 110
	trailer    = "TRAILER!!!"
	maxName    = linux.PATH_MAX + mem.PageSize // names may be padded with zeros up to a page
	maxDepth   = 256
)

// header is one file as its header tells it.
type header struct {
	ino, mode, uid, gid, nlink, mtime uint32
	major, minor                      uint32
	name                              []byte // in the archive
	data                              []byte // in the archive
	offset                            int    // of data
}

// unpacker is one run.
type unpacker struct {
	fs      *tmpfs.FS
	archive []byte
	first   mem.Frame
	links   map[uint32]*vfs.Inode // files of several names, by archive number
	dir     *vfs.Dentry           // where the last name went
	dirName string                // its name
	kept    int                   // pages before this one are adopted or given back
	free    func(first mem.Frame, n int)
	gaps    []gap
}

type gap struct {
	first mem.Frame
	n     int
}

// Unpack fills fs from the archive, which begins at a page boundary with frame
// first, and returns the boot record. free takes back frames that no file uses;
// they are not touched any more. If it is nil the archive is lent: its pages are read only, and a
// file that is to be written to gets pages of its own.
func Unpack(fs *tmpfs.FS, archive []byte, first mem.Frame, free func(first mem.Frame, n int)) (*BootConfig, error) {
	if free == nil {
		fs.Lend(first, (len(archive)+mem.PageSize-1)/mem.PageSize)
	}
	u := &unpacker{fs: fs, archive: archive, first: first, links: map[uint32]*vfs.Inode{}, dir: fs.Root, free: free}
	boot := &BootConfig{}
	for off, n := 0, 0; ; n++ {
		var h header
		next, err := u.header(off, &h)
		if err != nil {
			return nil, err
		}
		if string(h.name) == trailer {
			break
		}
		switch {
		case n == 0 && string(h.name) == bootName:
			if err := json.Unmarshal(h.data, boot); err != nil {
				return nil, fmt.Errorf("boot record: %w", err)
			}
		case n == 0:
			return nil, fmt.Errorf("boot archive begins with %q, not %s", h.name, bootName)
		default:
			if err := u.put(&h); err != nil {
				return nil, err
			}
		}
		off = next
	}
	u.skipTo((len(archive) + mem.PageSize - 1) / mem.PageSize)
	for _, g := range u.gaps {
		if free != nil {
			free(g.first, g.n)
		}
	}
	return boot, nil
}

// header reads the header at off and returns where the next one is.
func (u *unpacker) header(off int, h *header) (int, error) {
	if off > len(u.archive) || len(u.archive)-off < headerSize {
		return 0, fmt.Errorf("boot archive ends early, at byte %d", off)
	}
	b := u.archive[off : off+headerSize]
	if m := string(b[:6]); m != "070701" && m != "070702" {
		return 0, fmt.Errorf("boot archive is damaged: no header at byte %d", off)
	}
	var f [13]uint32
	for i := range f {
		v, ok := parseHex(b[6+8*i : 14+8*i])
		if !ok {
			return 0, fmt.Errorf("boot archive is damaged: header at byte %d", off)
		}
		f[i] = v
	}
	h.ino, h.mode, h.uid, h.gid, h.nlink, h.mtime = f[0], f[1], f[2], f[3], f[4], f[5]
	h.major, h.minor = f[9], f[10]
	nameSize, size := uint64(f[11]), uint64(f[6])
	start := (uint64(off) + headerSize + nameSize + 3) &^ 3
	end := start + size
	if nameSize == 0 || nameSize > maxName || end > uint64(len(u.archive)) {
		return 0, fmt.Errorf("boot archive is damaged: sizes at byte %d", off)
	}
	name := u.archive[off+headerSize : off+headerSize+int(nameSize)]
	k := bytes.IndexByte(name, 0)
	if k < 0 {
		return 0, fmt.Errorf("boot archive is damaged: name at byte %d", off)
	}
	h.name = name[:k]
	h.offset = int(start)
	h.data = u.archive[start:end]
	return int((end + 3) &^ 3), nil
}

// parseHex reads 8 hexadecimal digits.
func parseHex(b []byte) (v uint32, ok bool) {
	for _, c := range b {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		default:
			return 0, false
		}
		v = v<<4 | uint32(c)
	}
	return v, true
}

// put makes one file.
func (u *unpacker) put(h *header) error {
	name := strings.Trim(string(h.name), "/")
	for strings.HasPrefix(name, "./") {
		name = strings.TrimLeft(name[2:], "/")
	}
	node := vfs.NewNode{Mode: h.mode & (linux.S_IFMT | 0o7777), UID: h.uid, GID: h.gid}
	kind := h.mode & linux.S_IFMT
	if name == "." || name == "" {
		if kind == linux.S_IFDIR {
			u.attributes(u.fs.Root.Inode, h)
		}
		return nil
	}
	if name == bootName {
		return nil
	}
	dir, base, err := u.parent(name)
	if err != nil {
		return err
	}
	if old := dir.Child(base); old != nil {
		if kind == linux.S_IFDIR && old.Inode.IsDir() {
			u.attributes(old.Inode, h)
			return nil
		}
		if e := dir.RemoveChild(base); e != 0 {
			return fmt.Errorf("boot archive has %q twice", name)
		}
	}
	var i *vfs.Inode
	var e linux.Errno
	switch kind {
	case linux.S_IFREG:
		if h.nlink > 1 {
			if i = u.links[h.ino]; i != nil {
				return u.link(dir, base, i, h)
			}
		}
		if i, e = u.fs.Make(&node); e == 0 {
			if h.nlink > 1 {
				u.links[h.ino] = i
			}
			e = u.fill(i, h)
		}
	case linux.S_IFLNK:
		if len(h.data) == 0 || len(h.data) >= linux.PATH_MAX {
			return fmt.Errorf("boot archive is damaged: link %q", name)
		}
		node.Target = string(bytes.TrimRight(h.data, "\x00"))
		i, e = u.fs.Make(&node)
	case linux.S_IFDIR, linux.S_IFIFO, linux.S_IFSOCK:
		i, e = u.fs.Make(&node)
	case linux.S_IFCHR, linux.S_IFBLK:
		node.Rdev = linux.Makedev(h.major, h.minor)
		i, e = u.fs.Make(&node)
	default:
		return fmt.Errorf("boot archive is damaged: %q has type %o", name, kind)
	}
	if e == 0 {
		_, e = dir.AddChild(base, i)
	}
	if e != 0 {
		return fmt.Errorf("unpacking %q: %w", name, e)
	}
	i.SetTimes(int64(h.mtime) * 1e9)
	return nil
}

func (u *unpacker) attributes(i *vfs.Inode, h *header) {
	i.SetOwner(h.uid, h.gid, h.mode&0o7777)
	i.SetTimes(int64(h.mtime) * 1e9)
}

// link gives a file that is there a further name; content comes with one of them.
func (u *unpacker) link(dir *vfs.Dentry, base string, i *vfs.Inode, h *header) error {
	if len(h.data) > 0 && i.Size() == 0 {
		if e := u.fill(i, h); e != 0 {
			return fmt.Errorf("unpacking %q: %w", base, e)
		}
	}
	if e := dir.LinkChild(base, i); e != 0 {
		return fmt.Errorf("unpacking %q: %w", base, e)
	}
	return nil
}

// parent returns the directory of a name, making those that are missing.
func (u *unpacker) parent(name string) (*vfs.Dentry, string, error) {
	dirName, base := "", name
	if k := strings.LastIndexByte(name, '/'); k >= 0 {
		dirName, base = name[:k], name[k+1:]
	}
	if base == "." || base == ".." || len(base) > linux.NAME_MAX {
		return nil, "", fmt.Errorf("boot archive has a wild name %q", name)
	}
	if dirName == u.dirName {
		return u.dir, base, nil
	}
	d := u.fs.Root
	depth := 0
	for part := range strings.SplitSeq(dirName, "/") {
		if part == "" {
			continue
		}
		if depth++; part == "." || part == ".." || len(part) > linux.NAME_MAX || depth > maxDepth {
			return nil, "", fmt.Errorf("boot archive has a wild name %q", name)
		}
		next := d.Child(part)
		if next == nil {
			i, e := u.fs.Make(&vfs.NewNode{Mode: linux.S_IFDIR | 0o755})
			if e == 0 {
				next, e = d.AddChild(part, i)
			}
			if e != 0 {
				return nil, "", fmt.Errorf("unpacking %q: %w", name, e)
			}
		}
		if !next.Inode.IsDir() {
			return nil, "", fmt.Errorf("boot archive has %q below a file", name)
		}
		d = next
	}
	u.dir, u.dirName = d, dirName
	return d, base, nil
}

// fill gives a file its content.
func (u *unpacker) fill(i *vfs.Inode, h *header) linux.Errno {
	page := h.offset / mem.PageSize
	whole := len(h.data) / mem.PageSize
	if h.offset%mem.PageSize != 0 || whole == 0 || page < u.kept {
		return u.fs.Fill(i, 0, h.data)
	}
	u.skipTo(page)
	u.kept = page + whole
	u.fs.Adopt(i, u.first+mem.Frame(page), whole)
	return u.fs.Fill(i, whole, h.data[whole*mem.PageSize:])
}

// skipTo says that the pages up to page are used by nobody.
func (u *unpacker) skipTo(page int) {
	if page > u.kept {
		u.gaps = append(u.gaps, gap{u.first + mem.Frame(u.kept), page - u.kept})
		u.kept = page
	}
}
