package tmpfs_test

import (
	"testing"

	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/uio"
	"hardtack/kernel/fs/vfs"
)

// A thread that is killed ends a long transfer at the next look, be it of a hole or of
// pages.
func TestKilled(t *testing.T) {
	_, c, ctx := newTree(t)
	f := open(t, c, ctx, "/f", linux.O_CREAT|linux.O_RDWR, 0o644)
	defer f.Put()
	if e := f.FTruncate(c, 1<<40); e != 0 {
		t.Fatal(e)
	}
	alive := caller.OnKilled.Call
	defer func() { caller.OnKilled.Call = alive }()
	b := make([]byte, 4*caller.KillStep)
	for _, dead := range []bool{false, true} {
		caller.OnKilled.Call = func(*caller.Ctx) bool { return dead }
		want := len(b)
		if dead {
			want = caller.KillStep - 1
		}
		for name, move := range map[string]func(*caller.Ctx, *vfs.File, *uio.Vec, int64) (int, linux.Errno){
			"read": f.Ops.Read, "write": f.Ops.Write,
		} {
			if n, e := move(c, f, uio.Bytes(b), 1); n != want || e != 0 {
				t.Errorf("%s, killed %v: %d bytes, %v, want %d", name, dead, n, e, want)
			}
		}
	}
}
