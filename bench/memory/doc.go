// Package membench has users who exhaust the machine's memory beside a program that
// behaves, and measures what that program sees: figure 10 of Biscuit (Cutler et al., "The
// benefits and costs of writing a POSIX kernel in a high-level language").
//
//	guest/main.c     process 1 of the guest, which starts the others and prints a row for each run
//	guest/good.c     the well-behaved program
//	guest/offend.c   what all offenders have in common
//	guest/kinds_*.c  what each kind of offender does
//	report/          the command that writes docs/bench/memory.md
package membench
