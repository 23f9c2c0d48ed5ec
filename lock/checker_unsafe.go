//go:build lockcheck

package lock

import "unsafe"

func address(c *Checker) uintptr { return uintptr(unsafe.Pointer(c)) }
