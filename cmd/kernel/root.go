package main

import (
	"errors"

	"hardtack/abi/linux"
	"hardtack/kernel/devfs"
	"hardtack/kernel/initramfs"
	"hardtack/kernel/kern"
	"hardtack/kernel/mem"
	"hardtack/kernel/procfs"
	"hardtack/kernel/sysfs"
	"hardtack/kernel/tmpfs"
	"hardtack/kernel/vfs"
	"hardtack/nucleus"
)

// unpackRoot makes the root file system of the boot archive.
func unpackRoot() (*vfs.FSContext, *tmpfs.FS, *initramfs.BootConfig, error) {
	pa, size := nucleus.Initrd()
	if size == 0 {
		return nil, nil, nil, errors.New("the loader gave no initrd")
	}
	fs := tmpfs.New(tmpfs.Options{Type: "rootfs", Mode: 0o755, MaxPages: int64(mem.Total()) + int64(size/mem.PageSize)})
	archive := nucleus.RAM(pa, int(size))
	config, err := initramfs.Unpack(fs, archive, mem.FrameOf(pa), func(first mem.Frame, n int) {
		for i := range n {
			nucleus.GiveFrame(uint32(first) + uint32(i))
		}
	})
	if err != nil {
		return nil, nil, nil, err
	}
	mem.AddTotal(int(size+mem.PageSize-1) / mem.PageSize)
	_, root := vfs.NewNamespace(fs.FileSystem, "rootfs")
	return vfs.NewFSContext(root), fs, config, nil
}

// mountAll mounts what every Linux program expects to find.
func mountAll(c *kern.Ctx, root *vfs.FSContext) {
	for name, mount := range map[string]func(*kern.Ctx, *vfs.FSContext) linux.Errno{
		"/dev": devfs.Mount, "/proc": procfs.Mount, "/sys": sysfs.Mount,
	} {
		if e := mount(c, root); e != 0 {
			warn("mount %s: %v", name, e)
		}
	}
}
