package ext4fs

import (
	"bytes"
	"testing"

	"hardtack/abi/linux"
	"hardtack/kernel/uio"
	"hardtack/kernel/vfs"
)

// TestFullReplace: on a full disk a file can be cut and written anew, as large as it
// was, whatever was tried before; and what is deleted is there for others at once.
func TestFullReplace(t *testing.T) {
	m := newMachine(t, 64<<20)
	f := m.open("/f", linux.O_RDWR|linux.O_CREAT)
	text := bytes.Repeat([]byte("text"), 16<<10)
	m.write(f, text, 0)
	if e := fsync(m, f); e != 0 {
		t.Fatal(e)
	}
	big := m.open("/big", linux.O_RDWR|linux.O_CREAT)
	off := int64(0)
	for mib := make([]byte, 1<<20); ; {
		n, e := big.Ops.Write(m.c, big, uio.Bytes(mib), off)
		off += int64(n)
		if e == linux.ENOSPC || n == 0 {
			break
		}
		if e != 0 {
			t.Fatal(e)
		}
	}
	if e := fsync(m, big); e != 0 {
		t.Fatal(e)
	}
	if e := f.Ops.(vfs.Allocator).Allocate(m.c, f, 0, 0, 64<<20); e != linux.ENOSPC {
		t.Errorf("fallocate: %v", e)
	}
	for range 3 {
		f.Put()
		f = m.open("/f", linux.O_RDWR|linux.O_TRUNC)
		m.write(f, text, 0)
		if e := fsync(m, f); e != 0 {
			t.Fatal(e)
		}
	}
	big.Put()
	if e := vfs.UnlinkAt(m.c, m.ctx, nil, "/big"); e != 0 {
		t.Fatal(e)
	}
	g := m.open("/g", linux.O_RDWR|linux.O_CREAT)
	m.write(g, make([]byte, 20<<20), 0)
	g.Put()
	f.Put()
	m.unmount()
}
