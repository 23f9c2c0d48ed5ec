package maxlive

import (
	"slices"

	"golang.org/x/tools/go/ssa"
)

// Cost is what one call of a function allocates at most. What it leaves behind is told
// by where it can be reached from after the call.
type Cost struct {
	Heap  Vector // from anywhere
	Param Vector // from what the arguments in ParamSet refer to
	Ret   Vector // from results only
	Peak  Vector // live at once during the call, all of the above included

	ParamSet uint64

	// Sum is the most bytes that it allocates in all, dead ones among them; endless if
	// that is not known.
	Sum uint64
}

const endless = 1 << 62

// sum is what a call allocates in all, where that was not added up: no less than its peak.
func (c *Cost) sum() uint64 { return max(c.Sum, c.Peak.Total()) }

// Lasting is what is left after the call.
func (c *Cost) Lasting() Vector {
	v := c.Heap
	v.add(&c.Param)
	v.add(&c.Ret)
	return v
}

// Transient is what is dead after the call: the peak without what lasts.
func (c *Cost) Transient() Vector {
	l := c.Lasting()
	return c.Peak.less(&l)
}

func (c *Cost) max(d *Cost) {
	c.Heap.max(&d.Heap)
	c.Param.max(&d.Param)
	c.Ret.max(&d.Ret)
	c.Peak.max(&d.Peak)
	c.ParamSet |= d.ParamSet
	c.Sum = max(c.Sum, d.sum())
}

func (c *Cost) add(d *Cost) {
	c.Heap.add(&d.Heap)
	c.Param.add(&d.Param)
	c.Ret.add(&d.Ret)
	c.Sum = min(satAdd(c.sum(), d.sum()), endless)
	c.Peak.add(&d.Peak)
	c.ParamSet |= d.ParamSet
}

// Where an object is after the function.
const (
	dead = iota // nowhere
	inRet
	inParam
	inHeap
	places
)

func placeOf(set uint64) int {
	switch {
	case set&heapBit != 0:
		return inHeap
	case set&(closureBit|(1<<maxParams-1)) != 0:
		return inParam
	case set&resultBit != 0:
		return inRet
	}
	return dead
}

// event is something that an instruction allocates, or the call of a function.
type event struct {
	size  Vector // what stays of it
	place int
	set   uint64
	keep  *loop // the innermost loop of which each iteration leaves it dead; nil: none
	peak  Vector
	sum   uint64 // allocated in all
	by    ssa.Instruction
}

// state is what has been acquired on the worst path so far. kept[d] is the part that
// is still live when the iteration of the enclosing loop at depth d ends.
type state struct {
	all   Vector
	place [places]Vector
	kept  []Vector
}

func newState(depth int) *state { return &state{kept: make([]Vector, depth+1)} }

func (s *state) clone(depth int) *state {
	t := *s
	t.kept = make([]Vector, depth+1)
	copy(t.kept, s.kept)
	return &t
}

func (s *state) max(t *state) {
	s.all.max(&t.all)
	for i := range s.place {
		s.place[i].max(&t.place[i])
	}
	for i := range s.kept {
		if i < len(t.kept) {
			s.kept[i].max(&t.kept[i])
		}
	}
}

func (s *state) add(t *state) {
	s.all.add(&t.all)
	for i := range s.place {
		s.place[i].add(&t.place[i])
	}
	for i := range s.kept {
		if i < len(t.kept) {
			s.kept[i].add(&t.kept[i])
		}
	}
}

// repeat adds n iterations of t: what of each is kept.
func (s *state) repeat(t *state, n uint64, depth int) {
	if n == 0 {
		return
	}
	v := t.kept[depth].times(n)
	s.all.add(&v)
	for i := range s.place {
		v := t.place[i].times(n)
		s.place[i].add(&v)
	}
	for i := range min(depth, len(s.kept)) {
		v := t.kept[i].times(n)
		s.kept[i].add(&v)
	}
}

// coster adds up one function.
type coster struct {
	byBlock map[*ssa.BasicBlock]*loop
	order   []*ssa.BasicBlock // predecessors first
	events  map[*ssa.BasicBlock][]event
	doomed  map[*ssa.BasicBlock]bool // blocks that do not count: they end in a panic
	known   func(*loop) bool         // whether a loop that needs a bound has one
	unknown func(*loop)              // called where it has none
}

type edge struct{ from, to *ssa.BasicBlock }

// region is a loop, or the whole function, as one step.
type region struct {
	ends map[edge]*state // by the edge on which it is left
	done *state          // at returns, which are in no loop
	back *state          // at the end of an iteration
	peak Vector
}

func (c *coster) cost(fn *ssa.Function) Cost {
	c.order = postorder(fn)
	slices.Reverse(c.order)
	r := c.region(nil)
	out := Cost{Peak: r.peak}
	if r.done != nil {
		out.Heap, out.Param, out.Ret = r.done.place[inHeap], r.done.place[inParam], r.done.place[inRet]
	}
	for _, events := range c.events {
		for _, e := range events {
			if e.place == inParam {
				out.ParamSet |= e.set
			}
		}
	}
	return out
}

// left is the event of a loop's body that leaves most behind with each iteration.
func (c *coster) left(l *loop) (most *event) {
	for b := range l.blocks {
		events := c.events[b]
		for i := range events {
			e := &events[i]
			if e.size.zero() || e.keep != nil && e.keep.within(l) {
				continue
			}
			if most == nil || e.size.Total() > most.size.Total() || e.size.Total() == most.size.Total() && e.by.Pos() < most.by.Pos() {
				most = e
			}
		}
	}
	return most
}

func depthOf(l *loop) int {
	if l == nil {
		return 0
	}
	return l.depth
}

// region follows the blocks of a loop, or of the function, from nothing.
func (c *coster) region(l *loop) *region {
	r := &region{ends: map[edge]*state{}}
	depth := depthOf(l)
	in := map[*ssa.BasicBlock]*state{}
	reach := func(e edge, s *state) {
		switch {
		case l != nil && !l.blocks[e.to]:
			join(r.ends, e, s)
		case l != nil && e.to == l.header:
			if r.back == nil {
				r.back = newState(depth)
			}
			r.back.max(s)
		default:
			join(in, e.to, s)
		}
	}
	first := c.order[0]
	if l != nil {
		first = l.header
	}
	in[first] = newState(depth)
	for _, b := range c.order {
		s := in[b]
		if s == nil || l != nil && !l.blocks[b] {
			continue
		}
		delete(in, b)
		if m := c.inner(b, l); m != nil {
			c.enter(m, s, depth, r, reach)
			continue
		}
		s = c.block(b, s, r)
		if n := len(b.Succs); n == 0 {
			if _, ok := b.Instrs[len(b.Instrs)-1].(*ssa.Return); ok {
				if r.done == nil {
					r.done = newState(0)
				}
				r.done.max(s)
			}
		}
		for _, to := range b.Succs {
			reach(edge{b, to}, s)
		}
	}
	return r
}

func join[K comparable](m map[K]*state, k K, s *state) {
	if m[k] == nil {
		m[k] = s.clone(len(s.kept) - 1)
	} else {
		m[k].max(s)
	}
}

// inner is the loop whose header b is, directly inside l.
func (c *coster) inner(b *ssa.BasicBlock, l *loop) *loop {
	m := c.byBlock[b]
	if m == l || m == nil || m.header != b {
		return nil
	}
	return m
}

// block applies what the instructions of a block do.
func (c *coster) block(b *ssa.BasicBlock, s *state, r *region) *state {
	if c.doomed[b] {
		return s
	}
	events := c.events[b]
	if len(events) == 0 {
		return s
	}
	t := s.clone(len(s.kept) - 1)
	for i := range events {
		t.apply(&events[i], r)
	}
	return t
}

func (s *state) apply(e *event, r *region) {
	peak := s.all
	if e.peak.zero() {
		peak.add(&e.size)
	} else {
		peak.add(&e.peak)
	}
	r.peak.max(&peak)
	s.all.add(&e.size)
	s.place[e.place].add(&e.size)
	for d := 1; d < len(s.kept); d++ {
		if e.keep == nil || d > e.keep.depth {
			s.kept[d].add(&e.size)
		}
	}
}

// doomed finds the blocks from which every path ends in a panic. There are none in a
// function that only ever panics: that may be how it hands something on.
func doomed(fn *ssa.Function) map[*ssa.BasicBlock]bool {
	out := map[*ssa.BasicBlock]bool{}
	order := postorder(fn)
	for changed := true; changed; {
		changed = false
		for _, b := range order {
			_, ends := b.Instrs[len(b.Instrs)-1].(*ssa.Panic)
			all := ends || len(b.Succs) > 0
			for _, s := range b.Succs {
				all = all && out[s]
			}
			if all && !out[b] {
				out[b], changed = true, true
			}
		}
	}
	if len(fn.Blocks) > 0 && out[fn.Blocks[0]] {
		return nil
	}
	return out
}

// enter takes a loop inside the region as one step.
func (c *coster) enter(m *loop, s *state, depth int, r *region, reach func(edge, *state)) {
	body := c.region(m)
	entries, check := uint64(1), false
	if body.back != nil && !body.back.kept[m.depth].zero() {
		if c.known(m) {
			entries, check = max(m.entries, 1), m.check
		} else {
			c.unknown(m)
		}
	}
	peak := s.all
	if body.back != nil {
		more := body.back.kept[m.depth].times(entries - 1)
		if check && entries > 1 {
			more = body.back.kept[m.depth].times(entries - 2)
			c.headerPeak(m, body, s, entries, r)
		}
		peak.add(&more)
	}
	peak.add(&body.peak)
	r.peak.max(&peak)
	for e, end := range body.ends {
		out := s.clone(depth)
		n := entries - 1
		if check && e.from != m.header && n > 0 {
			n--
		}
		if body.back != nil {
			out.repeat(body.back, n, m.depth)
		}
		out.add(end)
		r.peak.max(&out.all)
		reach(e, out)
	}
}

// headerPeak is the peak of the last look at a loop's condition, after all iterations.
func (c *coster) headerPeak(m *loop, body *region, s *state, entries uint64, r *region) {
	peak := s.all
	kept := body.back.kept[m.depth].times(entries - 1)
	peak.add(&kept)
	for i := range c.events[m.header] {
		e := &c.events[m.header][i]
		peak.add(&e.size)
		if !e.peak.zero() {
			peak.add(&e.peak)
		}
	}
	r.peak.max(&peak)
}
