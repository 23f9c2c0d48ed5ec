package procfs

import (
	"bytes"
	"fmt"

	"hardtack/abi/linux"
	"hardtack/kernel/fs/vfs"
	"hardtack/kernel/process/proc"
)

var (
	// fdLinks are the links of descriptors, by what the files are open for: reading (1),
	// writing (2) or both.
	fdLinks = [4]*entry{newFDLink(0), newFDLink(0o500), newFDLink(0o300), newFDLink(0o700)}
	fdLink  = fdLinks[3]
	fdInfo  = &entry{mode: 0o444, read: readFDInfo}
)

// file returns the open file that x is about with a reference.
func (x *about) file() (f *vfs.File, cloexec bool, e linux.Errno) {
	f, cloexec, e = x.process().InspectFile(x.t, x.c, proc.FSCreds, x.fd)
	switch {
	case e != 0:
		e = linux.EACCES
	case f == nil:
		e = linux.ENOENT
	}
	return f, cloexec, e
}

func newFDLink(mode uint32) *entry { return &entry{mode: mode, link: fdText, jump: fdPath} }

// fdLinkOf is the link that shows what f is open for.
func fdLinkOf(f *vfs.File) *entry {
	n := 0
	if f.Readable() {
		n = 1
	}
	if f.Writable() {
		n |= 2
	}
	return fdLinks[n]
}

func findFDEntry(x *about, name string, e *entry) (*entry, *about) {
	fd, ok := parseNumber(name)
	if !ok {
		return nil, nil
	}
	y := *x
	y.fd = fd
	switch f, _, err := y.file(); err {
	case 0:
		if e == fdLink {
			e = fdLinkOf(f)
		}
		f.Put()
	case linux.EACCES: // whatever is to be done with it says so
	default:
		return nil, nil
	}
	return e, &y
}

func findFD(x *about, name string) (*entry, *about) { return findFDEntry(x, name, fdLink) }

func findFDInfo(x *about, name string) (*entry, *about) { return findFDEntry(x, name, fdInfo) }

// listBatch descriptors are listed for each check.
const listBatch = 64

// listFDs lists the descriptors from x.fd on.
func listFDs(e *entry) func(*about, func(string, *entry, *about) bool) {
	return func(x *about, emit func(string, *entry, *about) bool) {
		var list [listBatch]int32
		for first := x.fd; first >= 0; {
			n, err := x.process().InspectFDs(x.t, x.c, proc.FSCreds, first, list[:])
			if err != 0 || n == 0 {
				return
			}
			for _, fd := range list[:n] {
				if !emit(itoa(fd), e, nil) {
					return
				}
			}
			first = list[n-1] + 1
		}
	}
}

func fdText(x *about) (string, linux.Errno) {
	f, _, e := x.file()
	if e != 0 {
		return "", e
	}
	defer f.Put()
	return target(f.NameOf(x.root()))
}

func fdPath(x *about) (vfs.Path, linux.Errno) {
	f, _, e := x.file()
	if e != 0 {
		return vfs.Path{}, e
	}
	defer f.Put()
	return f.PathOf(), 0
}

func readFDInfo(x *about) ([]byte, linux.Errno) {
	f, cloexec, e := x.file()
	if e != 0 {
		return nil, e
	}
	defer f.Put()
	pos := int64(0)
	if f.PosMu.TryLock() { // it may be this file that is being read
		pos = f.Pos
		f.PosMu.Unlock()
	}
	flags := f.Flags()
	if cloexec {
		flags |= linux.O_CLOEXEC
	}
	mnt := int32(15)
	ino := uint64(0)
	if !f.Path.Zero() {
		ino = f.Path.Inode().Ino
		if f.Path.Mnt != nil {
			mnt = f.Path.Mnt.ID
		}
	}
	w := bytes.NewBuffer(fmt.Appendf(nil, "pos:\t%d\nflags:\t0%o\nmnt_id:\t%d\nino:\t%d\n", pos, flags, mnt, ino))
	if i, ok := f.Ops.(vfs.Informer); ok {
		i.FDInfo(f, w)
	}
	return w.Bytes(), 0
}
