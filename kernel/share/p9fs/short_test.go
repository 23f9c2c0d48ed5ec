package p9fs

import (
	"runtime"
	"testing"

	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/mem"
	"hardtack/kernel/base/uio"
	"hardtack/kernel/fs/vfs"
	"hardtack/kernel/share/p9"
)

// A write to the pages of a shared file that finds no frame for its second page waits for more
// and goes on.
func TestWriteWaitsForMemory(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // frames that are given back are found
	mem.InitHost(4096)
	fs := &FS{FileSystem: &vfs.FileSystem{MaxBytes: maxBytes}, options: options{loose: true}}
	f := fs.newNode(&p9.Attr{Stat: linux.Stat{Mode: linux.S_IFREG | 0o644}}, &names{}).Node.(*file)
	o, c, of := &opened{file: f}, caller.NewKernelCtx(), &vfs.File{}
	if n, e := o.Write(c, of, uio.Bytes([]byte("x")), 0); n != 1 || e != 0 { // what else it needs once
		t.Fatal(n, e)
	}
	var taken []mem.Frame
	for fr, ok := mem.Alloc(); ok; fr, ok = mem.Alloc() {
		taken = append(taken, fr)
	}
	give := func() {
		taken[len(taken)-1].Put()
		taken = taken[:len(taken)-1]
	}
	defer func() {
		for len(taken) > 0 {
			give()
		}
	}()
	wanted := caller.OnMemoryWanted.Call
	defer func() { caller.OnMemoryWanted.Call = wanted }()
	waits := 0
	caller.OnMemoryWanted.Call = func(*caller.Ctx) bool {
		waits++
		give()
		return true
	}
	give()
	n, e := o.Write(c, of, uio.Bytes(make([]byte, 3*mem.PageSize)), mem.PageSize)
	if n != 3*mem.PageSize || e != 0 || waits == 0 {
		t.Errorf("wrote %d bytes, %v, after %d waits; want all after some", n, e, waits)
	}
}
