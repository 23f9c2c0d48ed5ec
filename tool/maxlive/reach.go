package maxlive

import "golang.org/x/tools/go/ssa"

// reach is all that an object may be reachable from.
type reach struct {
	pointers []int32 // values that may hold it
	contents []int32 // contents that it may be in: roots
	set      uint64  // of the bits of a summary
}

// walk follows all paths from some nodes.
func (f *flow) walk(start ...node) reach {
	var r reach
	seenP, seenC := map[int32]bool{}, map[int32]bool{}
	todo := start
	for len(todo) > 0 {
		n := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if n.content {
			root := f.find(n.id)
			if seenC[root] {
				continue
			}
			seenC[root] = true
			r.contents = append(r.contents, root)
			for _, p := range f.loads[root] {
				todo = append(todo, node{id: p})
			}
			continue
		}
		if seenP[n.id] {
			continue
		}
		seenP[n.id] = true
		r.pointers = append(r.pointers, n.id)
		todo = append(todo, f.out[n.id]...)
	}
	r.set = f.bits(seenP, seenC)
	return r
}

// bits are the special values and parameters among what was reached.
func (f *flow) bits(pointers, contents map[int32]bool) uint64 {
	var set uint64
	if pointers[heapID] || contents[f.find(heapID)] {
		set |= heapBit
	}
	if pointers[resultID] || contents[f.find(resultID)] {
		set |= resultBit
	}
	if contents[f.find(closureID)] {
		set |= closureBit
	}
	for i, p := range f.fn.Params {
		id, ok := f.ids[p]
		if !ok || !contents[f.find(id)] {
			continue
		}
		if i >= maxParams {
			set |= heapBit
		} else {
			set |= 1 << i
		}
	}
	return set
}

// shares are the special values and parameters whose contents are those of id.
func (f *flow) shares(id int32) uint64 {
	return f.bits(nil, map[int32]bool{f.find(id): true})
}

// summarise makes the summary for callers.
func (f *flow) summarise() *flowSummary {
	n := min(len(f.fn.Params), maxParams)
	s := &flowSummary{direct: make([]uint64, n), loaded: make([]uint64, n), shared: make([]uint64, n)}
	for i := range n {
		p := f.fn.Params[i]
		if !f.carries(p) {
			continue
		}
		id := f.id(p)
		s.direct[i] = f.walk(node{id: id}).set
		s.shared[i] = f.shares(id)&^(1<<i) | f.walk(node{id, true}).set&heapBit
		if f.walk(node{id, true}).set&resultBit != 0 {
			s.loaded[i] = resultBit
		}
	}
	s.closure.shared = f.shares(closureID) &^ closureBit
	s.result = f.shares(resultID) &^ resultBit
	return s
}

// equal says whether two summaries say the same.
func (s *flowSummary) equal(t *flowSummary) bool {
	if t == nil || s.closure != t.closure || s.result != t.result {
		return false
	}
	for i := range s.direct {
		if s.direct[i] != t.direct[i] || s.loaded[i] != t.loaded[i] || s.shared[i] != t.shared[i] {
			return false
		}
	}
	return true
}

// opaque is the summary of a function that may do anything with its arguments.
func opaque(fn *ssa.Function) *flowSummary {
	n := min(len(fn.Params), maxParams)
	s := &flowSummary{direct: make([]uint64, n), loaded: make([]uint64, n), shared: make([]uint64, n), result: heapBit}
	for i := range n {
		s.direct[i], s.shared[i] = heapBit, heapBit
	}
	return s
}

// borrowing is the summary of one that keeps nothing.
func borrowing(fn *ssa.Function) *flowSummary {
	n := min(len(fn.Params), maxParams)
	return &flowSummary{direct: make([]uint64, n), loaded: make([]uint64, n), shared: make([]uint64, n), result: heapBit}
}

// inside says whether all that was reached belongs to the blocks of a loop and is made
// again by each iteration.
func (f *flow) inside(r reach, l *loop) bool {
	if r.set != 0 {
		return false
	}
	for _, id := range r.pointers {
		if !f.madeIn(id, l) {
			return false
		}
	}
	for _, root := range r.contents {
		for _, id := range f.within[root] {
			if !f.madeIn(id, l) {
				return false
			}
		}
	}
	return true
}

func (f *flow) madeIn(id int32, l *loop) bool {
	if id < specials {
		return false
	}
	in, ok := f.values[id].(ssa.Instruction)
	if !ok || !l.blocks[in.Block()] {
		return false
	}
	_, isPhi := in.(*ssa.Phi)
	return !isPhi || in.Block() != l.header
}
