package main

import (
	"fmt"

	"hardtack/driver/acpi"
	"hardtack/driver/ahci"
	"hardtack/driver/nvme"
	"hardtack/driver/pci"
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

// addPCI starts the disks behind AHCI and NVMe controllers.
func (d *disks) addPCI(k *kernel, tables *acpi.Tables) {
	spaces := tables.MCFG()
	if len(spaces) == 0 && !pci.PortsAnswer(&k.platform) {
		return
	}
	for _, f := range pci.Scan(&k.platform, pci.Open(&k.platform, spaces)) {
		switch {
		case ahci.Is(f):
			d.addAHCI(k, f)
		case nvme.Is(f):
			d.addNVMe(k, f)
		}
	}
}

func (d *disks) addAHCI(k *kernel, f *pci.Function) {
	c, problems, err := ahci.New(&k.platform, f)
	if err != nil {
		warn("%v", err)
		return
	}
	for _, err := range problems {
		warn("%v", err)
	}
	for _, disk := range c.Disks() {
		if err := addDisk("sd"+block.Letters(d.scsi), disk, block.SCSI, d.scsi); err != nil {
			warn("%v", err)
		}
		d.scsi++
	}
}

func (d *disks) addNVMe(k *kernel, f *pci.Function) {
	c, err := nvme.New(&k.platform, f, nucleus.NumCPU())
	if err != nil {
		warn("%v", err)
		return
	}
	for _, disk := range c.Disks() {
		if err := addDisk(fmt.Sprintf("nvme%dn%d", d.nvme, disk.ID()), disk, block.NVMe, d.nvme); err != nil {
			warn("%v", err)
		}
	}
	d.nvme++
}
