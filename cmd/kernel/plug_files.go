package main

import (
	"hardtack/abi/linux"
	"hardtack/driver/acpi"
	"hardtack/kernel/disk/block"
	"hardtack/kernel/disk/ext4fs"
	"hardtack/kernel/fd/pipe"
	"hardtack/kernel/fs/devfs"
	"hardtack/kernel/fs/tmpfs"
	"hardtack/kernel/fs/vfs"
	"hardtack/kernel/pseudofs/procfs"
	"hardtack/kernel/pseudofs/sysfs"
	"hardtack/kernel/share/p9fs"
	"hardtack/kernel/tty"
	"hardtack/nucleus"
)

// plugFiles makes file systems and devices known to the vfs.
func plugFiles() {
	for name, t := range map[string]vfs.FSType{
		"tmpfs": tmpfs.Type, "ramfs": tmpfs.Type, "devtmpfs": devfs.Type, "devpts": devfs.PTSType,
		"proc": procfs.Type, "sysfs": sysfs.Type, "ext4": ext4fs.Type, "9p": p9fs.Type,
	} {
		vfs.RegisterFS(name, t)
	}
	vfs.RegisterSync(block.SyncAll) // file systems come after the disks that they are on
	vfs.RegisterSync(ext4fs.SyncAll)
	vfs.RegisterSync(p9fs.SyncAll)

	vfs.OpenFIFO.Set(pipe.OpenFIFO)
	vfs.OpenBlock.Set(block.Open)
	for minor, open := range devfs.MemDevices {
		vfs.RegisterChar(linux.MEM_MAJOR, minor, open)
	}
	devfs.Messages.Add(5, "Linux version "+procfs.Release+" "+procfs.Version+"\n")
	vfs.RegisterChar(linux.TTYAUX_MAJOR, 0, tty.OpenControlling)
	vfs.RegisterChar(linux.TTYAUX_MAJOR, 2, tty.OpenMaster)
	vfs.RegisterCharMajor(linux.UNIX98_PTY_SLAVE, tty.OpenSlave)
	for major, name := range map[uint32]string{linux.MEM_MAJOR: "mem", linux.TTY_MAJOR: "tty",
		linux.TTYAUX_MAJOR: "/dev/tty", linux.UNIX98_PTY_SLAVE: "pts"} {
		vfs.NameMajor(major, name)
	}
}

// plugDisks gives the block layer what it wants to know of the machine.
func (k *kernel) plugDisks(tables *acpi.Tables) {
	block.ThisCPU.Set(func() int { _, n := nucleus.CPUs(); return n })
	block.SecondClock.Set(batteryClock(k, tables))
}
