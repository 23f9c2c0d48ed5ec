package initramfs

import (
	"unsafe"

	"hardtack/kernel/base/mem"
)

// contiguous returns n bytes that begin at a frame; the host's arena is one piece.
func contiguous(first mem.Frame, n int) []byte {
	return unsafe.Slice(unsafe.SliceData(first.Bytes()), n)
}
