package pagecache

import (
	"testing"

	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/mem"
	"hardtack/kernel/base/uio"
)

// A thread that is killed ends a long transfer at the next look.
func TestKilled(t *testing.T) {
	d := newDisk(t, 4096)
	p := make([]byte, 3*caller.KillStep)
	d.data = make([]byte, len(p)+mem.PageSize)
	d.write(p, 0)
	alive := caller.OnKilled.Call
	caller.OnKilled.Call = func(*caller.Ctx) bool { return true }
	defer func() { caller.OnKilled.Call = alive }()
	c := caller.NewKernelCtx()
	var r Reader
	if n, e := d.f.Read(c, uio.Bytes(p), &r, 1, len(p)-1); n != caller.KillStep-1 || e != 0 {
		t.Errorf("read %d, %v", n, e)
	}
	d.inode.Lock()
	defer d.inode.Unlock()
	if n, _, e := d.f.Write(c, uio.Bytes(p), 1); n != caller.KillStep-1 || e != 0 {
		t.Errorf("write %d, %v", n, e)
	}
}
