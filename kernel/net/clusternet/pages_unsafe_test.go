package clusternet

import (
	"unsafe"

	"hardtack/abi/boot"
)

// pages returns memory for a wire, which is aligned to a page.
func pages() []byte {
	b := make([]byte, (boot.NetPages+1)*pageBytes)
	off := -int(uintptr(unsafe.Pointer(&b[0]))) & (pageBytes - 1)
	return b[off : off+boot.NetPages*pageBytes]
}
