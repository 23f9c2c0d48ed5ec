// Package nucleusbench measures the nucleus of the kernel under its concurrency
// controls: what single operations cost, and Redis servers with their clients on four
// CPUs, as in figure 7 of Elphinstone et al., An Evaluation of Coarse-Grained Locking
// for Multicore Microkernels. guest/ holds the program that runs in the guest, report/
// the command that prints the tables and writes docs/bench/nucleus.md.
package nucleusbench
