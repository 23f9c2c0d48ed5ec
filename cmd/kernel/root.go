package main

import (
	"errors"
	"fmt"
	"strings"

	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/mem"
	"hardtack/kernel/disk/block"
	"hardtack/kernel/fs/devfs"
	"hardtack/kernel/fs/initramfs"
	"hardtack/kernel/fs/tmpfs"
	"hardtack/kernel/fs/vfs"
	"hardtack/kernel/pseudofs/procfs"
	"hardtack/kernel/pseudofs/sysfs"
	"hardtack/nucleus"
)

// unpackRoot makes the root file system of the boot archive. Where a disk is to be
// the root the archive may have the boot record only, or be missing.
func (k *kernel) unpackRoot() (*vfs.FSContext, *tmpfs.FS, *initramfs.BootConfig, error) {
	pa, size := nucleus.Initrd()
	if size == 0 {
		if _, ok := k.option("root"); ok {
			return nil, nil, &initramfs.BootConfig{}, nil
		}
		return nil, nil, nil, errors.New("the loader gave no initrd")
	}
	// Files may have all of memory but an eighth: they stay when the program is killed
	// that filled them, and then others would be, and process 1.
	most := int64(mem.Total()/8*7) + int64(size/mem.PageSize)
	fs := tmpfs.New(tmpfs.Options{Type: "rootfs", Mode: 0o755, MaxPages: most, Shared: true})
	free := func(first mem.Frame, n int) {
		for i := range n {
			nucleus.GiveFrame(uint32(first) + uint32(i))
		}
	}
	lent := len(k.others.all) > 0 || nucleus.ClusterIndex() > 0
	if lent { // it stays as it is, for all kernels and for clusters that start later
		if free = nil; !nucleus.MapArchive() {
			return nil, nil, nil, errors.New("the first cluster's boot archive cannot be mapped")
		}
	}
	archive := nucleus.RAM(pa, int(size))
	config, err := initramfs.Unpack(fs, archive, mem.FrameOf(pa), free)
	if err != nil {
		return nil, nil, nil, err
	}
	if !lent {
		mem.AddTotal(int(size+mem.PageSize-1) / mem.PageSize)
	}
	_, root := vfs.NewNamespace(fs.FileSystem, "rootfs")
	return vfs.NewFSContext(root), fs, config, nil
}

// diskRoot mounts the root file system from a disk, by the parameters that Linux
// has for it: root=/dev/NAME, rootfstype=, rootflags=, and ro (the default) or rw.
func (k *kernel) diskRoot(name string) (*vfs.FSContext, error) {
	dev, ok := strings.CutPrefix(name, "/dev/")
	if !ok {
		return nil, errors.New("want /dev/NAME of a disk or partition")
	}
	p := block.Lookup(dev)
	if p == nil {
		return nil, errors.New("there is no such disk or partition")
	}
	kind, ok := k.option("rootfstype")
	if !ok {
		kind = "ext4"
	}
	if !vfs.OnDevice(kind) {
		return nil, fmt.Errorf("file systems of type %q are not known", kind)
	}
	flags := uint32(linux.MS_RDONLY)
	for _, w := range strings.Fields(k.cmdline) { // the last one counts
		switch w {
		case "ro":
			flags = linux.MS_RDONLY
		case "rw":
			flags = 0
		}
	}
	data, _ := k.option("rootflags")
	fs, e := vfs.OpenFS(kind, p.Dev, flags, data)
	if e != 0 {
		return nil, e
	}
	ns, root := vfs.NewNamespace(fs, name)
	ns.Mounts()[0].Remount(flags)
	fs.Drop()
	return vfs.NewFSContext(root), nil
}

// mountAll mounts what every Linux program expects to find.
func mountAll(c *caller.Ctx, root *vfs.FSContext) {
	for name, mount := range map[string]func(*caller.Ctx, *vfs.FSContext) linux.Errno{
		"/dev": devfs.Mount, "/proc": procfs.Mount, "/sys": sysfs.Mount,
	} {
		if e := mount(c, root); e != 0 {
			warn("mount %s: %v", name, e)
		}
	}
}
