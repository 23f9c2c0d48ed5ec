package main

import (
	"fmt"
	"math/bits"
	"sync"

	"hardtack/driver/acpi"
	"hardtack/driver/ahci"
	"hardtack/driver/nvme"
	"hardtack/driver/pci"
	"hardtack/driver/rtc"
	"hardtack/driver/virtio"
	vblk "hardtack/driver/virtio/blk"
	"hardtack/kernel/disk/block"
	"hardtack/kernel/disk/blockdev"
	"hardtack/nucleus"
)

// disks counts the disks of a kind: their names follow.
type disks struct {
	virtio, scsi, nvme int
	functions          []*pci.Function // AHCI and NVMe controllers
	queues             int             // of a virtio disk or an NVMe controller
}

// diskInterrupts are shared by the queues of all disks, each of which wants one;
// the kernel has 64 in all.
const diskInterrupts = 32

// findDisks looks for controllers and shares the interrupts among them.
func findDisks(k *kernel, found []virtio.Transport, functions []*pci.Function, tables *acpi.Tables) *disks {
	d := &disks{}
	k.plugDisks(tables)
	sharers := 0
	for _, t := range found {
		if t.Type() == virtio.TypeBlock {
			sharers++
		}
	}
	for _, f := range functions {
		if nvme.Is(f) {
			sharers++
		}
		if nvme.Is(f) || ahci.Is(f) {
			d.functions = append(d.functions, f)
		}
	}
	d.queues = max(min(bits.OnesCount64(nucleus.PresentCPUs()), diskInterrupts/max(sharers, 1)), 1)
	return d
}

// batteryClock is the machine's clock that does not skip idle time; nil if there is none.
func batteryClock(k *kernel, tables *acpi.Tables) func() int64 {
	if nucleus.ClusterIndex() > 0 {
		return nil // its ports are the first cluster's
	}
	f, _ := tables.FADT()
	last, err := rtc.Read(&k.platform, f.Century)
	if err != nil {
		return nil
	}
	var mu sync.Mutex // guards last and the clock's ports
	return func() int64 {
		mu.Lock()
		defer mu.Unlock()
		if t, err := rtc.Read(&k.platform, f.Century); err == nil {
			last = t
		}
		return last.UnixNano()
	}
}

// addVirtio starts a virtio disk.
func (d *disks) addVirtio(k *kernel, t virtio.Transport) error {
	dev, err := vblk.New(&k.platform, t, d.queues)
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
func (d *disks) addPCI(k *kernel) {
	for _, f := range d.functions {
		if ahci.Is(f) {
			d.addAHCI(k, f)
		} else {
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
	c, err := nvme.New(&k.platform, f, d.queues)
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
