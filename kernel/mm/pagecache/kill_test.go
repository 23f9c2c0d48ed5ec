package pagecache

import (
	"testing"

	"hardtack/abi/linux"
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

// A transfer that may not wait ends where the store would be asked.
func TestNoWait(t *testing.T) {
	d := newDisk(t, 4096)
	d.size.Store(3 * mem.PageSize)
	c := caller.NewKernelCtx()
	var r Reader
	r.Advise(linux.POSIX_FADV_RANDOM)
	if n, e := d.f.Read(c, uio.Bytes(make([]byte, 8)), &r, 0, 8); n != 8 || e != 0 {
		t.Fatal(n, e)
	}
	c.NoWait = true
	p := make([]byte, 3*mem.PageSize)
	if n, e := d.f.Read(c, uio.Bytes(p), &r, 0, len(p)); n != mem.PageSize || e != 0 {
		t.Errorf("read %d, %v: want the page that is in memory", n, e)
	}
	if n, e := d.f.Read(c, uio.Bytes(p), &r, mem.PageSize, mem.PageSize); n != 0 || e != linux.EAGAIN {
		t.Errorf("read %d, %v: want EAGAIN", n, e)
	}
	wanted := caller.OnMemoryWanted.Call
	defer func() { caller.OnMemoryWanted.Call = wanted }()
	caller.OnMemoryWanted.Call = func(*caller.Ctx) bool { return true }
	if caller.MemoryCame(c) {
		t.Error("it waits for memory")
	}
}
