package osbench

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// modules of the cloud kernel that virtio disks and network cards need, in the
// order in which they must be loaded; before them the checksums of ext4 by the
// processor's instruction, which an installed Debian loads by itself.
var modules = []string{
	"arch/x86/crypto/crc32c-intel",
	"drivers/virtio/virtio_ring", "drivers/virtio/virtio", "drivers/virtio/virtio_mmio",
	"drivers/virtio/virtio_pci_legacy_dev", "drivers/virtio/virtio_pci_modern_dev", "drivers/virtio/virtio_pci",
	"drivers/block/virtio_blk", "net/core/failover", "drivers/net/net_failover", "drivers/net/virtio_net",
}

// shared are what the full kernel needs beside modules, for ext4 on a disk and for folders
// of the host by 9P.
var shared = []string{
	"lib/crc16", "crypto/crc32c_generic", "lib/libcrc32c", "fs/mbcache", "fs/jbd2/jbd2", "fs/ext4/ext4",
	"net/9p/9pnet", "net/9p/9pnet_virtio", "fs/netfs/netfs", "fs/fscache/fscache", "fs/9p/9p",
}

// LinuxKernel is a kernel of Debian's: the path of its image, a tree with the modules that
// a machine needs, and its release.
type LinuxKernel struct {
	Image   string
	Modules Tree
	Release string
}

// Linux downloads the kernel that linux-image-cloud-amd64 stands for.
func Linux(d Dirs) (LinuxKernel, error) {
	return linuxKernel(d, "linux", "linux-image-cloud-amd64", modules)
}

// FullLinux downloads the kernel that linux-image-amd64 stands for: the cloud kernel has no 9P.
func FullLinux(d Dirs) (LinuxKernel, error) {
	return linuxKernel(d, "linux-full", "linux-image-amd64", slices.Concat(modules, shared))
}

func linuxKernel(d Dirs, into, name string, modules []string) (LinuxKernel, error) {
	var packages []string
	if _, err := os.Stat(filepath.Join(d.Cache, into, ".complete")); err != nil {
		out, err := exec.Command("apt-cache", "depends", name).Output()
		if err != nil {
			return LinuxKernel{}, fmt.Errorf("apt-cache depends %s: %w", name, err)
		}
		for _, line := range strings.Split(string(out), "\n") {
			if name, ok := strings.CutPrefix(strings.TrimSpace(line), "Depends: linux-image-"); ok {
				packages = append(packages, "linux-image-"+name)
			}
		}
		if len(packages) == 0 {
			return LinuxKernel{}, fmt.Errorf("apt-cache names no package for %s", name)
		}
	}
	root, err := fetch(d, into, packages)
	if err != nil {
		return LinuxKernel{}, err
	}
	images, err := filepath.Glob(filepath.Join(root, "boot", "vmlinuz-*"))
	if err != nil || len(images) == 0 {
		return LinuxKernel{}, fmt.Errorf("no vmlinuz in %s", root)
	}
	k := LinuxKernel{Image: images[0], Modules: Tree{}}
	k.Release = strings.TrimPrefix(filepath.Base(k.Image), "vmlinuz-")
	for i, m := range modules {
		data, err := os.ReadFile(filepath.Join(root, "lib/modules", k.Release, "kernel", m+".ko"))
		if err != nil {
			return LinuxKernel{}, err
		}
		k.Modules.Add(fmt.Sprintf("bench/modules/%02d-%s.ko", i, filepath.Base(m)), 0o644, data)
	}
	k.Modules.Add("bench/modules", fs.ModeDir|0o755, nil)
	return k, nil
}
