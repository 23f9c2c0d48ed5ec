package rootfs

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"golang.org/x/sys/unix"

	"hardtack/tool/fault"
)

// Blob is the content of a regular file: a window on something readable. The
// zero Blob is empty.
type Blob struct {
	at   io.ReaderAt
	off  int64
	size int64
	used int64 // what it takes where it lies, if less than size: it has holes
}

// A Sparse reader knows its holes.
type Sparse interface {
	// NextData finds the next data from off on: it lies from start to end. At
	// the end of the content start is the size.
	NextData(off int64) (start, end int64, err error)
}

// NewBlob is the content of a file of size bytes that takes used bytes where it
// lies; r may be Sparse.
func NewBlob(r io.ReaderAt, size, used int64) Blob { return Blob{at: r, size: size, used: used} }

// NextData finds the next data of the content from off on; what its source does
// not know to be a hole is data. At the end start is the size.
func (b Blob) NextData(off int64) (start, end int64, err error) {
	if s, ok := b.at.(Sparse); ok && b.off == 0 {
		start, end, err = s.NextData(off)
		return min(start, b.size), min(end, b.size), err
	}
	return min(off, b.size), b.size, nil
}

// Cost is how many bytes the content takes where holes cost nothing.
func (b Blob) Cost() int64 { return min(b.used, b.size) }

// cost is what the content is charged for.
func (b Blob) cost(holes bool) int64 {
	if holes {
		return b.Cost()
	}
	return b.size
}

// Bytes is a Blob of bytes in memory.
func Bytes(b []byte) Blob {
	return NewBlob(bytes.NewReader(b), int64(len(b)), int64(len(b)))
}

// Size is the number of bytes.
func (b Blob) Size() int64 { return b.size }

// Open reads the content from its start.
func (b Blob) Open() *io.SectionReader {
	if b.at == nil {
		return io.NewSectionReader(bytes.NewReader(nil), 0, 0)
	}
	return io.NewSectionReader(b.at, b.off, b.size)
}

// hostFile is a file of the host as content: a name in a directory. It is opened for
// each read, so a tree of a hundred thousand files does not hold as many descriptors.
type hostFile struct {
	root *os.File
	rel  string
	id   fileID
}

// open opens the file, if it is the same still. No link is followed on the way.
func (h *hostFile) open() (*os.File, error) {
	dir, parts := int(h.root.Fd()), strings.Split(h.rel, "/")
	fd := dir
	for i, part := range parts {
		flags := unix.O_PATH | unix.O_DIRECTORY
		if i == len(parts)-1 {
			flags = unix.O_RDONLY | unix.O_NONBLOCK
		}
		next, err := unix.Openat(fd, part, flags|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if fd != dir {
			unix.Close(fd)
		}
		if err != nil {
			return nil, openError(filepath.Join(h.root.Name(), h.rel), err)
		}
		fd = next
	}
	f := os.NewFile(uintptr(fd), filepath.Join(h.root.Name(), h.rel))
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || idOf(&st) != h.id {
		f.Close()
		return nil, fault.Bad("%s was replaced while it was read", f.Name())
	}
	return f, nil
}

func (h *hostFile) ReadAt(p []byte, off int64) (int, error) {
	f, err := h.open()
	if err != nil {
		return 0, err
	}
	defer f.Close()
	return f.ReadAt(p, off)
}

// NextData asks the host's file system.
func (h *hostFile) NextData(off int64) (start, end int64, err error) {
	f, err := h.open()
	if err != nil {
		return 0, 0, err
	}
	defer f.Close()
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return 0, 0, err
	}
	if start, err = f.Seek(off, unix.SEEK_DATA); errors.Is(err, unix.ENXIO) {
		return size, size, nil
	}
	if err == nil {
		end, err = f.Seek(start, unix.SEEK_HOLE)
	}
	if err != nil { // a file system without such calls
		return off, size, nil
	}
	return start, end, nil
}

// Scratch is a temporary file without a name: it disappears with its last
// descriptor, however the process ends.
func Scratch() (*os.File, error) {
	f, err := os.CreateTemp("", "hardtack-")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(f.Name()); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// Spool copies a stream of unknown length to a scratch file, up to a limit:
// what is compressed may unfold to any size.
func Spool(r io.Reader, limit int64) (*io.SectionReader, error) {
	f, err := Scratch()
	if err != nil {
		return nil, err
	}
	n, err := io.Copy(f, io.LimitReader(r, limit+1))
	if err != nil {
		f.Close()
		return nil, err
	}
	if n > limit {
		f.Close()
		return nil, fault.Bad("it unpacks to more than %d MiB, which is more than the guest can hold", limit>>20)
	}
	return io.NewSectionReader(f, 0, n), nil
}

// Decompress gives the plain bytes of a file that may be compressed with gzip
// or zstd; a plain one is returned as it is.
func Decompress(r *io.SectionReader, limit int64) (*io.SectionReader, error) {
	var magic [4]byte
	if _, err := r.ReadAt(magic[:], 0); err != nil && err != io.EOF {
		return nil, err
	}
	if _, err := r.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	switch {
	case magic[0] == 0x1f && magic[1] == 0x8b:
		z, err := gzip.NewReader(r)
		if err != nil {
			return nil, damaged("gzip file", err)
		}
		return Spool(decoded{z, "gzip file"}, limit)
	case magic == [4]byte{0x28, 0xb5, 0x2f, 0xfd}:
		z, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(zstdWindow))
		if err != nil {
			return nil, damaged("zstd file", err)
		}
		defer z.Close()
		return Spool(decoded{z, "zstd file"}, limit)
	}
	return r, nil
}

// zstdWindow bounds what the decoder allocates on the archive's word; it is
// what zstd --ultra --long=27 makes.
const zstdWindow = 128 << 20

// decoded marks the errors of a decoder as those of a damaged file.
type decoded struct {
	r    io.Reader
	what string
}

func (d decoded) Read(p []byte) (int, error) {
	n, err := d.r.Read(p)
	if err != nil && err != io.EOF {
		err = damaged(d.what, err)
	}
	return n, err
}
