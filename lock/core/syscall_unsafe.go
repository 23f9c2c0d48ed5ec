//go:build amd64

package core

import _ "unsafe" // for linkname

// The scheduler's side of system calls, which the runtime leaves open to packages
// that make their own (go.dev/issue/67401).

//go:linkname entersyscall runtime.entersyscall
func entersyscall()

//go:linkname exitsyscall runtime.exitsyscall
func exitsyscall()
