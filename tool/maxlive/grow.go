package maxlive

import (
	"go/token"

	"go/types"
	"slices"

	"golang.org/x/tools/go/ssa"
)

// chain is a slice that a function begins with nothing, or with what it makes itself,
// and that it appends to: all values that hold it on its way.
type chain struct {
	appends []*ssa.Call
	values  map[ssa.Value]bool
	start   uint64 // elements that it begins with
	local   bool
	level   *loop // the innermost loop that makes it again with each iteration
}

// chainOf follows an append back to where its slice comes from, and forward.
func (f *function) chainOf(in *ssa.Call) *chain {
	c := &chain{values: map[ssa.Value]bool{}, local: true, level: f.byBlock[in.Block()]}
	todo := []ssa.Value{in}
	for len(todo) > 0 {
		v := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if c.values[v] {
			continue
		}
		c.values[v] = true
		todo = append(todo, c.next(f, v)...)
		switch v := v.(type) {
		case *ssa.Const:
		case *ssa.MakeSlice:
			n, ok := upper(v.Len, 0)
			c.local = c.local && ok && n >= 0
			c.start += uint64(max(n, 0))
			c.outside(f.byBlock[v.Block()])
		case *ssa.Phi:
			todo = append(todo, v.Edges...)
			if l := f.byBlock[v.Block()]; l != nil && l.header == v.Block() {
				c.outside(l.parent)
			} else {
				c.outside(l)
			}
		case *ssa.Call:
			to, _, ok := f.extends(v)
			if !ok {
				c.local = false
				continue
			}
			c.appends = append(c.appends, v)
			c.outside(f.byBlock[v.Block()])
			todo = append(todo, to)
		case *ssa.Slice:
			n, ok := lenUpper(v, 0)
			if _, fromArray := v.X.(*ssa.Alloc); fromArray && ok {
				c.start += uint64(n)
				c.outside(f.byBlock[v.Block()])
				continue
			}
			todo = append(todo, v.X) // shorter than what it is cut from
			c.local = c.local && (v.High == nil || ok && n == 0)
		default:
			c.local = false
		}
	}
	return c
}

// next are the values that hold the slice after v. A slice that is appended to in two
// places grows twice, and is not one chain.
func (c *chain) next(f *function, v ssa.Value) []ssa.Value {
	if _, isConst := v.(*ssa.Const); isConst || v.Referrers() == nil {
		return nil
	}
	var out []ssa.Value
	grown := 0
	for _, r := range *v.Referrers() {
		switch r := r.(type) {
		case *ssa.Phi:
			out = append(out, r)
		case *ssa.Call:
			if to, _, ok := f.extends(r); ok && to == v {
				out = append(out, r)
				grown++
			}
		}
	}
	c.local = c.local && grown <= 1
	return out
}

// outside moves the level out until l is within it.
func (c *chain) outside(l *loop) {
	for c.level != nil && !l.within(c.level) {
		c.level = c.level.parent
	}
}

// appended is an append: of a slice that the function made, all its growth is charged
// once, where the slice begins; of another, one step of growth.
func (f *function) appended(s *site, in *ssa.Call) bool {
	elem := in.Type().Underlying().(*types.Slice).Elem()
	size, pointers := uint64(sizes.Sizeof(elem)), hasPointers(elem)
	if size == 0 {
		return false
	}
	if f.shrinks(in) || f.same(in.Pos()) {
		return false
	}
	c := f.chainOf(in)
	if !c.local {
		n := f.count(s, "append to a slice of unknown length", in.Pos(), 0, false)
		s.size = f.a.classes.step(size, n, pointers)
		return true
	}
	if f.chains[c.key()] {
		return false
	}
	n, one, ok := f.chainLength(c)
	if !ok {
		one = false
	}
	n = f.count(s, "append to a slice of unknown length", c.noted(f.a, in).Pos(), int64(n), ok)
	f.chains[c.key()] = true
	s.chain = c
	s.size = f.a.classes.growthAny(size, n, pointers)
	if one {
		s.size = f.a.classes.growth(size, n, pointers)
	}
	return s.need != "" || n > 0
}

// same says that an annotation says that what is on the line does not get longer.
func (f *function) same(pos token.Pos) bool {
	_, ok := f.a.notes.bound("same", f.a.position(pos))
	return ok
}

// shrinks: a call that only takes elements out, or append(s[:i], s[i+n:]...).
func (f *function) shrinks(in *ssa.Call) bool {
	if _, more, ok := f.extends(in); ok && more == 0 {
		return true
	}
	if _, isBuiltin := in.Call.Value.(*ssa.Builtin); !isBuiltin {
		return false
	}
	x, ok1 := in.Call.Args[0].(*ssa.Slice)
	y, ok2 := in.Call.Args[1].(*ssa.Slice)
	if !ok1 || !ok2 || !sameValue(x.X, y.X) || x.Low != nil || x.High == nil || y.Low == nil || y.High != nil {
		return false
	}
	if b, ok := y.Low.(*ssa.BinOp); ok && b.Op == token.ADD && b.X == x.High {
		n, ok := constOf(b.Y)
		return ok && n >= 0
	}
	return false
}

// sameValue says whether two operands of one statement are the same.
func sameValue(x, y ssa.Value) bool {
	if x == y {
		return true
	}
	l, ok1 := x.(*ssa.UnOp)
	m, ok2 := y.(*ssa.UnOp)
	return ok1 && ok2 && l.Op == token.MUL && m.Op == token.MUL && l.X == m.X && l.Block() == m.Block()
}

// noted is the append of the chain that has an annotation, if one has.
func (c *chain) noted(a *Analysis, in *ssa.Call) *ssa.Call {
	for _, call := range c.appends {
		if a.notes.find("len", a.position(call.Pos())) != nil {
			return call
		}
	}
	return in
}

// key is the same for all appends of a chain.
func (c *chain) key() ssa.Value {
	var first *ssa.Call
	for _, a := range c.appends {
		if first == nil || a.Pos() < first.Pos() {
			first = a
		}
	}
	return first
}

// chainLength is how long the slice can get; one says that it begins with nothing and
// gets longer by one element at a time.
func (f *function) chainLength(c *chain) (n uint64, one, ok bool) {
	n, one = c.start, c.start == 0
	for _, a := range c.appends {
		_, more, ok := f.extends(a)
		if !ok || more < 0 {
			return 0, false, false
		}
		one = one && more == 1
		times := uint64(1)
		for l := f.byBlock[a.Block()]; l != c.level; l = l.parent {
			if l == nil || !f.loopKnown(l) {
				return 0, false, false
			}
			times = satMul(times, l.runs(a.Block()))
		}
		n = satAdd(n, satMul(uint64(more), times))
	}
	return n, one, n <= maxBytes
}

// runs is how often a block of the loop can run: the header once more than the others
// where it finds that the loop is done.
func (l *loop) runs(b *ssa.BasicBlock) uint64 {
	if l.check && b != l.header {
		return l.entries - 1
	}
	return l.entries
}

const (
	groupSlots = 8
	tableSlots = 1024
	mapLoad    = 7 // of groupSlots
)

// makeMap is a map's header with the room of its hint, and of what the function itself
// puts into it where nobody else does.
func (f *function) makeMap(s *site, in *ssa.MakeMap) {
	m := in.Type().Underlying().(*types.Map)
	file, _, _ := f.span(in)
	pos := f.a.position(in.Pos())
	onHeap := file == "" || f.a.esc.onHeap(file, pos.Line, pos.Line, f.columns(in.Pos()), func(w string) bool { return isMake(w) || isLiteral(w) })
	hint := uint64(0)
	if in.Reserve != nil {
		top, ok := upper(in.Reserve, 0)
		hint = f.count(s, "make of a map of unknown length", in.Pos(), top, ok)
	}
	n, own := f.ownUpdates(in)
	if own {
		hint = max(hint, n)
	}
	if onHeap {
		s.size = f.a.classes.object(f.a.mapHeader, true, 1)
	}
	if hint <= groupSlots && !onHeap {
		return // one group, on the stack as well
	}
	v, ok := f.a.tables(m, hint, own && n > 0)
	if !ok {
		s.need = "map of more than 896 elements"
	}
	s.size.add(&v)
}

// ownUpdates counts the elements that a function puts into a map that it makes, if that
// is all that is put into it up to the function's last update.
func (f *function) ownUpdates(in *ssa.MakeMap) (n uint64, own bool) {
	level := f.byBlock[in.Block()]
	var updates []*ssa.MapUpdate
	var shown []ssa.Instruction // where others may get hold of it
	for _, r := range *in.Referrers() {
		switch r := r.(type) {
		case *ssa.MapUpdate:
			if r.Map != in {
				shown = append(shown, r)
				continue
			}
			updates = append(updates, r)
		case *ssa.Lookup, *ssa.Range, *ssa.DebugRef, *ssa.Return:
		case *ssa.Call:
			if b, ok := r.Call.Value.(*ssa.Builtin); !ok || b.Name() != "len" {
				shown = append(shown, r)
			}
		default:
			shown = append(shown, r)
		}
	}
	for _, u := range updates {
		times := uint64(1)
		for l := f.byBlock[u.Block()]; l != level; l = l.parent {
			if l == nil || !f.loopKnown(l) {
				return 0, false
			}
			times = satMul(times, l.runs(u.Block()))
		}
		n = satAdd(n, times)
		for _, s := range shown {
			if follows(u, s) {
				return 0, false
			}
		}
	}
	return n, true
}

// follows says whether x can run after y.
func follows(x, y ssa.Instruction) bool {
	if x.Block() == y.Block() && slices.Index(x.Block().Instrs, x) > slices.Index(y.Block().Instrs, y) {
		return true
	}
	seen := map[*ssa.BasicBlock]bool{}
	todo := slices.Clone(y.Block().Succs)
	for len(todo) > 0 {
		b := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if seen[b] {
			continue
		}
		seen[b] = true
		if b == x.Block() {
			return true
		}
		todo = append(todo, b.Succs...)
	}
	return false
}

// mapUpdate is a map that may grow.
func (f *function) mapUpdate(s *site, in *ssa.MapUpdate) bool {
	if m, ok := in.Map.(*ssa.MakeMap); ok {
		if _, own := f.ownUpdates(m); own {
			return false // charged where it is made
		}
	}
	if f.same(in.Pos()) {
		return false
	}
	n := f.count(s, "map of unknown length grows", in.Pos(), 0, false)
	if s.need != "" {
		return true
	}
	v, ok := f.a.tables(in.Map.Type().Underlying().(*types.Map), 2*n, false) // deleted slots count
	if !ok {
		s.need = "map of more than 896 elements"
	}
	s.size = v
	return true
}

// tables is what a map of n elements has beside its header; all says: with the smaller
// tables that it had on its way there.
func (a *Analysis) tables(m *types.Map, n uint64, all bool) (Vector, bool) {
	slot := alignTo(uint64(sizes.Sizeof(m.Key())), uint64(sizes.Alignof(m.Elem())))
	if sizes.Sizeof(m.Key()) > 128 {
		slot = 8
	}
	elem := uint64(sizes.Sizeof(m.Elem()))
	if elem > 128 {
		elem = 8
	}
	align := uint64(max(sizes.Alignof(m.Key()), sizes.Alignof(m.Elem())))
	slot = alignTo(slot+elem, align)
	group := alignTo(groupSlots+groupSlots*slot, 8)
	pointers := hasPointers(m.Key()) || hasPointers(m.Elem()) || slot == 8 && elem == 8
	v := Vector{}
	if sizes.Sizeof(m.Key()) > 128 { // by reference
		k := a.classes.object(uint64(sizes.Sizeof(m.Key())), true, n)
		v.add(&k)
	}
	if sizes.Sizeof(m.Elem()) > 128 {
		e := a.classes.object(uint64(sizes.Sizeof(m.Elem())), true, n)
		v.add(&e)
	}
	if n == 0 {
		return v, true
	}
	one := a.classes.object(group, pointers, 1)
	if n <= groupSlots {
		v.add(&one)
		return v, true
	}
	if all {
		v.add(&one)
	}
	if n > tableSlots/groupSlots*mapLoad {
		return v, false
	}
	slots := uint64(2 * groupSlots)
	for ; slots*mapLoad/groupSlots < n; slots *= 2 {
		if all {
			v.addTable(a, slots, group, pointers)
		}
	}
	v.addTable(a, slots, group, pointers)
	dir := a.classes.object(8, true, 1)
	v.add(&dir)
	return v, true
}

func (v *Vector) addTable(a *Analysis, slots, group uint64, pointers bool) {
	t := a.classes.object(a.mapTable, true, 1)
	v.add(&t)
	g := a.classes.object(slots/groupSlots*group, pointers, 1)
	v.add(&g)
}

func alignTo(n, align uint64) uint64 { return (n + align - 1) / max(align, 1) * max(align, 1) }
