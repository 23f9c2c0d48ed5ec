package rootfs

import (
	"archive/tar"
	"encoding/json"
	"errors"
	"io"
	"path"
	"strings"
	"time"

	"hardtack/tool/fault"
)

// configName is where a tar made from an image keeps the image's Config.
const configName = ".hardtack/config.json"

// configMax bounds that member.
const configMax = 1 << 20

// xattrRecord begins the records of a tar that hold extended attributes.
const xattrRecord = "SCHILY.xattr."

// Whiteouts of an image's layers: names that say what a layer takes away.
const (
	whiteoutPrefix = ".wh."
	whiteoutOpaque = ".wh..wh..opq"
)

// ReadTar puts the members of a tar into the tree. The contents stay in r,
// which must remain readable as long as the tree is used.
func (t *Tree) ReadTar(r *io.SectionReader) error {
	return t.ReadTarIf(r, func(string) bool { return true })
}

// ReadTarIf is ReadTar for the members whose names keep wants; they come
// clean, without a leading slash.
func (t *Tree) ReadTarIf(r *io.SectionReader, keep func(name string) bool) error {
	return eachMember(r, func(h *tar.Header, data func() (Blob, error)) error {
		if !keep(path.Clean("/" + h.Name)[1:]) {
			return nil
		}
		return t.putMember(h, data)
	})
}

// ReadLayer puts a layer of an image over what the tree holds: first what the
// layer takes away, then what it adds, whatever their order in the tar.
func (t *Tree) ReadLayer(r *io.SectionReader) error {
	err := eachMember(r, func(h *tar.Header, _ func() (Blob, error)) error {
		if _, err := split(h.Name); err != nil {
			return err
		}
		dir, base := path.Split(path.Clean("/" + h.Name))
		switch {
		case base == whiteoutOpaque:
			return t.Clear(dir)
		case strings.HasPrefix(base, whiteoutPrefix):
			return t.Remove(dir + strings.TrimPrefix(base, whiteoutPrefix))
		}
		return nil
	})
	if err != nil {
		return err
	}
	return eachMember(r, func(h *tar.Header, data func() (Blob, error)) error {
		if strings.HasPrefix(path.Base(h.Name), whiteoutPrefix) {
			return nil
		}
		return t.putMember(h, data)
	})
}

// eachMember calls f for every member; data gives its content.
func eachMember(r *io.SectionReader, f func(h *tar.Header, data func() (Blob, error)) error) error {
	if _, err := r.Seek(0, io.SeekStart); err != nil {
		return err
	}
	tr := tar.NewReader(r)
	for first := true; ; first = false {
		h, err := tr.Next()
		if err == io.EOF {
			if first && r.Size() > 0 && !endsAsTar(r) {
				return fault.Bad("damaged tar: no members")
			}
			return nil
		}
		if err != nil {
			return damaged("tar", err)
		}
		if err := f(h, func() (Blob, error) { return memberData(r, tr, h) }); err != nil {
			return err
		}
	}
}

// endsAsTar says whether an archive without members is at least the two zero
// blocks of an empty tar.
func endsAsTar(r *io.SectionReader) bool { return r.Size() >= 1024 }

// memberData is the content of the current member: a window on the archive
// where it is there as it is, a copy where the member is sparse.
func memberData(r *io.SectionReader, tr *tar.Reader, h *tar.Header) (Blob, error) {
	if h.Size == 0 {
		return Blob{}, nil
	}
	if isSparse(h) {
		s, err := Spool(tr, h.Size)
		if err != nil {
			return Blob{}, damaged("tar", err)
		}
		return NewBlob(s, s.Size(), s.Size()), nil
	}
	off, err := r.Seek(0, io.SeekCurrent)
	if err != nil {
		return Blob{}, err
	}
	if h.Size < 0 || h.Size > r.Size()-off {
		return Blob{}, damaged("tar", io.ErrUnexpectedEOF)
	}
	return Blob{at: r, off: off, size: h.Size, used: h.Size}, nil
}

func isSparse(h *tar.Header) bool {
	if h.Typeflag == tar.TypeGNUSparse {
		return true
	}
	for key := range h.PAXRecords {
		if strings.HasPrefix(key, "GNU.sparse.") {
			return true
		}
	}
	return false
}

// damaged turns what a decoder says of bad bytes into the user's error; an
// error that has a status already keeps it.
func damaged(what string, err error) error {
	if fault.Status(err) != fault.Host {
		return err
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fault.Bad("damaged %s: it ends too early", what)
	}
	return fault.Bad("damaged %s: %w", what, err)
}

func (t *Tree) putMember(h *tar.Header, data func() (Blob, error)) error {
	n := &Inode{
		Mode:  uint32(h.Mode) & permMask,
		UID:   uint32(h.Uid),
		GID:   uint32(h.Gid),
		Mtime: h.ModTime.Unix(),
		Nanos: uint32(h.ModTime.Nanosecond()),
	}
	if t.budget.Disk {
		for key, value := range h.PAXRecords {
			if name, ok := strings.CutPrefix(key, xattrRecord); ok {
				n.setXattr(name, value)
			}
		}
	}
	if h.Uid < 0 || h.Gid < 0 || int64(h.Uid) > 1<<32-1 || int64(h.Gid) > 1<<32-1 {
		return fault.Bad("%q has an owner out of range", h.Name)
	}
	switch h.Typeflag {
	case tar.TypeReg, tar.TypeCont, tar.TypeGNUSparse:
		if strings.TrimPrefix(path.Clean("/"+h.Name), "/") == configName {
			return t.readConfig(h, data)
		}
		// The size is the header's word: charge it before anything is copied.
		if h.Size > t.budget.Bytes {
			return t.charge(h.Size, 1)
		}
		var err error
		if n.Data, err = data(); err != nil {
			return err
		}
		n.Mode |= Regular
	case tar.TypeDir:
		n.Mode |= Dir
	case tar.TypeSymlink:
		n.Mode, n.Target = n.Mode|Symlink|0o777, h.Linkname
	case tar.TypeLink:
		return t.Link(h.Name, h.Linkname)
	case tar.TypeChar, tar.TypeBlock:
		n.Mode |= Char
		if h.Typeflag == tar.TypeBlock {
			n.Mode = n.Mode&^TypeMask | Block
		}
		if h.Devmajor < 0 || h.Devminor < 0 || h.Devmajor > 1<<12-1 || h.Devminor > 1<<20-1 {
			return fault.Bad("%q has a device number out of range", h.Name)
		}
		n.Major, n.Minor = uint32(h.Devmajor), uint32(h.Devminor)
	case tar.TypeFifo:
		n.Mode |= FIFO
	case tar.TypeXGlobalHeader:
		return nil
	default:
		return fault.Bad("%q has the unknown tar type %q", h.Name, h.Typeflag)
	}
	return t.Put(h.Name, n)
}

func (t *Tree) readConfig(h *tar.Header, data func() (Blob, error)) error {
	if h.Size > configMax {
		return fault.Bad("%s is larger than %d bytes", configName, configMax)
	}
	b, err := data()
	if err != nil {
		return err
	}
	text, err := io.ReadAll(b.Open())
	if err != nil {
		return err
	}
	t.Config = new(Config)
	if err := json.Unmarshal(text, t.Config); err != nil {
		return fault.Bad("%s: %v", configName, err)
	}
	return nil
}

// WriteTar writes the tree as a tar. The same tree gives the same bytes:
// names in order, no names of owners, times as the tree has them.
func (t *Tree) WriteTar(w io.Writer) error {
	tw := tar.NewWriter(w)
	if t.Config != nil {
		text, err := json.MarshalIndent(t.Config, "", "  ")
		if err != nil {
			return err
		}
		h := &tar.Header{Name: configName, Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(text)), ModTime: time.Unix(0, 0), Format: tar.FormatPAX}
		if err := tw.WriteHeader(h); err != nil {
			return err
		}
		if _, err := tw.Write(text); err != nil {
			return err
		}
	}
	buf := make([]byte, copySize)
	first := map[*Inode]string{}
	err := t.Walk(func(name string, n *Inode) error {
		h := &tar.Header{
			Name: name, Mode: int64(n.Perm()), Uid: int(n.UID), Gid: int(n.GID),
			ModTime: time.Unix(n.Mtime, 0), Format: tar.FormatPAX,
		}
		for attribute, value := range n.Xattrs {
			if h.PAXRecords == nil {
				h.PAXRecords = map[string]string{}
			}
			h.PAXRecords[xattrRecord+attribute] = value
		}
		switch n.Type() {
		case Regular:
			h.Typeflag, h.Size = tar.TypeReg, n.Data.Size()
		case Dir:
			h.Typeflag, h.Name = tar.TypeDir, "./"+name+"/"
			if name == "" {
				h.Name = "./"
			}
		case Symlink:
			h.Typeflag, h.Linkname = tar.TypeSymlink, n.Target
		case Char:
			h.Typeflag, h.Devmajor, h.Devminor = tar.TypeChar, int64(n.Major), int64(n.Minor)
		case Block:
			h.Typeflag, h.Devmajor, h.Devminor = tar.TypeBlock, int64(n.Major), int64(n.Minor)
		case FIFO:
			h.Typeflag = tar.TypeFifo
		default:
			return nil // a socket has no place in a tar and no meaning after a boot
		}
		if n.Type() != Dir {
			h.Name = "./" + name
			if to, ok := first[n]; ok {
				h.Typeflag, h.Linkname, h.Size = tar.TypeLink, to, 0
			} else {
				first[n] = h.Name
			}
		}
		if err := tw.WriteHeader(h); err != nil {
			return err
		}
		if h.Size == 0 {
			return nil
		}
		_, err := io.CopyBuffer(onlyWriter{tw}, n.Data.Open(), buf)
		return err
	})
	if err != nil {
		return err
	}
	return tw.Close()
}

// TarSize is about how long the tar of the tree is: what progress is measured by.
func (t *Tree) TarSize() int64 {
	const block = 512
	size, seen := int64(2*block), map[*Inode]bool{}
	_ = t.Walk(func(_ string, n *Inode) error {
		if size += block; n.Type() == Regular && !seen[n] {
			seen[n] = true
			size += (n.Data.Size() + block - 1) &^ (block - 1)
		}
		return nil
	})
	return size
}

// copySize is large because a Blob on a host file opens the file per read.
const copySize = 1 << 20

// onlyWriter hides a writer's ReadFrom, so that io.CopyBuffer uses its buffer.
type onlyWriter struct{ io.Writer }
