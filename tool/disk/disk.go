// Package disk makes and reads the guest's disks on the host: raw images (or block
// devices) with an ext4 file system, whole or in a partition, with the kernel's own ext4
// code. Nothing here needs root or Linux's mount.
//
// A Disk is used by one goroutine at a time, the file system on it by any.
package disk

import (
	"fmt"
	"io"
	"os"

	"hardtack/ext4"
	"hardtack/kernel/disk/partition"
	"hardtack/tool/fault"
)

// Disk is an open disk, or one partition of it.
type Disk struct {
	ext4.BlockDevice
	file *os.File
}

// Open opens a disk. part is the partition that is meant, 0 the whole disk. A
// disk that is partitioned has nothing of its own, and is refused as a whole.
func Open(name string, part int, write bool) (*Disk, error) {
	mode := os.O_RDONLY
	if write {
		mode = os.O_RDWR
	}
	f, err := os.OpenFile(name, mode, 0)
	if err != nil {
		return nil, missing(err)
	}
	d, err := window(f, part)
	if err != nil {
		f.Close()
		return nil, err
	}
	return d, nil
}

// missing makes a file that cannot be opened the user's error.
func missing(err error) error {
	if os.IsNotExist(err) || os.IsPermission(err) {
		return fault.Bad("%w", err)
	}
	return err
}

// window is the part of a disk that a partition is.
func window(f *os.File, part int) (*Disk, error) {
	if st, err := f.Stat(); err != nil {
		return nil, err
	} else if st.Mode()&(os.ModeDir|os.ModeCharDevice|os.ModeNamedPipe|os.ModeSocket) != 0 {
		return nil, fault.Bad("%s: neither a file nor a block device", f.Name())
	}
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return nil, err
	}
	t, err := partition.Read(uint64(size)/partition.SectorSize, partition.SectorSize, func(b []byte, sector uint64) error {
		_, err := f.ReadAt(b, int64(sector)*partition.SectorSize)
		return err
	})
	if err != nil {
		return nil, fault.Bad("%s: the partition table: %v", f.Name(), err)
	}
	if part == 0 {
		if len(t.Parts) > 0 {
			return nil, fault.Bad("%s has partitions (%s); name one", f.Name(), numbers(t))
		}
		return &Disk{ext4.NewFileDevice(f, size), f}, nil
	}
	for _, p := range t.Parts {
		if p.Number == part {
			s := section{f, int64(p.Start) * partition.SectorSize}
			return &Disk{ext4.NewFileDevice(s, int64(p.Sectors)*partition.SectorSize), f}, nil
		}
	}
	if len(t.Parts) == 0 {
		return nil, fault.Bad("%s has no partitions", f.Name())
	}
	return nil, fault.Bad("%s has no partition %d, but %s", f.Name(), part, numbers(t))
}

func numbers(t partition.Table) string {
	s := ""
	for i, p := range t.Parts {
		if i > 0 {
			s += ", "
		}
		s += fmt.Sprint(p.Number)
	}
	return s
}

// section is a file from an offset on.
type section struct {
	f    *os.File
	base int64
}

func (s section) ReadAt(p []byte, off int64) (int, error)  { return s.f.ReadAt(p, s.base+off) }
func (s section) WriteAt(p []byte, off int64) (int, error) { return s.f.WriteAt(p, s.base+off) }
func (s section) Sync() error                              { return s.f.Sync() }

// Close closes the disk; a file system on it must be unmounted.
func (d *Disk) Close() error { return d.file.Close() }
