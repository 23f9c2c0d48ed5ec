package driver

// Offset returns the registers that begin off bytes into others.
func Offset(m MMIO, off uint64) MMIO { return offset{m, off} }

type offset struct {
	m   MMIO
	off uint64
}

func (o offset) Read8(off uint64) uint8       { return o.m.Read8(o.off + off) }
func (o offset) Read16(off uint64) uint16     { return o.m.Read16(o.off + off) }
func (o offset) Read32(off uint64) uint32     { return o.m.Read32(o.off + off) }
func (o offset) Read64(off uint64) uint64     { return o.m.Read64(o.off + off) }
func (o offset) Write8(off uint64, v uint8)   { o.m.Write8(o.off+off, v) }
func (o offset) Write16(off uint64, v uint16) { o.m.Write16(o.off+off, v) }
func (o offset) Write32(off uint64, v uint32) { o.m.Write32(o.off+off, v) }
func (o offset) Write64(off uint64, v uint64) { o.m.Write64(o.off+off, v) }
