// Package osbench boots an operating system in QEMU, runs the programs of
// bench/os/guest in it and collects what they print. Linux (Debian's 6.1 cloud
// kernel) and Hardtack get the same root file system, the same binaries and
// the same QEMU flags, so a difference of two figures is the kernels' own.
//
// guest/ holds the programs (C: the reference), report/ the command that prints
// the table and writes docs/bench/os.md.
package osbench
