package block

import (
	"fmt"

	"hardtack/kernel/disk/blockdev"
	"hardtack/kernel/disk/partition"
)

// Part is a partition, or a whole disk.
type Part struct {
	Disk    *Disk
	Name    string // as in /dev
	Number  int    // 0: the whole disk
	Start   uint64 // sectors
	Sectors uint64
	UUID    string // PARTUUID, lower case; "" without
	Label   string // of GPT
	Dev     uint64 // device number; 0 before it has a device file
}

// Parts returns the partitions, the whole disk first.
func (d *Disk) Parts() (list []*Part) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, p := range d.parts {
		if p != nil {
			list = append(list, p)
		}
	}
	return list
}

func (d *Disk) setParts(parts []*Part) {
	d.mu.Lock()
	d.parts = parts
	d.mu.Unlock()
}

// Whole is the disk as a part.
func (d *Disk) Whole() *Part {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.parts[0]
}

// Part returns partition n, nil if there is none.
func (d *Disk) Part(n int) *Part {
	d.mu.Lock()
	defer d.mu.Unlock()
	if n < 0 || n >= len(d.parts) {
		return nil
	}
	return d.parts[n]
}

// Scan reads the partition table again. The error is of the table; the disk is
// then without partitions.
func (d *Disk) Scan() error {
	whole := d.Whole()
	t, err := partition.Read(d.limits.Sectors, d.limits.LogicalBlock, func(b []byte, sector uint64) error {
		c := whole.begin()
		c.transfer(blockdev.Read, false, sector, b)
		c.run()
		if e := c.end(); e != 0 {
			return e
		}
		return nil
	})
	parts := []*Part{whole}
	for i := range t.Parts {
		e := &t.Parts[i]
		p := Part{Disk: d, Name: partName(d.Name, e.Number), Number: e.Number, Start: e.Start, Sectors: e.Sectors, UUID: e.UUID, Label: e.Label}
		for len(parts) <= p.Number {
			parts = append(parts, nil)
		}
		parts[p.Number] = &p
	}
	d.setParts(parts)
	if err != nil {
		return fmt.Errorf("%s: %w", d.Name, err)
	}
	return nil
}

// partName is a partition's name: a disk whose name ends in a digit has a p.
func partName(disk string, n int) string {
	if c := disk[len(disk)-1]; c >= '0' && c <= '9' {
		return fmt.Sprintf("%sp%d", disk, n)
	}
	return fmt.Sprintf("%s%d", disk, n)
}
