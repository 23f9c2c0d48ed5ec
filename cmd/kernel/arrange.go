package main

import (
	"strings"

	"hardtack/abi/linux"
	"hardtack/kernel/base/uio"
	"hardtack/kernel/fs/initramfs"
	"hardtack/kernel/fs/tmpfs"
	"hardtack/kernel/fs/vfs"
)

// arrange makes the root file system as the boot record wants it, last thing before
// process 1 starts.
func (k *kernel) arrange(config *initramfs.BootConfig, root *vfs.FSContext) {
	name := config.Hostname
	if name == "" || strings.ContainsAny(name, " \t\n") {
		name = "localhost"
	}
	k.writeNew(root, "/etc/hosts", hostsText(name))
	k.writeNew(root, "/etc/hostname", []byte(name+"\n"))
	k.copies.mu.Lock()
	k.copies.root, k.copies.name = root.Clone(), name
	k.copies.mu.Unlock()
	for _, t := range config.Tmpfs {
		if e := k.mountTmpfs(root, t.Path, t.Options); e != 0 {
			k.fail("--tmpfs %s: %v", t.Path, e)
		}
	}
	if config.ReadOnly {
		p, e := vfs.Lookup(k.ctx, root, nil, "/", 0)
		if e == 0 {
			e = p.Mnt.Remount(linux.MS_RDONLY | linux.MS_RELATIME)
		}
		if e != 0 {
			k.fail("--read-only: %v", e)
		}
	}
}

// mountTmpfs mounts a file system in memory, which programs may be kept from by options as
// mount(8) has them.
func (k *kernel) mountTmpfs(root *vfs.FSContext, path, options string) linux.Errno {
	flags := uint32(linux.MS_NOSUID | linux.MS_NODEV | linux.MS_NOEXEC | linux.MS_RELATIME)
	var rest []string
	for _, o := range strings.Split(options, ",") {
		switch o {
		case "":
		case "ro":
			flags |= linux.MS_RDONLY
		case "rw":
			flags &^= linux.MS_RDONLY
		case "exec":
			flags &^= linux.MS_NOEXEC
		case "noexec":
			flags |= linux.MS_NOEXEC
		case "suid":
			flags &^= linux.MS_NOSUID
		case "nosuid":
			flags |= linux.MS_NOSUID
		case "dev":
			flags &^= linux.MS_NODEV
		case "nodev":
			flags |= linux.MS_NODEV
		default:
			rest = append(rest, o)
		}
	}
	fs, e := tmpfs.Type.Make(strings.Join(rest, ","))
	if e != 0 {
		return e
	}
	return vfs.KernelMount(k.ctx, root, fs, "tmpfs", path, flags)
}

// writeNew writes a file where the root file system has none.
func (k *kernel) writeNew(root *vfs.FSContext, name string, text []byte) {
	f, e := vfs.Open(k.ctx, root, nil, name, linux.O_CREAT|linux.O_EXCL|linux.O_WRONLY, 0o644)
	if e != 0 {
		return
	}
	_, _ = f.Ops.Write(k.ctx, f, uio.Bytes(text), 0) // a hint for programs; they work without
	f.Put()
}
