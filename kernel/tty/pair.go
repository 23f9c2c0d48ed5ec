package tty

import (
	"strconv"

	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/fs/vfs"
)

// Pair is a pseudo-terminal of which the kernel itself has the master.
type Pair struct {
	Master *vfs.File
	p      *pair
}

// OpenPair makes a pseudo-terminal of c's. Putting Master hangs it up.
func OpenPair(c *caller.Ctx) (*Pair, linux.Errno) {
	ops, e := OpenMaster(c, 0)
	if e != 0 {
		return nil, e
	}
	p := ops.(*master).p
	p.slave.mu.Lock()
	p.locked = false
	p.slave.mu.Unlock()
	return &Pair{vfs.NewFile(ops, linux.O_RDWR|linux.O_NONBLOCK), p}, 0
}

// Path is the slave's name.
func (x *Pair) Path() string { return "/dev/pts/" + strconv.FormatUint(uint64(x.p.n), 10) }

// SetSize is SetSize of the slave.
func (x *Pair) SetSize(rows, cols uint16) { x.p.slave.SetSize(linux.Winsize{Row: rows, Col: cols}) }

// Adopt makes it the controlling terminal of a session.
func (x *Pair) Adopt(session, group int32) { x.p.slave.Adopt(session, group) }

// EndInput is what typing the character for the end of file does.
func (x *Pair) EndInput() {
	t := &x.p.slave
	t.mu.Lock()
	eof := t.term.Cc[linux.VEOF]
	t.mu.Unlock()
	t.Receive([]byte{eof})
}
