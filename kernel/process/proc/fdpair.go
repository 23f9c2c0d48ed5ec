package proc

import (
	"hardtack/abi/linux"
	"hardtack/kernel/base/uio"
	"hardtack/kernel/fs/vfs"
)

// FDPair is the two descriptors of a call that makes both or none. They are reserved
// first, then installed or dropped.
type FDPair [2]int32

// ReserveFDs reserves a pair of descriptors.
func (t *Thread) ReserveFDs() (p FDPair, e linux.Errno) {
	if p[0], e = t.FDs.Reserve(0, t.NoFile()); e != 0 {
		return p, e
	}
	if p[1], e = t.FDs.Reserve(0, t.NoFile()); e != 0 {
		t.FDs.Unreserve(p[0])
	}
	return p, e
}

// Write tells the program the numbers: int[2].
func (p FDPair) Write(t *Thread, addr uio.Addr) linux.Errno {
	b := t.Scratch[:8]
	le.PutUint32(b, uint32(p[0]))
	le.PutUint32(b[4:], uint32(p[1]))
	_, e := t.Mem.CopyOut(addr, b)
	return e
}

// Install puts files behind the descriptors.
func (p FDPair) Install(t *Thread, f, g *vfs.File, cloexec bool) {
	t.FDs.Install(p[0], f, cloexec)
	t.FDs.Install(p[1], g, cloexec)
}

// Drop gives the descriptors up.
func (p FDPair) Drop(t *Thread) {
	t.FDs.Unreserve(p[0])
	t.FDs.Unreserve(p[1])
}
