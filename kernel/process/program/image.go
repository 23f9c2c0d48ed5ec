// Package program is the loader of exec(2): it finds a program and its interpreters, decides
// what it may do, and builds its address space. Package proc makes a process run it.
package program

import "hardtack/kernel/fs/vfs"

// Image is the program that a process runs; immutable.
type Image struct {
	File               *vfs.File // the program, for /proc/PID/exe
	Path               string
	ArgStart, ArgEnd   uint64
	EnvStart, EnvEnd   uint64
	aux                [maxAux]uint64
	auxLen             int
	StackTop           uint64
	CodeStart, CodeEnd uint64
	DataStart, DataEnd uint64
	Entry              uint64
}

// Auxv returns the auxiliary vector (/proc/PID/auxv).
func (i *Image) Auxv() []uint64 { return i.aux[:i.auxLen] }
