// Package taskbench measures the task library beside other fork-join systems:
// the same programs, each in a process of its own, taking turns within one run,
// so that a busy machine slows all of them alike.
//
// The programs are fib and stress, which spawn at every call and do nothing
// else, and a merge sort. What other languages run is in ref (C) and in
// ../peers (rayon, oneTBB, Go pools), which are no dependencies of the project.
package taskbench
