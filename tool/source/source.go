// Package source opens a root file system (a directory, an archive, or an OCI image on
// disk or in a registry) as one tree.
package source

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"hardtack/tool/fault"
	"hardtack/tool/rootfs"
)

// unpacked is how much larger than the tree its archives may be: an image's
// layers replace each other's files, and a compressed archive is unpacked to a
// scratch file before it is read.
const unpacked = 4

// Open reads a root file system from a path of the host, within a budget.
func Open(name string, b rootfs.Budget) (*rootfs.Tree, error) {
	t, err := open(name, b)
	if err != nil {
		return nil, named(name, err)
	}
	return t, nil
}

func named(name string, err error) error {
	if status := fault.Status(err); status != fault.Host {
		return fault.With(status, "%s: %w", name, err)
	}
	var p *fs.PathError
	if errors.As(err, &p) {
		return err // names its file already
	}
	return fault.With(fault.Host, "%s: %w", name, err)
}

func open(name string, b rootfs.Budget) (*rootfs.Tree, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, missing(err)
	}
	if info.IsDir() {
		if isLayout(name) {
			return openLayoutDir(name, b)
		}
		t := rootfs.New(b)
		return t, t.ReadDir(name, rootfs.AsIs)
	}
	if !info.Mode().IsRegular() {
		return nil, fault.Bad("neither a directory nor a regular file")
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, missing(err)
	}
	return openArchive(io.NewSectionReader(f, 0, info.Size()), b)
}

// missing makes a name that cannot be opened the user's error, without the
// name, which the caller puts in front.
func missing(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) && (errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission)) {
		return fault.Bad("%w", p.Err)
	}
	return err
}

func openArchive(r *io.SectionReader, b rootfs.Budget) (*rootfs.Tree, error) {
	plain, err := rootfs.Decompress(r, unpacked*b.Bytes)
	if err != nil {
		return nil, err
	}
	var head [512]byte
	n, err := plain.ReadAt(head[:], 0)
	if err != nil && err != io.EOF {
		return nil, err
	}
	switch kind(head[:n]) {
	case isCPIO:
		t := rootfs.New(b)
		return t, t.ReadCPIO(plain)
	case isTar:
		if img, err := openImageTar(plain, b); img != nil || err != nil {
			return img, err
		}
		t := rootfs.New(b)
		return t, t.ReadTar(plain)
	}
	return nil, fault.Bad("not a tar, a cpio archive or an image")
}

type format int

const (
	unknown format = iota
	isTar
	isCPIO
)

// kind tells archives apart by their first block.
func kind(head []byte) format {
	switch {
	case len(head) >= 6 && (string(head[:6]) == "070701" || string(head[:6]) == "070702"):
		return isCPIO
	case len(head) == 512 && (string(head[257:262]) == "ustar" || tarChecksum(head) || allZero(head)):
		return isTar
	}
	return unknown
}

func allZero(b []byte) bool {
	for _, c := range b {
		if c != 0 {
			return false
		}
	}
	return true
}

// tarChecksum says whether a block is the header of a tar older than "ustar".
func tarChecksum(b []byte) bool {
	var want, sum int64
	for _, c := range b[148:156] {
		if c >= '0' && c <= '7' {
			want = want<<3 | int64(c-'0')
		}
	}
	for i, c := range b {
		if i >= 148 && i < 156 {
			c = ' '
		}
		sum += int64(c)
	}
	return sum == want && want != 0
}

func isLayout(dir string) bool {
	for _, name := range []string{layoutMarker, indexName} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || !info.Mode().IsRegular() {
			return false
		}
	}
	return true
}

// clean is a member's name as the image formats spell it.
func clean(name string) string { return path.Clean("/" + name)[1:] }
