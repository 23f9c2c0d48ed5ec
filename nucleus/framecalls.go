package nucleus

import "hardtack/arch/amd64"

func serveAlloc(c *amd64.CPU, out, n uint64) uint64 {
	if !touch(c, uintptr(out), int(n)*4) {
		return 0
	}
	i := uint64(0)
	memory.Acquire()
	for i < n && frames.free.Load() > frames.least {
		pa := allocFrame()
		if pa == 0 {
			break
		}
		store32(uintptr(out+4*i), uint32(pa>>12))
		i++
	}
	memory.Release()
	return i
}

func serveFree(c *amd64.CPU, in, n uint64) uint64 {
	if touch(c, uintptr(in), int(n)*4) {
		memory.Acquire()
		for i := range n {
			freeFrame(uint64(load32(uintptr(in+4*i))) << 12)
		}
		memory.Release()
	}
	return 0
}
