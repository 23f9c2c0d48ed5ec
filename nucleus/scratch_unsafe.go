package nucleus

import "unsafe"

// entropyScratch is 32 MiB that Go's crypto packages set aside in the image for
// an entropy source that nothing here uses. Its frames are ordinary memory, and
// its pages come at the first touch like the heap's.
//
//go:linkname entropyScratch crypto/internal/fips140/drbg.memory
var entropyScratch [32 << 20]byte

// scratch returns the whole pages of it.
func scratch() (start, end uint64) {
	a := uint64(uintptr(unsafe.Pointer(&entropyScratch)))
	return (a + pageSize - 1) &^ (pageSize - 1), (a + uint64(len(entropyScratch))) &^ (pageSize - 1)
}
