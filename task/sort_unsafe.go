package task

import "unsafe"

// isWord tells whether an E fits in a register: a number, not a string.
func isWord[E any]() bool {
	var e E
	return unsafe.Sizeof(e) <= wordSize
}
