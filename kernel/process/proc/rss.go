package proc

import "hardtack/kernel/mm/vm"

// noteRSS keeps the high-water mark of an address space that the process leaves.
func (p *Process) noteRSS(s *vm.Space) {
	kib := int64(s.Stats().HWM >> 10)
	for {
		old := p.maxRSS.Load()
		if kib <= old || p.maxRSS.CompareAndSwap(old, kib) {
			return
		}
	}
}

// peakRSS returns the greatest resident size in KiB.
func (p *Process) peakRSS() int64 {
	if s := p.AcquireSpace(); s != nil {
		p.noteRSS(s)
		s.EndLook()
	}
	return p.maxRSS.Load()
}
