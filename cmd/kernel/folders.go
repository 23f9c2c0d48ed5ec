package main

import (
	"strings"

	"hardtack/abi/linux"
	"hardtack/driver/virtio"
	"hardtack/driver/virtio/p9"
	"hardtack/kernel/fs/initramfs"
	"hardtack/kernel/fs/vfs"
	"hardtack/kernel/share/p9fs"
	"hardtack/nucleus"
)

// addFolder makes a transport to a folder of the host known by its tag.
func (k *kernel) addFolder(t virtio.Transport) error {
	d, err := p9.New(&k.platform, t)
	if err != nil {
		return err
	}
	p9fs.Add(d)
	return nil
}

// mountFolders mounts the folders of the host that the boot record names. A program that
// was to have one must not start without.
func (k *kernel) mountFolders(config *initramfs.BootConfig, root *vfs.FSContext) {
	if nucleus.ClusterIndex() > 0 {
		return // they are the first cluster's
	}
	for _, f := range config.Folders {
		if e := k.mountFolder(&f, root); e != 0 {
			k.fail("mount the host's folder on %s: %v", f.Path, e)
		}
	}
}

func (k *kernel) mountFolder(f *initramfs.Folder, root *vfs.FSContext) linux.Errno {
	for i := 1; i < len(f.Path); i++ { // what is above it
		if f.Path[i] != '/' {
			continue
		}
		if e := vfs.MkdirAt(k.ctx, root, nil, f.Path[:i], 0o755); e != 0 && e != linux.EEXIST {
			return e
		}
	}
	fs, e := vfs.MakeFS("9p", f.Tag, strings.Join([]string{"trans=virtio,version=9p2000.L", f.Options}, ","))
	if e != 0 {
		return e
	}
	flags := uint32(linux.MS_RELATIME)
	if f.ReadOnly {
		flags |= linux.MS_RDONLY
		fs.SetReadOnly(true)
	}
	return vfs.KernelMount(k.ctx, root, fs, f.Tag, f.Path, flags)
}
