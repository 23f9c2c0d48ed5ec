package inet

import (
	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/mem"
	"hardtack/kernel/fs/vfs"
)

// Map gives the place into which TCP_ZEROCOPY_RECEIVE would move pages. It never does,
// so that nothing is ever there: whoever touches it gets SIGBUS, as on Linux.
func (s *TCP) Map(*caller.Ctx, *vfs.File) (mem.Object, linux.Errno) { return &receivePages, 0 }

// receivePages is what all sockets map.
var receivePages emptyPages

type emptyPages struct{ mappings mem.Mappings }

// Page implements mem.Object.
func (*emptyPages) Page(uint64, bool) (mem.Frame, linux.Errno) { return 0, linux.EFAULT }

// Mappings implements mem.Object.
func (p *emptyPages) Mappings() *mem.Mappings { return &p.mappings }

// ReadOnly implements mem.ReadOnly.
func (*emptyPages) ReadOnly() {}
