package ext4fs

import (
	"testing"

	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/creds"
	"hardtack/kernel/base/uio"
	"hardtack/kernel/fs/vfs"
)

// TestSetID: a write by a plain user, of whatever kind, takes set-id bits and
// capabilities away, on the disk too: they are not back after the next mount.
func TestSetID(t *testing.T) {
	m := newMachine(t, 8<<20)
	user := caller.NewKernelCtx()
	user.SetCred(&creds.Cred{UID: 7, EUID: 7, SUID: 7, FSUID: 7, GID: 7, EGID: 7, SGID: 7, FSGID: 7})
	caps := append([]byte{1, 0, 0, 2, 1 << 5}, make([]byte, 15)...)
	names := []string{"write", "truncate", "open", "fallocate", "chown", "direct"}
	for i, name := range names {
		f := m.open(name, linux.O_CREAT|linux.O_RDWR)
		m.write(f, make([]byte, 4096), 0)
		f.Put()
		p := m.lookup(name)
		vfs.Chown(m.c, p, 7, 8)
		vfs.Chmod(m.c, p, 0o6767) // set-group-id without execution, of a foreign group
		if e := vfs.SetXattr(m.c, p, "security.capability", caps, 0); e != 0 {
			t.Fatal(e)
		}
		var e linux.Errno
		flags := []uint32{linux.O_RDWR, linux.O_RDWR, linux.O_RDWR | linux.O_TRUNC, linux.O_RDWR, linux.O_RDONLY, linux.O_RDWR | linux.O_DIRECT}[i]
		if f, e = vfs.Open(user, m.ctx, nil, name, flags, 0); e != 0 {
			t.Fatal(e)
		}
		switch name {
		case "write", "direct":
			_, e = f.Ops.Write(user, f, uio.Bytes(make([]byte, 4096)), 0)
		case "truncate":
			e = f.FTruncate(user, 5)
		case "fallocate":
			e = f.Ops.(vfs.Allocator).Allocate(user, f, 0, 0, 8192)
		case "chown":
			e = vfs.Chown(user, p, vfs.NoID, vfs.NoID)
		}
		f.Put()
		if e != 0 {
			t.Errorf("%s: %v", name, e)
		}
	}
	for _, when := range []string{"at once", "after the next mount"} {
		for _, name := range names {
			p := m.lookup(name)
			if mode := p.Inode().Mode() & 0o7777; mode != 0o767 {
				t.Errorf("%s, %s: %o", name, when, mode)
			}
			if _, e := vfs.GetXattr(m.c, p, "security.capability"); e != linux.ENODATA {
				t.Errorf("%s, %s: capabilities: %v", name, when, e)
			}
		}
		if when == "at once" {
			m.unmount()
			m.mount()
		}
	}
}
