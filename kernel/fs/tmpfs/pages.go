package tmpfs

import "hardtack/kernel/base/mem"

// pages is a file's page table: the first few frames are in the node itself,
// the rest in leaves. The leaves of a dense file are in a slice; a leaf far
// behind the others is in a map, so that a byte at the end of a huge hole costs
// one leaf and not a slice up to it.
type pages struct {
	first  [firstPages]mem.Frame
	dense  []*leaf
	far    map[uint64]*leaf
	leaves int32 // in dense and far
	used   int32 // frames
}

const (
	firstPages = 8
	leafPages  = 64
	leafShift  = 6
)

type leaf [leafPages]mem.Frame

// get returns page n, or 0 for a hole.
func (p *pages) get(n uint64) mem.Frame {
	if n < firstPages {
		return p.first[n]
	}
	if l := p.leaf(n >> leafShift); l != nil {
		return l[n%leafPages]
	}
	return 0
}

func (p *pages) leaf(k uint64) *leaf {
	if k < uint64(len(p.dense)) {
		if l := p.dense[k]; l != nil {
			return l
		}
	}
	if p.far != nil {
		return p.far[k]
	}
	return nil
}

// set puts a frame where a hole is.
func (p *pages) set(n uint64, f mem.Frame) {
	p.used++
	if n < firstPages {
		p.first[n] = f
		return
	}
	k := n >> leafShift
	l := p.leaf(k)
	if l == nil {
		l = new(leaf)
		p.leaves++
		switch {
		case k < uint64(len(p.dense)):
			p.dense[k] = l
		case k < uint64(2*p.leaves+8):
			p.dense = append(p.dense, make([]*leaf, k+1-uint64(len(p.dense)))...)
			p.dense[k] = l
		default:
			if p.far == nil {
				p.far = map[uint64]*leaf{}
			}
			p.far[k] = l
		}
	}
	l[n%leafPages] = f
}

// replace puts another frame where one is.
func (p *pages) replace(n uint64, f mem.Frame) {
	if n < firstPages {
		p.first[n] = f
	} else {
		p.leaf(n >> leafShift)[n%leafPages] = f
	}
}

// take takes the frame of page n out, 0 if there is none.
func (p *pages) take(n uint64) mem.Frame {
	f := p.get(n)
	if f == 0 {
		return 0
	}
	p.used--
	if n < firstPages {
		p.first[n] = 0
	} else {
		p.leaf(n >> leafShift)[n%leafPages] = 0
	}
	if p.used == 0 {
		p.dense, p.far, p.leaves = nil, nil, 0
	}
	return f
}

// cut frees the frames of pages first … end-1 and returns how many there were.
func (p *pages) cut(first, end uint64) int {
	n := 0
	free := func(f *mem.Frame) {
		if *f != 0 {
			f.Put()
			*f = 0
			n++
		}
	}
	for i := first; i < min(end, firstPages); i++ {
		free(&p.first[i])
	}
	trim := func(k uint64, l *leaf) (whole bool) {
		lo, hi := max(first, k<<leafShift), min(end, (k+1)<<leafShift)
		for i := lo; i < hi; i++ {
			free(&l[i%leafPages])
		}
		return hi-lo == leafPages
	}
	for k := first >> leafShift; k < uint64(len(p.dense)) && k<<leafShift < end; k++ {
		if l := p.dense[k]; l != nil && trim(k, l) {
			p.dense[k] = nil
			p.leaves--
		}
	}
	for k, l := range p.far {
		if (k+1)<<leafShift > first && k<<leafShift < end && trim(k, l) {
			delete(p.far, k)
			p.leaves--
		}
	}
	p.used -= int32(n)
	if p.used == 0 {
		p.dense, p.far, p.leaves = nil, nil, 0
	}
	return n
}

// next returns the first page from n on that has a frame (data true) or none
// (data false); limit if there is no such page below limit.
func (p *pages) next(n, limit uint64, data bool) uint64 {
	for n < limit {
		if n >= firstPages {
			k := n >> leafShift
			l := p.leaf(k)
			if l == nil {
				if !data {
					return n
				}
				if k >= uint64(len(p.dense)) {
					return p.nextFar(n, limit)
				}
				n = (k + 1) << leafShift
				continue
			}
		}
		if (p.get(n) != 0) == data {
			return n
		}
		n++
	}
	return limit
}

// nextFar finds the first data from n on where only the map has leaves.
func (p *pages) nextFar(n, limit uint64) uint64 {
	best := limit
	for k, l := range p.far {
		if (k+1)<<leafShift <= n || k<<leafShift >= best {
			continue
		}
		for i := max(n, k<<leafShift); i < min(best, (k+1)<<leafShift); i++ {
			if l[i%leafPages] != 0 {
				best = i
				break
			}
		}
	}
	return best
}
