// Package volume gives a disk or partition to a file system: it fits
// ext4.BlockDevice.
package volume

import (
	"fmt"

	"hardtack/abi/linux"
	"hardtack/ext4"
	"hardtack/kernel/disk/block"
	"hardtack/kernel/disk/blockdev"
)

// Volume is a part as a file system takes it. Memory in frames goes to the
// device as it is, other memory is copied.
type Volume struct{ *block.Part }

// Size is the number of bytes.
func (v Volume) Size() int64 { return v.Bytes() }

// BlockSize is the unit of addressing.
func (v Volume) BlockSize() int { return v.Disk.Limits().LogicalBlock }

// ReadAt fills every piece.
func (v Volume) ReadAt(batch []ext4.Transfer) error {
	if e := block.Move(v.Part, blockdev.Read, batch, false); e != 0 {
		return fmt.Errorf("%s: read: %w", v.Name, e)
	}
	return nil
}

// WriteAt writes every piece.
func (v Volume) WriteAt(batch []ext4.Transfer, fua bool) error {
	if e := block.Move(v.Part, blockdev.Write, batch, fua); e != 0 {
		return fmt.Errorf("%s: write: %w", v.Name, e)
	}
	return nil
}

// Flush makes every write that returned before durable.
func (v Volume) Flush() error {
	if e := v.Part.Flush(); e != 0 {
		return fmt.Errorf("%s: flush: %w", v.Name, e)
	}
	return nil
}

// Discard tells that n bytes from off hold nothing of use.
func (v Volume) Discard(off, n int64) error {
	l := v.Disk.Limits()
	if l.MaxDiscard == 0 || l.ReadOnly {
		return nil
	}
	// Whole grains only.
	grain := int64(max(l.DiscardGrain, l.LogicalBlock))
	end := (off + n) / grain * grain
	off = (off + grain - 1) / grain * grain
	if off >= end {
		return nil
	}
	e := v.Part.Discard(uint64(off)>>blockdev.SectorShift, uint64(end-off)>>blockdev.SectorShift)
	if e != 0 && e != linux.EOPNOTSUPP {
		return fmt.Errorf("%s: discard: %w", v.Name, e)
	}
	return nil
}

var _ ext4.BlockDevice = Volume{}
