package main

import (
	"strings"

	"hardtack/abi/linux"
	proto "hardtack/idl/live"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/uio"
	"hardtack/kernel/fs/vfs"
	"hardtack/kernel/trace"
)

// startTrace makes a session that shows system calls: its output is an open file of package
// trace, and its arguments are lines for that.
func (v *visitors) startTrace(in *proto.StartCall) (*visitor, linux.Errno) {
	c := caller.NewKernelCtx()
	ops, e := trace.Open(c)
	if e != 0 {
		return nil, e
	}
	f := vfs.NewFile(ops, linux.O_RDWR|linux.O_NONBLOCK)
	text := []byte(strings.Join(words(in.Args), "\n"))
	if _, e := ops.Write(c, f, uio.Bytes(text), 0); e != 0 {
		f.Put()
		return nil, e
	}
	s := &visitor{traces: true}
	s.out[0] = f
	return s, 0
}
