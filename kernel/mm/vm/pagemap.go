package vm

// Bits of an entry of /proc/PID/pagemap; below them is the frame's number.
const (
	pagemapExclusive = 1 << 56
	pagemapFile      = 1 << 61
	pagemapPresent   = 1 << 63
	pagemapFrame     = 1<<55 - 1
)

// Pagemap fills entries for the pages from va on; frames says whether the numbers of
// frames are shown.
func (s *Space) Pagemap(va uint64, entries []uint64, frames bool) {
	clear(entries)
	end := va + uint64(len(entries))*pageSize
	for at := va; at < end; {
		s.pt.RLock()
		t, first, stop := s.next(at, end)
		if t == nil {
			s.pt.RUnlock()
			return
		}
		for p := first; p < stop; p += pageSize {
			if e := load(&t[index(p)]); e&pteAddr != 0 { // without access, too
				entries[(p-va)/pageSize] = pagemapEntry(e, frames)
			}
		}
		s.pt.RUnlock()
		at = stop
	}
}

func pagemapEntry(e pte, frames bool) uint64 {
	v := uint64(pagemapPresent)
	users := int64(frameOf(e).Refs())
	if e&pteAnon == 0 && frameOf(e) != zeroFrame {
		v |= pagemapFile
		users--
	}
	if users <= 1 && frameOf(e) != zeroFrame {
		v |= pagemapExclusive
	}
	if frames {
		v |= e & pteAddr >> pageShift & pagemapFrame
	}
	return v
}
