package syscall

import (
	"testing"

	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/mem"
	"hardtack/kernel/base/uio"
	"hardtack/kernel/fs/tmpfs"
	"hardtack/kernel/fs/vfs"
	"hardtack/kernel/process/proc"
)

// hungry is a file whose writes find no memory.
type hungry struct {
	vfs.BaseOps
	mayWait []bool
}

func (h *hungry) Write(c *caller.Ctx, _ *vfs.File, _ *uio.Vec, _ int64) (int, linux.Errno) {
	h.mayWait = append(h.mayWait, !c.NoWait)
	return 0, linux.ENOMEM
}

func (*hungry) Seek(*caller.Ctx, *vfs.File, int64, int) (int64, linux.Errno) { return 0, 0 }

// With RWF_NOWAIT a write that finds no memory says so at once: for ENOMEM the thread would wait and
// call again.
func TestNoWaitForMemory(t *testing.T) {
	mem.InitHost(1024)
	fs := tmpfs.New(tmpfs.Options{Mode: 0o755})
	_, root := vfs.NewNamespace(fs.FileSystem, "test")
	at, e := vfs.Open(caller.NewKernelCtx(), vfs.NewFSContext(root), nil, "/f", linux.O_CREAT|linux.O_RDWR, 0o644)
	if e != 0 {
		t.Fatal(e)
	}
	fs.Magic = linux.EXT4_SUPER_MAGIC // whose direct writes take the flag
	h := &hungry{}
	f := vfs.NewFile(h, linux.O_RDWR|linux.O_DIRECT)
	f.Path = at.Path
	thread := &proc.Thread{}
	thread.FileSizeLimit.Store(^uint64(0))
	for i, x := range []struct {
		flags uint32
		want  linux.Errno
	}{{0, linux.ENOMEM}, {linux.RWF_NOWAIT, linux.EAGAIN}, {0, linux.ENOMEM}} {
		thread.Vec = *uio.Bytes(make([]byte, 512))
		v := vectored{write: true, flags: x.flags}
		if n, e := v.transfer(thread, f); n != 0 || e != x.want {
			t.Errorf("flags %#x: %d, %v, want %v", x.flags, n, e, x.want)
		}
		if len(h.mayWait) != i+1 || h.mayWait[i] != (x.flags == 0) {
			t.Errorf("flags %#x: may wait %v", x.flags, h.mayWait)
		}
	}
}
