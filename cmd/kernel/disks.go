package main

import (
	"fmt"

	"hardtack/driver/virtio"
	vblk "hardtack/driver/virtio/blk"
	"hardtack/kernel/block"
	"hardtack/kernel/blockdev"
	"hardtack/nucleus"
)

// disks counts the disks of a kind: their names follow.
type disks struct{ virtio, scsi, nvme int }

// addVirtio starts a virtio disk.
func (d *disks) addVirtio(k *kernel, t virtio.Transport) error {
	dev, err := vblk.New(&k.platform, t, nucleus.NumCPU())
	if err != nil {
		return err
	}
	n := d.virtio
	d.virtio++
	return addDisk("vd"+block.Letters(n), dev, block.Virtio, n)
}

// addDisk makes a disk of a device. What is wrong with its partition table is
// told, and the disk is there.
func addDisk(name string, dev blockdev.Device, kind block.Kind, n int) error {
	disk, err := block.New(name, dev)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return disk.Add(kind, n)
}
