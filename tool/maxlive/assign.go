package maxlive

import (
	"go/token"
	"go/types"

	"golang.org/x/tools/go/ssa"
)

// value is the cell of an operand, or 0 if it holds nothing.
func (t *targets) value(v ssa.Value) cell {
	switch v := v.(type) {
	case nil, *ssa.Const, *ssa.Builtin:
		return 0
	case *ssa.Function:
		c := t.at(v)
		t.put(c, t.funcItem(v))
		return c
	}
	if !t.carries(v.Type()) {
		return 0
	}
	return t.at(v)
}

// load is what a pointer refers to, or 0 if that holds nothing.
func (t *targets) load(addr ssa.Value) cell {
	if c := t.value(addr); c != 0 {
		return t.elem(c)
	}
	return 0
}

// function reads a function's instructions.
func (t *targets) function(fn *ssa.Function) {
	for _, b := range fn.Blocks {
		for _, in := range b.Instrs {
			switch in := in.(type) {
			case ssa.CallInstruction:
				t.call(in)
			case *ssa.Store:
				t.flows(in.Val.Type(), t.value(in.Val), t.load(in.Addr))
			case *ssa.MapUpdate:
				t.update(in)
			case *ssa.Send:
				t.flows(in.X.Type(), t.value(in.X), t.load(in.Chan))
			case *ssa.Return:
				for i, r := range in.Results {
					t.flows(r.Type(), t.value(r), t.at(resultKey{fn, i}))
				}
			case *ssa.Panic:
				t.flows(in.X.Type(), t.value(in.X), t.at(panicKey{}))
			case ssa.Value:
				t.assign(in)
			}
		}
	}
}

func (t *targets) update(in *ssa.MapUpdate) {
	m := t.value(in.Map)
	if m == 0 {
		return
	}
	t.flows(in.Value.Type(), t.value(in.Value), t.elem(m))
	t.flows(in.Key.Type(), t.value(in.Key), t.keyOf(m))
}

// assign is an instruction that makes a value.
func (t *targets) assign(v ssa.Value) {
	switch v := v.(type) {
	case *ssa.MakeClosure:
		fn := v.Fn.(*ssa.Function)
		t.put(t.at(v), t.funcItem(fn))
		for i, b := range v.Bindings {
			t.flows(b.Type(), t.value(b), t.value(fn.FreeVars[i]))
		}
		return
	case *ssa.MakeInterface:
		t.put(t.at(v), t.typeItem(v.X.Type()))
		t.flows(v.X.Type(), t.value(v.X), t.inside(v.X.Type()))
		return
	case *ssa.TypeAssert:
		t.assert(v)
		return
	case *ssa.Select:
		t.selects(v)
		return
	case *ssa.Next:
		t.next(v)
		return
	case *ssa.Convert:
		t.convert(v)
		return
	case *ssa.ChangeType:
		t.convertStruct(v.X.Type(), v.Type())
	}
	c := t.value(v)
	if c == 0 {
		return
	}
	switch v := v.(type) {
	case *ssa.Phi:
		for _, e := range v.Edges {
			t.flows(v.Type(), t.value(e), c)
		}
	case *ssa.ChangeType:
		t.flows(v.Type(), t.value(v.X), c)
	case *ssa.ChangeInterface:
		t.flows(v.Type(), t.value(v.X), c)
	case *ssa.Slice:
		if _, ok := v.X.Type().Underlying().(*types.Basic); !ok {
			t.unify(t.elem(c), t.load(v.X))
		}
	case *ssa.SliceToArrayPointer:
		t.unify(t.elem(c), t.load(v.X))
	case *ssa.FieldAddr:
		if t.poolNew(v) || t.apartField(v) {
			break
		}
		t.unify(t.elem(c), t.field(v.X.Type().Underlying().(*types.Pointer).Elem(), v.Field))
	case *ssa.Field:
		t.flows(v.Type(), t.field(v.X.Type(), v.Field), c)
	case *ssa.IndexAddr:
		t.unify(t.elem(c), t.load(v.X))
	case *ssa.Index:
		t.flows(v.Type(), t.value(v.X), c)
	case *ssa.Lookup:
		if !v.CommaOk {
			t.flows(v.Type(), t.load(v.X), c)
		}
	case *ssa.UnOp:
		if v.Op == token.MUL || v.Op == token.ARROW && !v.CommaOk {
			t.flows(v.Type(), t.load(v.X), c)
		}
	case *ssa.Extract:
		t.extract(v, c)
	}
}

// extract is one of several results.
func (t *targets) extract(v *ssa.Extract, c cell) {
	switch x := v.Tuple.(type) {
	case *ssa.Lookup:
		t.flows(v.Type(), t.load(x.X), c)
	case *ssa.UnOp:
		t.flows(v.Type(), t.load(x.X), c)
	default:
		t.flows(v.Type(), t.at(tupleKey{x, v.Index}), c)
	}
}

func (t *targets) assert(v *ssa.TypeAssert) {
	var to cell
	if v.CommaOk {
		to = t.at(tupleKey{v, 0})
	} else if to = t.value(v); to == 0 {
		return
	}
	if i, ok := v.AssertedType.Underlying().(*types.Interface); ok {
		if from := t.value(v.X); from != 0 {
			t.edge(from, flowEdge{to, i})
		}
		return
	}
	t.flows(v.AssertedType, t.inside(v.AssertedType), to)
}

func (t *targets) selects(v *ssa.Select) {
	n := 2
	for _, s := range v.States {
		elem := s.Chan.Type().Underlying().(*types.Chan).Elem()
		if s.Dir == types.SendOnly {
			t.flows(elem, t.value(s.Send), t.load(s.Chan))
			continue
		}
		t.flows(elem, t.load(s.Chan), t.at(tupleKey{v, n}))
		n++
	}
}

func (t *targets) next(v *ssa.Next) {
	r, ok := v.Iter.(*ssa.Range)
	if !ok || v.IsString {
		return
	}
	m, ok := r.X.Type().Underlying().(*types.Map)
	c := t.value(r.X)
	if !ok || c == 0 {
		return
	}
	t.flows(m.Key(), t.keyOf(c), t.at(tupleKey{v, 1}))
	t.flows(m.Elem(), t.elem(c), t.at(tupleKey{v, 2}))
}

func isUnsafe(typ types.Type) bool {
	b, ok := typ.Underlying().(*types.Basic)
	return ok && b.Kind() == types.UnsafePointer
}

// convert: what goes through an unsafe pointer comes out as the type that it went in.
func (t *targets) convert(v *ssa.Convert) {
	switch {
	case isUnsafe(v.Type()):
		t.flows(v.X.Type(), t.value(v.X), t.inside(v.X.Type()))
	case isUnsafe(v.X.Type()):
		t.flows(v.Type(), t.inside(v.Type()), t.value(v))
	default:
		t.convertStruct(v.X.Type(), v.Type())
		t.flows(v.Type(), t.value(v.X), t.value(v))
	}
}

// convertStruct: two struct types of which one is made of the other share their fields.
func (t *targets) convertStruct(from, to types.Type) {
	if p, ok := from.Underlying().(*types.Pointer); ok {
		if q, ok := to.Underlying().(*types.Pointer); ok {
			from, to = p.Elem(), q.Elem()
		}
	}
	f, ok1 := from.Underlying().(*types.Struct)
	g, ok2 := to.Underlying().(*types.Struct)
	if !ok1 || !ok2 || f.NumFields() != g.NumFields() || t.typeID(from) == t.typeID(to) {
		return
	}
	for i := range f.NumFields() {
		if t.carries(f.Field(i).Type()) {
			t.unify(t.field(from, i), t.field(to, i))
		}
		t.convertStruct(f.Field(i).Type(), g.Field(i).Type())
	}
}

// call is a call of any kind.
func (t *targets) call(in ssa.CallInstruction) {
	c := in.Common()
	switch f := c.Value.(type) {
	case *ssa.Builtin:
		t.builtin(f, in)
		return
	case *ssa.MakeClosure:
		t.link(in, f.Fn.(*ssa.Function), -1)
		return
	case *ssa.Function:
		t.link(in, f, -1)
		return
	}
	if r := t.value(c.Value); r != 0 {
		t.watch(r, in)
	}
}

// dispatch adds what a call reaches if its function or receiver is an item.
func (t *targets) dispatch(w watcher, i int32) {
	in := w.in
	c, it := in.Common(), t.items[i]
	switch {
	case it.fn == nil && it.typ < 0: // not known
	case w.names != nil:
		if it.fn == nil {
			t.named(w, it.typ)
		}
	case !c.IsInvoke() && it.fn != nil:
		t.link(in, it.fn, -1)
	case c.IsInvoke() && it.fn == nil:
		if m := t.method(it.typ, c.Method); m != nil {
			t.link(in, m, it.typ)
		}
	}
}

// method is the method of a type, or nil if it has none.
func (t *targets) method(typ int32, f *types.Func) *ssa.Function {
	k := methodKey{typ, f}
	m, ok := t.methods[k]
	if !ok {
		T := t.typeList[typ]
		if sel := t.prog.MethodSets.MethodSet(T).Lookup(f.Pkg(), f.Name()); sel != nil && !types.IsInterface(T) {
			m = t.prog.MethodValue(sel)
		}
		t.methods[k] = m
	}
	return m
}

// link adds a callee; recv is the type of its receiver where that is in an interface.
func (t *targets) link(in ssa.CallInstruction, fn *ssa.Function, recv int32) {
	fn = t.stands(fn)
	set := t.calls[in]
	if set[fn] {
		return
	}
	if set == nil {
		set = map[*ssa.Function]bool{}
		t.calls[in] = set
	}
	set[fn] = true
	t.reach(fn)
	if t.special(t, in, fn) {
		return
	}
	t.bindCall(in, fn, recv)
}

// mention adds a callee that is called with other arguments than those of the call.
func (t *targets) mention(in ssa.CallInstruction, fn *ssa.Function, recv int32) {
	if t.calls[in] == nil {
		t.calls[in] = map[*ssa.Function]bool{}
	}
	t.calls[in][fn] = true
	t.reach(fn)
	if len(fn.Params) > 0 {
		t.flows(t.typeList[recv], t.inside(t.typeList[recv]), t.value(fn.Params[0]))
	}
}

// bindCall takes the arguments of a call to a callee and the results back.
func (t *targets) bindCall(in ssa.CallInstruction, fn *ssa.Function, recv int32) {
	if t.opaque(fn) {
		t.hidden(in, fn)
		return
	}
	params, args := fn.Params, in.Common().Args
	if recv >= 0 && len(params) > 0 {
		t.flows(t.typeList[recv], t.inside(t.typeList[recv]), t.value(params[0]))
	}
	if in.Common().IsInvoke() && len(params) > 0 {
		params = params[1:]
	}
	for i, a := range args {
		if i < len(params) {
			t.flows(a.Type(), t.value(a), t.value(params[i]))
		}
	}
	t.results(in, func(i int, typ types.Type, to cell) { t.flows(typ, t.at(resultKey{fn, i}), to) })
}

// results goes through the results of a call that hold something.
func (t *targets) results(in ssa.CallInstruction, do func(i int, typ types.Type, to cell)) {
	v := in.Value()
	if v == nil {
		return
	}
	if tuple, ok := v.Type().(*types.Tuple); ok {
		for i := range tuple.Len() {
			if t.carries(tuple.At(i).Type()) {
				do(i, tuple.At(i).Type(), t.at(tupleKey{v, i}))
			}
		}
	} else if c := t.value(v); c != 0 {
		do(0, v.Type(), c)
	}
}

// hidden is a call of a function that is not looked into: the functions that it is
// given may be called, by whom is not known.
func (t *targets) hidden(in ssa.CallInstruction, fn *ssa.Function) {
	t.results(in, func(_ int, typ types.Type, to cell) {
		if dynamic(typ) {
			t.put(to, unknownItem)
		}
	})
	for _, a := range in.Common().Args {
		c := t.value(a)
		if c == 0 {
			continue
		}
		if _, ok := a.Type().Underlying().(*types.Signature); ok {
			t.edge(c, flowEdge{to: t.at(escapedKey{})})
		}
		t.results(in, func(_ int, typ types.Type, to cell) {
			if types.Identical(typ, a.Type()) {
				t.flows(typ, c, to)
			}
		})
	}
}

type escapedKey struct{}

func (t *targets) builtin(b *ssa.Builtin, in ssa.CallInstruction) {
	args := in.Common().Args
	switch b.Name() {
	case "append":
		if v := in.Value(); v != nil && t.value(v) != 0 {
			t.unify(t.load(v), t.load(args[0]))
			if c := t.load(args[1]); c != 0 {
				t.unify(t.load(v), c)
			}
		}
	case "copy":
		if x, y := t.load(args[0]), t.load(args[1]); x != 0 && y != 0 {
			t.unify(x, y)
		}
	case "recover":
		if v := in.Value(); v != nil {
			t.flows(v.Type(), t.at(panicKey{}), t.at(v))
		}
	case "ssa:wrapnilchk", "Slice", "SliceData", "Add":
		if v := in.Value(); v != nil {
			if x, y := t.value(v), t.value(args[0]); x != 0 && y != 0 {
				t.flows(v.Type(), y, x)
			}
		}
	}
}
