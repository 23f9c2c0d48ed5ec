package amd64

// Prepare sets up the parts of c that assembly uses; stacks are tops.
func (c *CPU) Prepare(index int, nucleusSP uintptr, ist [7]uintptr) (gdtr [10]byte) {
	c.Index = uint32(index)
	c.nucleusSP = nucleusSP
	c.setAddresses()
	c.inNucleus = 1

	// 64-bit TSS (SDM vol. 3, 8.7): RSP0 at 4, IST1 at 36, I/O map base at 102.
	putTSS := func(off int, v uintptr) { c.tss[off/4] = uint32(v); c.tss[off/4+1] = uint32(v >> 32) }
	putTSS(4, nucleusSP)
	for i := 1; i <= 6; i++ {
		putTSS(36+8*(i-1), ist[i])
	}
	c.tss[25] = 104 << 16
	tss, gdt := c.tables()
	base, limit := uint64(tss), uint64(103)
	c.gdt = [10]uint64{
		SelKernelCode / 8: 0x00af9b000000ffff,
		SelKernelData / 8: 0x00cf93000000ffff,
		SelUserData / 8:   0x00cff3000000ffff,
		SelUserCode / 8:   0x00affb000000ffff,
		SelTSS / 8:        limit | base&0xffffff<<16 | 0x89<<40 | base>>24&0xff<<56,
		SelTSS/8 + 1:      base >> 32,
	}
	return descriptor(gdt, 8*len(c.gdt)-1)
}

func descriptor(table uintptr, limit int) (d [10]byte) {
	d[0], d[1] = byte(limit), byte(limit>>8)
	for i := range 8 {
		d[2+i] = byte(table >> (8 * i))
	}
	return d
}

// Load makes c the running processor's: descriptor tables, task register, GS
// base, and the SYSCALL registers (SDM vol. 3, 5.8.8).
func (c *CPU) Load(index int, nucleusSP uintptr, ist [7]uintptr, idtr [10]byte) {
	gdtr := c.Prepare(index, nucleusSP, ist)
	for _, top := range ist[1:] {
		storeAt(top, c.self)
	}
	loadTables(&gdtr, &idtr)
	const efer, star, lstar, fmask, gsBase, kernelGS = 0xc0000080, 0xc0000081, 0xc0000082, 0xc0000084, 0xc0000101, 0xc0000102
	WriteMSR(gsBase, uint64(c.self))
	WriteMSR(kernelGS, 0)
	WriteMSR(star, SelKernelCode<<32|(SelUserData-8)<<48)
	WriteMSR(lstar, uint64(SyscallEntry()))
	WriteMSR(fmask, 0x57700) // TF IF DF IOPL NT RF AC
	WriteMSR(efer, ReadMSR(efer)|1)
}
