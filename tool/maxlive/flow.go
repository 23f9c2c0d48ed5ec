package maxlive

import (
	"go/token"
	"go/types"
	"strings"

	"golang.org/x/tools/go/ssa"
)

// Flow says, for one function, where objects can be reachable from.
//
// Each value v has two nodes. P(v) is the pointer itself: an edge P(v) → P(w) says that w
// may hold it. C(v) is whatever can be reached from v: an edge P(v) → C(w) says that v
// may be reached from w, and two values that may share contents share one C. An object
// is dead after a function if no path leads from it to the heap, to what a parameter
// refers to, or to a result.
type flow struct {
	fn     *ssa.Function
	ids    map[ssa.Value]int32
	values []ssa.Value // by id; nil for the special ones
	out    [][]node    // edges of P
	parent []int32     // of C: union-find
	loads  [][]int32   // of a C's root: P nodes that may hold what is in it
	within [][]int32   // of a C's root: its members
}

// node is P(id) or, where content, C(id).
type node struct {
	id      int32
	content bool
}

// Special values of every function.
const (
	heapID    = iota // global variables, other goroutines, what is not known
	resultID         // all results together
	closureID        // the closure that the function is
	deferID          // calls that wait for the function's end
	specials
)

// Bits of a summary: up to maxParams parameters, then these.
const (
	maxParams  = 60
	closureBit = 1 << 60
	resultBit  = 1 << 61
	heapBit    = 1 << 62
)

// flowSummary is what callers know of a function. Of each parameter: what contents may
// come to hold the argument, what may hold something from its contents, and with what
// its contents may be shared.
type flowSummary struct {
	direct  []uint64 // P(param) → C(bit); resultBit: P(result) as well
	loaded  []uint64 // C(param) → P(result), or the heap
	shared  []uint64 // C(param) = C(bit)
	closure struct{ loaded, shared uint64 }
	result  uint64 // C(result) = C(bit)
}

func newFlow(fn *ssa.Function) *flow {
	f := &flow{fn: fn, ids: map[ssa.Value]int32{}}
	for range specials {
		f.add(nil)
	}
	f.loads[heapID] = append(f.loads[heapID], heapID)
	return f
}

func (f *flow) add(v ssa.Value) int32 {
	id := int32(len(f.values))
	f.values = append(f.values, v)
	f.out = append(f.out, nil)
	f.parent = append(f.parent, id)
	f.loads = append(f.loads, nil)
	f.within = append(f.within, []int32{id})
	return id
}

// id returns the node of a value.
func (f *flow) id(v ssa.Value) int32 {
	switch v := v.(type) {
	case *ssa.Global, *ssa.Function, *ssa.Builtin:
		return heapID
	case *ssa.FreeVar:
		if id, ok := f.ids[v]; ok {
			return id
		}
		id := f.add(v)
		f.ids[v] = id
		f.load(id, closureID)
		return id
	}
	id, ok := f.ids[v]
	if !ok {
		id = f.add(v)
		f.ids[v] = id
	}
	return id
}

func (f *flow) find(c int32) int32 {
	for f.parent[c] != c {
		f.parent[c] = f.parent[f.parent[c]]
		c = f.parent[c]
	}
	return c
}

// union makes the contents of a and b one; it says whether they were two.
func (f *flow) union(a, b int32) bool {
	a, b = f.find(a), f.find(b)
	if a == b {
		return false
	}
	if len(f.within[a]) < len(f.within[b]) {
		a, b = b, a
	}
	f.parent[b] = a
	f.loads[a] = append(f.loads[a], f.loads[b]...)
	f.within[a] = append(f.within[a], f.within[b]...)
	f.loads[b], f.within[b] = nil, nil
	return true
}

// derive: w may be v, or point into it.
func (f *flow) derive(w, v int32) {
	if v != heapID {
		f.out[v] = append(f.out[v], node{id: w})
	}
	f.union(v, w)
}

// load: w may be something that v refers to.
func (f *flow) load(w, v int32) {
	root := f.find(v)
	f.loads[root] = append(f.loads[root], w)
	f.union(w, v)
}

// store: v goes where a refers to.
func (f *flow) store(a, v int32) {
	if v != heapID {
		f.out[v] = append(f.out[v], node{a, true})
	}
	f.union(a, v)
}

// hasPointers says whether values of a type keep anything alive.
func hasPointers(t types.Type) bool {
	switch t := t.Underlying().(type) {
	case *types.Basic:
		return t.Kind() == types.String || t.Kind() == types.UnsafePointer || t.Kind() == types.UntypedString || t.Kind() == types.UntypedNil
	case *types.Array:
		return t.Len() > 0 && hasPointers(t.Elem())
	case *types.Struct:
		for i := range t.NumFields() {
			if hasPointers(t.Field(i).Type()) {
				return true
			}
		}
		return false
	case *types.Tuple:
		for i := range t.Len() {
			if hasPointers(t.At(i).Type()) {
				return true
			}
		}
		return false
	}
	return true
}

func (f *flow) carries(v ssa.Value) bool {
	_, isConst := v.(*ssa.Const)
	return !isConst && v.Type() != nil && hasPointers(v.Type())
}

// build reads the function's instructions.
func (f *flow) build(callees func(ssa.CallInstruction) []*function) {
	for _, b := range f.fn.Blocks {
		for _, in := range b.Instrs {
			if call, ok := in.(ssa.CallInstruction); ok {
				f.call(call, callees(call))
				continue
			}
			f.instr(in)
		}
	}
}

func (f *flow) instr(in ssa.Instruction) {
	switch in := in.(type) {
	case *ssa.Store:
		if f.carries(in.Val) {
			f.store(f.id(in.Addr), f.id(in.Val))
		}
	case *ssa.MapUpdate:
		f.storeAll(in.Map, in.Key, in.Value)
	case *ssa.Send:
		f.storeAll(in.Chan, in.X)
	case *ssa.Return:
		for _, r := range in.Results {
			if f.carries(r) {
				f.derive(resultID, f.id(r))
			}
		}
	case *ssa.Panic:
		if f.carries(in.X) {
			f.store(heapID, f.id(in.X))
		}
	case *ssa.MakeClosure:
		f.storeAll(in, in.Bindings...)
	case *ssa.Select:
		for _, s := range in.States {
			if s.Dir == types.SendOnly {
				f.storeAll(s.Chan, s.Send)
			} else {
				f.load(f.id(in), f.id(s.Chan))
			}
		}
	case ssa.Value:
		f.value(in, in.(ssa.Instruction))
	}
}

func (f *flow) storeAll(into ssa.Value, vs ...ssa.Value) {
	for _, v := range vs {
		if f.carries(v) {
			f.store(f.id(into), f.id(v))
		}
	}
}

// leak: each goes to the heap.
func (f *flow) leak(vs ...ssa.Value) {
	for _, v := range vs {
		if f.carries(v) {
			f.store(heapID, f.id(v))
		}
	}
}

// value is an instruction that makes a value of its operands: it may be each of them,
// or something that they refer to.
func (f *flow) value(v ssa.Value, in ssa.Instruction) {
	switch v := v.(type) {
	case *ssa.UnOp:
		if v.Op != token.MUL && v.Op != token.ARROW {
			return
		}
		if f.carries(v) {
			f.load(f.id(v), f.id(v.X))
		}
		return
	case *ssa.Lookup:
		if f.carries(v) {
			f.load(f.id(v), f.id(v.X))
		}
		return
	case *ssa.Range:
		f.derive(f.id(v), f.id(v.X))
		return
	case *ssa.Next:
		if !v.IsString {
			f.load(f.id(v), f.id(v.Iter))
		}
		return
	case *ssa.BinOp:
		return // of strings: a copy
	case *ssa.Convert:
		switch {
		case copies(v):
			return
		case isUintptr(v.Type()) && f.carries(v.X):
			if !strings.EqualFold(f.fn.Name(), "noescape") {
				f.leak(v.X) // it may come back as a pointer out of sight
			}
			return
		}
	}
	if !f.carries(v) {
		return
	}
	for _, op := range in.Operands(nil) {
		if *op != nil && f.carries(*op) {
			f.derive(f.id(v), f.id(*op))
		}
	}
}

// copies says whether a conversion is one between strings and slices.
func copies(v *ssa.Convert) bool {
	from, to := v.X.Type().Underlying(), v.Type().Underlying()
	_, fromSlice := from.(*types.Slice)
	_, toSlice := to.(*types.Slice)
	return isString(from) != isString(to) && (isString(from) || isString(to)) && (fromSlice || toSlice || isString(to))
}

func isString(t types.Type) bool {
	b, ok := t.Underlying().(*types.Basic)
	return ok && b.Info()&types.IsString != 0
}

func isUintptr(t types.Type) bool {
	b, ok := t.Underlying().(*types.Basic)
	return ok && b.Kind() == types.Uintptr
}

// arguments are what a call passes, a method's receiver first.
func arguments(c *ssa.CallCommon) []ssa.Value {
	if c.IsInvoke() {
		return append([]ssa.Value{c.Value}, c.Args...)
	}
	return c.Args
}

func (f *flow) call(call ssa.CallInstruction, callees []*function) {
	c := call.Common()
	result := int32(-1)
	if v := call.Value(); v != nil && f.carries(v) {
		result = f.id(v)
	}
	args := arguments(c)
	if b, ok := c.Value.(*ssa.Builtin); ok {
		f.builtin(b, args, result)
		return
	}
	_, isGo := call.(*ssa.Go)
	if isGo || len(callees) == 0 {
		f.leak(args...)
		if !c.IsInvoke() {
			f.leak(c.Value)
		}
		if result >= 0 {
			f.derive(result, heapID)
		}
		return
	}
	if !c.IsInvoke() && c.StaticCallee() == nil || isClosure(c.Value) {
		if result >= 0 { // a closure's variables
			f.load(result, f.id(c.Value))
		}
	}
	if len(args) > maxParams {
		f.leak(args[maxParams:]...)
	}
	if _, isDefer := call.(*ssa.Defer); isDefer {
		for _, v := range append(args[:len(args):len(args)], c.Value) {
			if f.carries(v) && f.id(v) != heapID {
				f.out[f.id(v)] = append(f.out[f.id(v)], node{id: deferID})
			}
		}
	}
	for _, callee := range callees {
		f.apply(callee.seen(), c, args, result)
	}
}

func isClosure(v ssa.Value) bool { _, ok := v.(*ssa.MakeClosure); return ok }

func (f *flow) builtin(b *ssa.Builtin, args []ssa.Value, result int32) {
	switch b.Name() {
	case "append":
		for i, a := range args {
			if !f.carries(a) {
				continue
			}
			if i == 0 {
				f.derive(result, f.id(a))
			} else {
				f.union(result, f.id(a)) // what is in the one is in the other
			}
		}
	case "copy":
		if f.carries(args[0]) && f.carries(args[1]) {
			f.union(f.id(args[0]), f.id(args[1]))
		}
	case "ssa:wrapnilchk", "Slice", "SliceData", "String", "StringData", "Add", "min", "max":
		for _, a := range args {
			if result >= 0 && f.carries(a) {
				f.derive(result, f.id(a))
			}
		}
	case "recover":
		f.derive(result, heapID)
	}
}

// apply brings a callee's summary into the caller.
func (f *flow) apply(s *flowSummary, c *ssa.CallCommon, args []ssa.Value, result int32) {
	if s == nil {
		return // of the same circle, not known yet: a later round has it
	}
	content := func(bit uint64) (int32, bool) {
		switch {
		case bit == heapBit:
			return heapID, true
		case bit == resultBit:
			return result, result >= 0
		case bit == closureBit:
			return f.id(c.Value), !c.IsInvoke()
		}
		i := trailing(bit)
		return f.argID(args, i)
	}
	each := func(set uint64, do func(int32)) {
		for set != 0 {
			bit := set & -set
			set &^= bit
			if id, ok := content(bit); ok {
				do(id)
			}
		}
	}
	for i := range s.direct {
		id, ok := f.argID(args, i)
		if !ok {
			continue
		}
		each(s.direct[i], func(to int32) { f.out[id] = append(f.out[id], node{to, true}) })
		if s.direct[i]&resultBit != 0 && result >= 0 {
			f.out[id] = append(f.out[id], node{id: result})
		}
		if s.loaded[i]&resultBit != 0 && result >= 0 {
			f.load(result, id)
		}
		each(s.shared[i], func(to int32) { f.union(id, to) })
	}
	if !c.IsInvoke() && f.carries(c.Value) {
		id := f.id(c.Value)
		each(s.closure.shared, func(to int32) { f.union(id, to) })
	}
	if result >= 0 {
		each(s.result, func(to int32) { f.union(result, to) })
		if s.result&heapBit != 0 {
			f.load(result, heapID)
		}
	}
}

func (f *flow) argID(args []ssa.Value, i int) (int32, bool) {
	if i >= len(args) || !f.carries(args[i]) {
		return 0, false
	}
	id := f.id(args[i])
	return id, id != heapID
}

func trailing(bit uint64) int {
	n := 0
	for bit > 1 {
		bit >>= 1
		n++
	}
	return n
}
