package main

import _ "unsafe" // for linkname

// cputicks reads the time-stamp counter.
//
//go:linkname cputicks runtime.cputicks
func cputicks() int64
