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

// startTrace makes a session that shows system calls.
func (v *visitors) startTrace(in *proto.StartCall) (*visitor, linux.Errno) {
	return startFile(in, trace.Open)
}

// startReport makes a session whose output is one of the kernel's reports, by its name.
func (v *visitors) startReport(in *proto.StartCall) (*visitor, linux.Errno) {
	switch in.Dir {
	case "flight":
		return startFile(in, trace.OpenRecorder)
	case "profile":
		return startFile(in, openProfile)
	}
	return nil, linux.ENOENT
}

// startFile makes a session whose output is an open file's: its arguments are lines that are
// written to it first.
func startFile(in *proto.StartCall, open func(*caller.Ctx) (vfs.Ops, linux.Errno)) (*visitor, linux.Errno) {
	c := caller.NewKernelCtx()
	ops, e := open(c)
	if e != 0 {
		return nil, e
	}
	f := vfs.NewFile(ops, linux.O_RDWR|linux.O_NONBLOCK)
	text := []byte(strings.Join(words(in.Args), "\n"))
	if _, e := ops.Write(c, f, uio.Bytes(text), 0); e != 0 && len(text) > 0 {
		f.Put()
		return nil, e
	}
	s := &visitor{traces: true}
	s.out[0] = f
	return s, 0
}
