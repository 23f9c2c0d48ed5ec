package nucleus

import (
	_ "unsafe" // for linkname

	"hardtack/arch/amd64"
)

//go:linkname entersyscall runtime.entersyscall
func entersyscall()

//go:linkname exitsyscall runtime.exitsyscall
func exitsyscall()

// linger makes the call as one that Go's scheduler knows of: it may have the processor
// (P), and need not wait for the caller to stop the world.
//
//go:nosplit
func linger() uint64 {
	entersyscall()
	r := amd64.Syscall(sysLinger, 0, 0, 0)
	exitsyscall()
	return r
}
