package main

import (
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Marks of the plugin (bench/cluster/plugin).
const (
	countOn  = 3
	countOff = 4
	begin    = 16
	end      = 17
)

// marker makes a function that executes a mark, which is a long no-operation, and returns.
func marker(number uint16) func() {
	code, err := unix.Mmap(-1, 0, os.Getpagesize(), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		panic(err)
	}
	copy(code, []byte{0x0f, 0x1f, 0x84, 0x00, byte(number), byte(number >> 8), 0x54, 0x48, 0xc3})
	if err := unix.Mprotect(code, unix.PROT_READ|unix.PROT_EXEC); err != nil {
		panic(err)
	}
	// The value of a function is the address of a word with its code's address.
	word := new(unsafe.Pointer)
	*word = unsafe.Pointer(&code[0])
	return *(*func())(unsafe.Pointer(&word))
}

// within puts two marks around a function.
func within(first, last uint16) func(fn func()) {
	from, to := marker(first), marker(last)
	return func(fn func()) {
		runtime.GC() // not meanwhile, for the last one's garbage
		from()
		fn()
		to()
	}
}
