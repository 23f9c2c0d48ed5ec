package maxlive

import (
	"go/types"

	"golang.org/x/tools/go/ssa"
	"golang.org/x/tools/go/types/typeutil"
)

// targets finds which functions and which types a value can hold, and with that who
// calls whom. It begins at main, at what initialises packages and at what assembly or the
// runtime calls, and looks only at functions that it finds to be called.
//
// A cell stands for what a variable, a field of a struct type, or the elements of one
// slice, map, channel or array hold. Functions and interfaces flow from cell to cell in
// the direction of assignments. What pointers, slices, maps and channels refer to is one
// cell for all that may refer to the same. Fields are told apart by the type of their
// struct, but not by the struct; what is in interfaces and goes through unsafe pointers, by
// its type.
type targets struct {
	prog      *ssa.Program
	opaque    func(*ssa.Function) bool // not looked into
	stands    func(*ssa.Function) *ssa.Function
	special   func(*targets, ssa.CallInstruction, *ssa.Function) bool // calls that are known otherwise
	parent    []cell
	cells     []content
	values    map[any]cell
	types     typeutil.Map // *int32, by identity
	typeList  []types.Type
	funcs     map[*ssa.Function]int32
	items     []item
	reachable map[*ssa.Function]bool
	todo      []*ssa.Function
	dirty     []cell
	calls     map[ssa.CallInstruction]map[*ssa.Function]bool
	methods   map[methodKey]*ssa.Function
	carry     map[types.Type]bool
	fits      map[fitKey]bool
}

type cell int32

// item is a function or, where fn is nil, a type.
type item struct {
	fn  *ssa.Function
	typ int32
}

// unknownItem is the item of what comes from functions that are not looked into.
const unknownItem = 0

// content is one cell: what it holds, where that goes, and what it refers to.
type content struct {
	has   map[int32]bool
	fresh []int32
	to    []flowEdge
	elem  cell // of a pointer, slice, channel, map
	key   cell // of a map
	calls []watcher
	pairs map[flowEdge]bool
}

// flowEdge takes what is held on, where only is set only types that have its methods.
type flowEdge struct {
	to   cell
	only *types.Interface
}

type methodKey struct {
	typ int32
	fn  *types.Func
}

type fitKey struct {
	typ  int32
	only *types.Interface
}

// Keys of cells beside ssa.Value.
type (
	fieldKey  struct{ strct, field int32 } // field -1: not of a struct but in an interface, or out of sight
	resultKey struct {
		fn *ssa.Function
		i  int
	}
	tupleKey struct {
		v ssa.Value
		i int
	}
	panicKey struct{}
)

func newTargets(prog *ssa.Program) *targets {
	return &targets{prog: prog, parent: make([]cell, 1), cells: make([]content, 1), values: map[any]cell{}, funcs: map[*ssa.Function]int32{},
		reachable: map[*ssa.Function]bool{}, calls: map[ssa.CallInstruction]map[*ssa.Function]bool{}, methods: map[methodKey]*ssa.Function{},
		carry: map[types.Type]bool{}, fits: map[fitKey]bool{}, items: []item{{typ: -1}}}
}

func (t *targets) fresh() cell {
	c := cell(len(t.cells))
	t.cells = append(t.cells, content{})
	t.parent = append(t.parent, c)
	return c
}

func (t *targets) find(c cell) cell {
	for t.parent[c] != c {
		t.parent[c] = t.parent[t.parent[c]]
		c = t.parent[c]
	}
	return c
}

// at is the cell of a key.
func (t *targets) at(k any) cell {
	if c, ok := t.values[k]; ok {
		return t.find(c)
	}
	c := t.fresh()
	t.values[k] = c
	return c
}

// elem is what a reference refers to.
func (t *targets) elem(c cell) cell {
	c = t.find(c)
	if t.cells[c].elem == 0 {
		n := t.fresh()
		t.cells[c].elem = n
	}
	return t.find(t.cells[c].elem)
}

func (t *targets) keyOf(c cell) cell {
	c = t.find(c)
	if t.cells[c].key == 0 {
		n := t.fresh()
		t.cells[c].key = n
	}
	return t.find(t.cells[c].key)
}

// unify makes two cells one.
func (t *targets) unify(a, b cell) {
	a, b = t.find(a), t.find(b)
	if a == b {
		return
	}
	if len(t.cells[a].has) < len(t.cells[b].has) {
		a, b = b, a
	}
	old := t.cells[b]
	t.parent[b] = a
	t.cells[b] = content{}
	// What a has goes where b's did, and the other way round.
	for _, e := range old.to {
		t.edge(a, e)
	}
	for _, w := range old.calls {
		t.watchBy(a, w)
	}
	for i := range old.has {
		t.put(a, i)
	}
	a = t.find(a)
	switch {
	case old.elem == 0:
	case t.cells[a].elem == 0:
		t.cells[a].elem = old.elem
	default:
		t.unify(t.cells[a].elem, old.elem)
	}
	a = t.find(a)
	switch {
	case old.key == 0:
	case t.cells[a].key == 0:
		t.cells[a].key = old.key
	default:
		t.unify(t.cells[a].key, old.key)
	}
}

// put adds an item to a cell.
func (t *targets) put(c cell, i int32) {
	c = t.find(c)
	x := &t.cells[c]
	if x.has[i] {
		return
	}
	if x.has == nil {
		x.has = map[int32]bool{}
	}
	x.has[i] = true
	if len(x.fresh) == 0 {
		t.dirty = append(t.dirty, c)
	}
	x.fresh = append(x.fresh, i)
}

// edge takes what a cell holds to another.
func (t *targets) edge(from cell, e flowEdge) {
	from = t.find(from)
	e.to = t.find(e.to)
	x := &t.cells[from]
	if from == e.to || x.pairs[e] {
		return
	}
	if x.pairs == nil {
		x.pairs = map[flowEdge]bool{}
	}
	x.pairs[e] = true
	x.to = append(x.to, e)
	for i := range x.has {
		t.pass(i, e)
	}
}

func (t *targets) pass(i int32, e flowEdge) {
	if e.only != nil && !t.fit(i, e.only) {
		return
	}
	t.put(e.to, i)
}

// fit says whether a type has the methods of an interface.
func (t *targets) fit(i int32, only *types.Interface) bool {
	it := t.items[i]
	if it.fn != nil || it.typ < 0 {
		return it.fn == nil
	}
	k := fitKey{it.typ, only}
	ok, known := t.fits[k]
	if !known {
		ok = types.Implements(t.typeList[it.typ], only)
		t.fits[k] = ok
	}
	return ok
}

// watch makes the calls of a call instruction follow what a cell holds.
func (t *targets) watch(c cell, call ssa.CallInstruction) { t.watchBy(c, watcher{in: call}) }

func (t *targets) watchBy(c cell, w watcher) {
	c = t.find(c)
	t.cells[c].calls = append(t.cells[c].calls, w)
	for i := range t.cells[c].has {
		t.dispatch(w, i)
	}
}

// flows is an assignment of a value of type typ.
func (t *targets) flows(typ types.Type, from, to cell) {
	if from == 0 || to == 0 || !t.carries(typ) {
		return
	}
	switch u := collapse(typ).(type) {
	case *types.Signature:
		t.edge(from, flowEdge{to: to})
	case *types.Interface:
		t.edge(from, flowEdge{to: to})
	case *types.Map:
		t.unify(t.elem(from), t.elem(to))
		if t.carries(u.Key()) {
			t.unify(t.keyOf(from), t.keyOf(to))
		}
	case *types.Pointer, *types.Slice, *types.Chan:
		t.unify(t.elem(from), t.elem(to))
	}
}

// collapse is the type of an array's elements, for arrays of any depth.
func collapse(typ types.Type) types.Type {
	for {
		a, ok := typ.Underlying().(*types.Array)
		if !ok {
			return typ.Underlying()
		}
		typ = a.Elem()
	}
}

// carries says whether values of a type hold or refer to functions or interfaces other
// than by the fields of structs.
func (t *targets) carries(typ types.Type) bool {
	is, known := t.carry[typ]
	if known {
		return is
	}
	t.carry[typ] = false // of a type that refers to itself
	switch u := collapse(typ).(type) {
	case *types.Signature, *types.Interface:
		is = true
	case *types.Pointer:
		is = t.carries(u.Elem())
	case *types.Slice:
		is = t.carries(u.Elem())
	case *types.Chan:
		is = t.carries(u.Elem())
	case *types.Map:
		is = t.carries(u.Key()) || t.carries(u.Elem())
	}
	t.carry[typ] = is
	return is
}

// typeID is a number for a type: identical types have the same.
func (t *targets) typeID(typ types.Type) int32 {
	if v := t.types.At(typ); v != nil {
		return v.(int32)
	}
	id := int32(len(t.typeList))
	t.typeList = append(t.typeList, typ)
	t.types.Set(typ, id)
	return id
}

// field is the cell of a field of a struct type.
func (t *targets) field(strct types.Type, i int) cell {
	return t.at(fieldKey{t.typeID(strct), int32(i)})
}

// inside is the cell of all values of a type that are in interfaces or went through an
// unsafe pointer.
func (t *targets) inside(typ types.Type) cell { return t.at(fieldKey{t.typeID(typ), -1}) }

func (t *targets) funcItem(fn *ssa.Function) int32 {
	if i, ok := t.funcs[fn]; ok {
		return i
	}
	i := int32(len(t.items))
	t.items = append(t.items, item{fn: fn, typ: -1})
	t.funcs[fn] = i
	return i
}

type typeItem struct{ id int32 }

func (t *targets) typeItem(typ types.Type) int32 {
	id := t.typeID(typ)
	k := typeItem{id}
	if c, ok := t.values[k]; ok {
		return int32(c)
	}
	i := int32(len(t.items))
	t.items = append(t.items, item{typ: id})
	t.values[k] = cell(i)
	return i
}

// held lists what a value can hold; known is false for values that are not followed.
func (t *targets) held(k any) []item {
	c, ok := t.values[k]
	if !ok {
		return nil
	}
	var out []item
	for i := range t.cells[t.find(c)].has {
		out = append(out, t.items[i])
	}
	return out
}

// solve follows all flows until nothing is new.
func (t *targets) solve() {
	for len(t.dirty) > 0 || len(t.todo) > 0 {
		for len(t.todo) > 0 {
			fn := t.todo[len(t.todo)-1]
			t.todo = t.todo[:len(t.todo)-1]
			t.function(fn)
		}
		for len(t.dirty) > 0 {
			c := t.find(t.dirty[len(t.dirty)-1])
			t.dirty = t.dirty[:len(t.dirty)-1]
			fresh := t.cells[c].fresh
			t.cells[c].fresh = nil
			for _, i := range fresh {
				for _, e := range t.cells[c].to {
					t.pass(i, e)
				}
				for n := 0; n < len(t.cells[c].calls); n++ {
					t.dispatch(t.cells[c].calls[n], i)
				}
			}
		}
	}
}

// reach has a function looked at.
func (t *targets) reach(fn *ssa.Function) {
	if fn == nil || t.reachable[fn] {
		return
	}
	t.reachable[fn] = true
	if !t.opaque(fn) {
		t.todo = append(t.todo, fn)
	}
}
