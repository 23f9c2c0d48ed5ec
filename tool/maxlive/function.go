package maxlive

import (
	"fmt"
	"go/ast"
	"go/token"
	"slices"

	"golang.org/x/tools/go/ast/astutil"
	"golang.org/x/tools/go/ssa"
)

// function is what is known of one function.
type function struct {
	a       *Analysis
	fn      *ssa.Function
	byBlock map[*ssa.BasicBlock]*loop
	loops   []*loop
	doomed  map[*ssa.BasicBlock]bool
	chains  map[ssa.Value]bool
	flow    *flow
	bind    *binding
	point   bool // of reservation: callers do not count it
	table   bool // it may grow a table of the runtime, which nobody counts
	calls   map[ssa.CallInstruction][]*function
	callees []*function

	summary *flowSummary
	cost    Cost
	thin    *Cost // where it is inlined and the compiler puts nothing on the heap
	causes  bitset
	own     []int // causes in its own text
}

// Cause is one thing without a bound.
type Cause struct {
	Problem
	Kind string // the text without names
	fn   *function
}

type bitset []uint64

func (b *bitset) set(i int) {
	for len(*b) <= i/64 {
		*b = append(*b, 0)
	}
	(*b)[i/64] |= 1 << (i % 64)
}

func (b *bitset) or(c bitset) {
	for len(*b) < len(c) {
		*b = append(*b, 0)
	}
	for i, w := range c {
		(*b)[i] |= w
	}
}

func (b bitset) list() []int {
	var out []int
	for i := range len(b) * 64 {
		if b[i/64]>>(i%64)&1 != 0 {
			out = append(out, i)
		}
	}
	return out
}

// cause notes that something has no bound.
func (f *function) cause(kind, detail string, pos token.Pos) {
	p := Problem{Pos: f.a.position(pos), Text: kind}
	if !pos.IsValid() {
		p.Pos = f.a.position(f.fn.Pos())
	}
	if detail != "" {
		p.Text += ": " + detail
	}
	for _, i := range f.own {
		if c := f.a.causes[i]; c.Pos == p.Pos && c.Text == p.Text {
			return
		}
	}
	i := len(f.a.causes)
	f.a.causes = append(f.a.causes, &Cause{p, kind, f})
	f.own = append(f.own, i)
	f.causes.set(i)
}

// prepare finds the function's loops and their bounds.
func (f *function) prepare() {
	var wild *ssa.BasicBlock
	f.byBlock, f.loops, wild = loops(f.fn)
	f.chains = map[ssa.Value]bool{}
	if wild != nil {
		pos := f.fn.Pos()
		for _, in := range wild.Instrs {
			if in.Pos().IsValid() {
				pos = in.Pos()
				break
			}
		}
		f.cause("loop that a goto enters from outside", "", pos)
	}
	for _, l := range f.loops {
		l.derive()
		if l.known { // an annotation here is needless: find it so that the error says so
			f.a.notes.find("loop", f.a.position(f.loopPos(l)))
		}
	}
}

// loopKnown says whether a loop has a bound, and takes an annotated one.
func (f *function) loopKnown(l *loop) bool {
	if !l.known && !l.asked {
		l.asked = true
		if n, ok := f.a.notes.bound("loop", f.a.position(f.loopPos(l))); ok {
			l.setRuns(n)
		}
	}
	return l.known
}

// loopPos is the position of the statement that a loop is.
func (f *function) loopPos(l *loop) token.Pos {
	for _, b := range f.fn.Blocks {
		if f.byBlock[b] != l {
			continue
		}
		for _, in := range b.Instrs {
			if pos := f.statement(in.Pos()); pos.IsValid() {
				return pos
			}
		}
	}
	return f.fn.Pos()
}

// statement is the innermost for statement around a position in the function.
func (f *function) statement(pos token.Pos) token.Pos {
	root := f.fn.Syntax()
	if !pos.IsValid() || root == nil || pos < root.Pos() || pos >= root.End() {
		return token.NoPos
	}
	file := f.a.fileAt(pos)
	if file == nil {
		return token.NoPos
	}
	path, _ := astutil.PathEnclosingInterval(file, pos, pos)
	for _, n := range path {
		switch n := n.(type) {
		case *ast.ForStmt, *ast.RangeStmt:
			return n.Pos()
		case *ast.FuncDecl, *ast.FuncLit:
			return token.NoPos
		}
	}
	return token.NoPos
}

// eventsOf makes the events of all blocks. thin leaves out what the compiler's escape
// analysis put on the heap only because it looked at the function alone.
func (f *function) eventsOf(thin bool, skip func(*function) bool) map[*ssa.BasicBlock][]event {
	events := map[*ssa.BasicBlock][]event{}
	sites := map[ssa.Instruction]*site{}
	list := f.sites()
	for i := range list {
		sites[list[i].instr] = &list[i]
	}
	var early []event
	for _, b := range f.fn.Blocks {
		if f.doomed[b] {
			continue
		}
		for _, in := range b.Instrs {
			if s := sites[in]; s != nil && !(thin && s.stack) {
				if s.need != "" {
					f.cause(s.need, "", in.Pos())
				}
				e := f.siteEvent(s)
				e.by, e.sum = in, s.size.Total()
				switch {
				case s.chain == nil:
					events[b] = append(events[b], e)
				case s.chain.level == nil:
					early = append(early, e)
				default:
					h := s.chain.level.header
					events[h] = append(events[h], e)
				}
			}
			if call, ok := in.(ssa.CallInstruction); ok {
				events[b] = append(events[b], f.callEvents(call, skip)...)
			}
			if _, ok := in.(*ssa.RunDefers); ok {
				events[b] = append(events[b], f.deferEvents(skip)...)
			}
		}
	}
	if len(f.fn.Blocks) > 0 {
		first := f.fn.Blocks[0]
		events[first] = append(early, events[first]...)
	}
	return events
}

// siteEvent finds out how long what a site allocates can live.
func (f *function) siteEvent(s *site) event {
	var start []node
	at := s.instr.Block()
	switch in := s.instr.(type) {
	case *ssa.Go:
		return event{size: s.size, place: inHeap, set: heapBit}
	case *ssa.Send, *ssa.Select, *ssa.UnOp:
		return event{peak: s.size} // given back when the wait ends
	case *ssa.MapUpdate:
		start = append(start, node{f.flow.id(in.Map), true})
	case *ssa.Defer:
		start = append(start, node{id: deferID})
	case ssa.Value:
		start = append(start, node{id: f.flow.id(in)})
		if s.chain != nil {
			for _, call := range s.chain.appends {
				start = append(start, node{id: f.flow.id(call)})
			}
			if s.chain.level == nil {
				at = f.fn.Blocks[0]
			}
		}
		if _, ok := in.(*ssa.MakeMap); ok {
			start = append(start, node{f.flow.id(in), true})
		}
	}
	return f.placed(s.size, f.flow.walk(start...), at)
}

// placed is the event of an object that can be reached from r.
func (f *function) placed(size Vector, r reach, b *ssa.BasicBlock) event {
	e := event{size: size, set: r.set, place: placeOf(r.set)}
	for l := f.byBlock[b]; l != nil && e.place == dead; l = l.parent {
		if f.flow.inside(r, l) {
			e.keep = l
			break
		}
	}
	return e
}

// callEvents are the peak of a call, and what it leaves.
func (f *function) callEvents(call ssa.CallInstruction, skip func(*function) bool) []event {
	if _, ok := call.(*ssa.Call); !ok {
		return nil // go: the new goroutine's own; defer: at the end
	}
	cost := f.callCost(call, skip)
	return f.leftBy(call, &cost)
}

func (f *function) leftBy(call ssa.CallInstruction, cost *Cost) []event {
	if cost.Peak.zero() {
		return nil
	}
	out := []event{{peak: cost.Peak, sum: cost.sum()}}
	b := call.Block()
	defer func() {
		for i := range out {
			out[i].by = call
		}
	}()
	if !cost.Heap.zero() {
		out = append(out, event{size: cost.Heap, place: inHeap, set: heapBit})
	}
	if !cost.Param.zero() {
		out = append(out, f.placed(cost.Param, f.flow.walk(f.argContents(call, cost.ParamSet)...), b))
	}
	if !cost.Ret.zero() {
		var start []node
		if v := call.Value(); v != nil && f.flow.carries(v) {
			id := f.flow.id(v)
			start = append(start, node{id: id}, node{id, true})
		}
		out = append(out, f.placed(cost.Ret, f.flow.walk(start...), b))
	}
	return out
}

// argContents are the contents of the arguments in a set.
func (f *function) argContents(call ssa.CallInstruction, set uint64) []node {
	var out []node
	c := call.Common()
	for i, v := range arguments(c) {
		if i < maxParams && set>>i&1 != 0 && f.flow.carries(v) {
			out = append(out, node{f.flow.id(v), true})
		}
	}
	if set&closureBit != 0 && !c.IsInvoke() {
		out = append(out, node{f.flow.id(c.Value), true})
	}
	if set&resultBit != 0 && call.Value() != nil {
		out = append(out, node{id: f.flow.id(call.Value())}, node{f.flow.id(call.Value()), true})
	}
	return out
}

// callCost is the most that any of the functions allocates that a call may reach.
func (f *function) callCost(call ssa.CallInstruction, skip func(*function) bool) Cost {
	var cost Cost
	c := call.Common()
	if _, ok := c.Value.(*ssa.Builtin); ok {
		return cost
	}
	callees := f.calls[call]
	if len(callees) == 0 && !f.a.never(c) && !f.isNil(c.Value) {
		f.cause("call of a function that nothing is known of", "", call.Pos())
		return cost
	}
	var own Cost
	inlined := false
	if c.StaticCallee() != nil && f.fn.Synthetic == "" {
		pos := f.a.position(call.Pos())
		inlined = f.a.esc.inlinedOnStack(pos.Filename, pos.Line, pos.Column)
	}
	for _, callee := range callees {
		g := callee
		if skip(g) || g.point {
			continue
		}
		f.causes.or(g.causes)
		if isFormat(g.fn) {
			format := f.formatCost(call, g.fn)
			own.add(&format)
			continue
		}
		one := g.cost
		if m := f.a.modelOf(g.fn); m != nil && m.copies {
			one = f.copyCost(call, g)
		} else if m != nil && m.grows && (c.StaticCallee() == nil || call.Value() == nil) {
			f.cause("append to a slice of unknown length", "", call.Pos())
		}
		if inlined && g.thin != nil {
			one = *g.thin
		}
		if f.a.once[g.fn] { // what it returns is kept for the next call
			one.Heap.add(&one.Ret)
			one.Ret = Vector{}
		}
		cost.max(&one)
	}
	if !own.Peak.zero() {
		cost.Heap = cost.Heap.times(uint64(len(c.Args)) + 8) // a method for each argument
		cost.Peak.add(&cost.Heap)
		cost.Ret, cost.Param, cost.ParamSet = Vector{}, Vector{}, 0
	}
	cost.add(&own)
	return cost
}

// isNil says that a function or an interface is nil wherever this function is called so.
func (f *function) isNil(v ssa.Value) bool {
	list, ok := f.a.resolve(f, v, 0)
	return ok && len(list) == 0
}

// deferEvents are the deferred calls, all of them: they run when the function ends.
func (f *function) deferEvents(skip func(*function) bool) []event {
	var out []event
	for _, b := range f.fn.Blocks {
		for _, in := range b.Instrs {
			d, ok := in.(*ssa.Defer)
			if !ok || f.doomed[b] {
				continue
			}
			cost := f.callCost(d, skip)
			times := uint64(1)
			for l := f.byBlock[b]; l != nil; l = l.parent {
				if cost.Peak.zero() {
					break
				}
				if !f.loopKnown(l) {
					f.cause("defer in a loop without a bound", "", d.Pos())
					break
				}
				times = satMul(times, l.runs(b))
			}
			for _, e := range f.leftBy(d, &cost) {
				e.size = e.size.times(times)
				e.sum = min(satMul(e.sum, times), endless)
				e.keep = nil
				out = append(out, e)
			}
		}
	}
	return out
}

// compute makes the cost from the costs of callees.
func (f *function) compute(thin bool, skip func(*function) bool) Cost {
	if len(f.fn.Blocks) == 0 {
		return Cost{}
	}
	f.chains = map[ssa.Value]bool{}
	c := coster{byBlock: f.byBlock, doomed: f.doomed, events: f.eventsOf(thin, skip)}
	c.known = f.loopKnown
	c.unknown = func(l *loop) { f.cause("loop without a bound", leaves(c.left(l)), f.loopPos(l)) }
	cost := c.cost(f.fn)
	cost.Sum = f.allocated(&c)
	return cost
}

// allocated adds up all that is allocated on the worst path.
func (f *function) allocated(c *coster) uint64 {
	known := true
	d := coster{byBlock: c.byBlock, doomed: c.doomed, events: map[*ssa.BasicBlock][]event{}}
	for b, list := range c.events {
		for _, e := range list {
			if e.sum == 0 {
				continue
			}
			known = known && e.sum < endless
			d.events[b] = append(d.events[b], event{size: Vector{total: e.sum}})
		}
	}
	d.known = func(l *loop) bool { return l.known }
	d.unknown = func(*loop) { known = false }
	if cost := d.cost(f.fn); known {
		return min(cost.Peak.Total(), endless)
	}
	return endless
}

// leaves says what of an iteration stays.
func leaves(e *event) string {
	if e == nil {
		return ""
	}
	by := "its own"
	if call, ok := e.by.(ssa.CallInstruction); ok {
		by = call.Common().Description()
		if fn := call.Common().StaticCallee(); fn != nil {
			by = fn.String()
		} else if call.Common().IsInvoke() {
			by = call.Common().Method.FullName()
		}
	}
	return fmt.Sprintf("each iteration leaves %d bytes by %s", e.size.Total(), by)
}

// inlinable says whether a function is worth a second cost for where it is inlined.
func (f *function) inlinable() bool {
	n := 0
	for _, b := range f.fn.Blocks {
		n += len(b.Instrs)
	}
	return n < 150
}

// calleesOf lists the callees of all calls, but of goroutines that are started.
func (f *function) calleesOf() []*function {
	var out []*function
	for _, b := range f.fn.Blocks {
		for _, in := range b.Instrs {
			call, ok := in.(ssa.CallInstruction)
			if !ok || f.doomed[b] {
				continue
			}
			if _, isGo := in.(*ssa.Go); isGo {
				continue
			}
			for _, g := range f.calls[call] {
				if !g.point && !slices.Contains(out, g) {
					out = append(out, g)
				}
			}
		}
	}
	return out
}
