package syscall

import (
	"encoding/binary"
	"slices"

	"hardtack/abi/linux"
	"hardtack/kernel/fs/vfs"
	"hardtack/kernel/process/proc"
)

// What old programs ask about file systems.
var fsInfoCalls = []Call{
	{linux.SYS_ustat, "ustat", sysUstat, "works for file systems that are mounted"},
	{linux.SYS_sysfs, "sysfs", sysSysfs, "works"},
}

// sysUstat is ustat(dev_t dev, struct ustat *buf): free blocks and inodes.
func sysUstat(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	for _, m := range t.FS.Root().Namespace().Mounts() {
		if uint32(m.FS.Dev) != a.Uint(0) {
			continue
		}
		st := vfs.StatFS(vfs.Path{Mnt: m, Dentry: m.Root})
		b := t.Scratch[:32]
		clear(b)
		binary.LittleEndian.PutUint32(b, uint32(st.Bfree))
		binary.LittleEndian.PutUint64(b[8:], st.Ffree)
		_, e := t.Mem.CopyOut(a.Addr(1), b)
		return 0, e
	}
	return 0, linux.EINVAL
}

// sysSysfs is sysfs(int option, ...): the kinds of file systems by name and number.
func sysSysfs(t *proc.Thread, a *Args) (uint64, linux.Errno) {
	names := vfs.FSTypes()
	switch a.Int(0) {
	case 1:
		name, e := readPath(t, a.Addr(1))
		if e != 0 {
			return 0, e
		}
		if i := slices.Index(names, name); i >= 0 {
			return uint64(i), 0
		}
	case 2:
		if i := uint64(a.Uint(1)); i < uint64(len(names)) {
			//maxlive:len 64 because the kernel's types have short names
			_, e := t.Mem.CopyOut(a.Addr(2), append([]byte(names[i]), 0))
			return 0, e
		}
	case 3:
		return uint64(len(names)), 0
	}
	return 0, linux.EINVAL
}
