package ext4

import (
	"fmt"
	"io"

	"hardtack/abi/linux"
)

// Transfer is one contiguous piece of a batch: len(Buf) bytes at byte offset
// Off of the device. Both are multiples of the device's block size.
type Transfer struct {
	Off int64
	Buf []byte
}

// BlockDevice is a disk (or a partition) as the file system needs it. All
// methods may be called from many goroutines at once.
//
// A write is durable once a Flush that began after the write returned has returned. A
// write with fua is durable when it returns. Until then a write may be lost, wholly or
// in single blocks of BlockSize bytes, and in any order relative to others. Each aligned
// BlockSize bytes are written whole or not at all.
type BlockDevice interface {
	// Size is the number of bytes; it does not change.
	Size() int64
	// BlockSize is the unit of addressing in bytes, a power of two from 512 to 4096.
	BlockSize() int
	// ReadAt fills every piece, in any order, and returns when all are done.
	// The error is of the first that failed; EIO for the medium's.
	ReadAt(batch []Transfer) error
	// WriteAt writes every piece, in any order, and returns when all are done.
	// With fua they are then durable. The caller must not touch the buffers
	// before that. Pieces must not overlap, neither within a batch nor with those
	// of other batches in flight.
	WriteAt(batch []Transfer, fua bool) error
	// Flush makes durable every write that has returned.
	Flush() error
	// Discard declares n bytes from off unused; reads of them return arbitrary
	// data until they are written again. It is a hint: a device without support
	// returns nil.
	Discard(off, n int64) error
}

// Syncer is what NewFileDevice takes: a file of the host, or memory.
type Syncer interface {
	io.ReaderAt
	io.WriterAt
	Sync() error
}

// NewFileDevice makes a device of a file of size bytes, for the command line
// and tests. A write with fua is followed by a Sync; Discard does nothing.
func NewFileDevice(f Syncer, size int64) BlockDevice {
	return &fileDevice{f, size &^ 511}
}

type fileDevice struct {
	f    Syncer
	size int64
}

func (d *fileDevice) Size() int64    { return d.size }
func (d *fileDevice) BlockSize() int { return 512 }

func (d *fileDevice) ReadAt(batch []Transfer) error {
	for _, t := range batch {
		if err := checkTransfer(t, d.size); err != nil {
			return err
		}
		if n, err := d.f.ReadAt(t.Buf, t.Off); n < len(t.Buf) {
			if err == io.EOF { // a sparse file that is shorter than the device
				clear(t.Buf[n:])
				continue
			}
			return fmt.Errorf("read %d bytes at %d: %v: %w", len(t.Buf), t.Off, err, linux.EIO)
		}
	}
	return nil
}

func (d *fileDevice) WriteAt(batch []Transfer, fua bool) error {
	for _, t := range batch {
		if err := checkTransfer(t, d.size); err != nil {
			return err
		}
		if _, err := d.f.WriteAt(t.Buf, t.Off); err != nil {
			return fmt.Errorf("write %d bytes at %d: %v: %w", len(t.Buf), t.Off, err, linux.EIO)
		}
	}
	if fua {
		return d.Flush()
	}
	return nil
}

func (d *fileDevice) Flush() error {
	if err := d.f.Sync(); err != nil {
		return fmt.Errorf("flush: %v: %w", err, linux.EIO)
	}
	return nil
}

func (d *fileDevice) Discard(off, n int64) error { return nil }

// checkTransfer returns EIO for transfers outside a device of size bytes.
func checkTransfer(t Transfer, size int64) error {
	if t.Off < 0 || t.Off > size || int64(len(t.Buf)) > size-t.Off {
		return fmt.Errorf("%d bytes at %d of a device of %d: %w", len(t.Buf), t.Off, size, linux.EIO)
	}
	return nil
}
