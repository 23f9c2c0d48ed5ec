package nucleus

import "unsafe"

func sliceOf(s []uint32) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(s))) }

func flagsAt(s []uint16) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(s))) }
