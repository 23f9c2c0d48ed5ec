package ipc

import "unsafe"

// LongBytes is Long as bytes, in the order of memory.
func (t *Thread) LongBytes() []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(&t.Long)), len(t.Long)*8)
}
