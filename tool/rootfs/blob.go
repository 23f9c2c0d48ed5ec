package rootfs

import (
	"bytes"
	"io"
	"os"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"hardtack/tool/fault"
)

// Blob is the content of a regular file: a window on something readable. The
// zero Blob is empty.
type Blob struct {
	at   io.ReaderAt
	off  int64
	size int64
}

// Bytes is a Blob of bytes in memory.
func Bytes(b []byte) Blob {
	return Blob{at: bytes.NewReader(b), size: int64(len(b))}
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

// hostFile is a file of the host as content. It is opened for each read, so a
// tree of a hundred thousand files does not hold as many descriptors.
type hostFile string

func (h hostFile) ReadAt(p []byte, off int64) (int, error) {
	f, err := os.OpenFile(string(h), os.O_RDONLY|openNoFollow, 0)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	return f.ReadAt(p, off)
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
		return nil, fault.Bad("it unpacks to more than %d MiB, which the guest's memory cannot hold", limit>>20)
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
