// Package collectbench measures what the kernel's collector of garbage adds to single
// system calls, and what it costs for how much more memory than is alive.
//
//	guest/collect.c  a loop of system calls, each of which is timed
//	report/          the command that writes docs/bench/collector.md
//
// QEMU counts instructions (-icount shift=0), so the time-stamp counter does.
package collectbench
