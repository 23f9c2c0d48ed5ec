// Package abi compares system calls with Linux's in cases that nobody lists by
// hand: a program (guest/) makes each call on each kind of subject with many
// arguments, says what came of it, and Linux 6.1 has said so before. Its answers
// are in testdata/linux-6.1; differences that are known, with a reason each, are
// in testdata/known.
//
//	abi.go      the program, and how a machine runs it
//	answers.go  what a machine answered, as text
//	known.go    the differences that are known
package abi
