package syscall

import (
	"encoding/binary"

	"hardtack/abi/linux"
	"hardtack/kernel/base/uio"
	"hardtack/kernel/fs/vfs"
	"hardtack/kernel/process/proc"
)

// fdPair is the two descriptors of a call that makes both or none. They are reserved
// first, then installed or dropped.
type fdPair [2]int32

func reservePair(t *proc.Thread) (p fdPair, e linux.Errno) {
	if p[0], e = t.FDs.Reserve(0, t.NoFile()); e != 0 {
		return p, e
	}
	if p[1], e = t.FDs.Reserve(0, t.NoFile()); e != 0 {
		t.FDs.Unreserve(p[0])
	}
	return p, e
}

// write tells the program the numbers: int[2].
func (p fdPair) write(t *proc.Thread, addr uio.Addr) linux.Errno {
	b := t.Scratch[:8]
	binary.LittleEndian.PutUint32(b, uint32(p[0]))
	binary.LittleEndian.PutUint32(b[4:], uint32(p[1]))
	_, e := t.Mem.CopyOut(addr, b)
	return e
}

func (p fdPair) install(t *proc.Thread, f, g *vfs.File, cloexec bool) {
	t.FDs.Install(p[0], f, cloexec)
	t.FDs.Install(p[1], g, cloexec)
}

func (p fdPair) drop(t *proc.Thread) {
	t.FDs.Unreserve(p[0])
	t.FDs.Unreserve(p[1])
}
