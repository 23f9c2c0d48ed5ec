package maxlive

import (
	"go/types"
	"strings"

	"golang.org/x/tools/go/ssa"
)

// Some functions of the standard library call what they find in their arguments by
// reflection, or what others left in a pool. Here they call just that.

// special handles the calls of such functions.
func special(t *targets, in ssa.CallInstruction, fn *ssa.Function) bool {
	switch name := nameOf(fn); {
	case name == "(*sync.Pool).Get":
		t.edge(t.newOf(in.Common().Args[0]), flowEdge{to: t.callCell(in)})
		t.results(in, func(_ int, typ types.Type, to cell) { t.flows(typ, t.at(pooledKey{}), to) })
	case name == "(*sync.Pool).Put":
		a := in.Common().Args[1]
		t.flows(a.Type(), t.value(a), t.at(pooledKey{}))
	case isOnce(fn):
		// What it returns calls what it is given.
		t.flows(fn.Params[0].Type(), t.value(in.Common().Args[0]), t.value(fn.Params[0]))
		t.results(in, func(_ int, typ types.Type, to cell) { t.flows(typ, t.value(in.Common().Args[0]), to) })
	case isCopy(fn):
		dst, src := t.value(in.Common().Args[0]), t.value(in.Common().Args[1])
		if dst != 0 && src != 0 {
			t.watchBy(dst, watcher{in: in, names: []string{"Write", "ReadFrom"}, other: src})
			t.watchBy(src, watcher{in: in, names: []string{"Read", "WriteTo"}, other: dst})
		}
	case isFormat(fn):
		t.format(in, fn)
	case name == "errors.Is" || name == "errors.As" || name == "errors.Unwrap":
		t.unwrap(in)
	default:
		return t.setsApart(in, fn)
	}
	return true
}

// nameOf is a function's name, without its types where it is generic.
func nameOf(fn *ssa.Function) string {
	if o := fn.Origin(); o != nil {
		fn = o
	}
	return fn.String()
}

type (
	pooledKey    struct{}
	chainKey     struct{}
	callCellKey  struct{ in ssa.CallInstruction }
	newKey       struct{ owner any }
	anyNewKey    struct{}
	strayNewKey  struct{}
	formattedKey struct {
		in  ssa.CallInstruction
		typ int32
	}
)

// callCell holds functions that a call calls beside those of its text.
func (t *targets) callCell(in ssa.CallInstruction) cell {
	k := callCellKey{in}
	if _, ok := t.values[k]; !ok {
		t.watch(t.at(k), in)
	}
	return t.at(k)
}

// owner is the variable or the field that a struct is part of.
func (t *targets) owner(v ssa.Value) any {
	switch v := v.(type) {
	case *ssa.Global:
		return v
	case *ssa.IndexAddr:
		return t.owner(v.X)
	case *ssa.Alloc:
		for _, r := range *v.Referrers() {
			if l, ok := r.(*ssa.UnOp); ok { // a copy is another's
				return t.copiedTo(l)
			}
		}
		return v
	case *ssa.FieldAddr:
		return fieldKey{t.typeID(v.X.Type().Underlying().(*types.Pointer).Elem()), int32(v.Field)}
	}
	return nil
}

// copiedTo is the owner of the only copy of a struct, or nil.
func (t *targets) copiedTo(v *ssa.UnOp) any {
	if refs := *v.Referrers(); len(refs) == 1 {
		if s, ok := refs[0].(*ssa.Store); ok && s.Val == v {
			if _, again := s.Addr.(*ssa.Alloc); !again {
				return t.owner(s.Addr)
			}
		}
	}
	return nil
}

// newOf is the cell of the New functions of a sync.Pool: told apart by the variable or
// the field that the pool is.
func (t *targets) newOf(pool ssa.Value) cell {
	o := t.owner(pool)
	if o == nil {
		return t.at(anyNewKey{})
	}
	k := newKey{o}
	if _, ok := t.values[k]; !ok {
		t.edge(t.at(k), flowEdge{to: t.at(anyNewKey{})})
		t.edge(t.at(strayNewKey{}), flowEdge{to: t.at(k)})
	}
	return t.at(k)
}

// poolNew is the address of a pool's New.
func (t *targets) poolNew(v *ssa.FieldAddr) bool {
	typ := v.X.Type().Underlying().(*types.Pointer).Elem()
	n, ok := typ.(*types.Named)
	if !ok || n.Obj().Name() != "Pool" || n.Obj().Pkg() == nil || n.Obj().Pkg().Path() != "sync" {
		return false
	}
	if n.Underlying().(*types.Struct).Field(v.Field).Name() != "New" {
		return false
	}
	to := t.at(strayNewKey{})
	if t.owner(v.X) != nil {
		to = t.newOf(v.X)
	} else {
		t.edge(to, flowEdge{to: t.at(anyNewKey{})})
	}
	t.unify(t.elem(t.value(v)), to)
	return true
}

// isOnce says whether a function is one that returns a function that runs its argument once.
func isOnce(fn *ssa.Function) bool {
	switch nameOf(fn) {
	case "sync.OnceFunc", "sync.OnceValue", "sync.OnceValues":
		return true
	}
	return false
}

// isCopy says whether a function is one of io's that copy from a reader to a writer.
func isCopy(fn *ssa.Function) bool {
	switch nameOf(fn) {
	case "io.Copy", "io.CopyN", "io.CopyBuffer":
		return true
	}
	return false
}

// isFormat says whether a function is one of package fmt that writes its arguments.
func isFormat(fn *ssa.Function) bool {
	if fn.Pkg == nil || fn.Pkg.Pkg.Path() != "fmt" || fn.Signature.Recv() != nil || !fn.Signature.Variadic() {
		return false
	}
	for _, s := range []string{"Sprint", "Fprint", "Print", "Append", "Errorf"} {
		if strings.HasPrefix(fn.Name(), s) {
			return true
		}
	}
	return false
}

var formatMethods = []string{"Format", "GoString", "Error", "String"}

// format is a call of such a function: of the methods of its arguments.
func (t *targets) format(in ssa.CallInstruction, fn *ssa.Function) {
	args := in.Common().Args
	list, ok := variadic(args[len(args)-1])
	for _, v := range list {
		t.watchMethods(t.value(v), in, formatMethods, true)
	}
	if c := t.load(args[len(args)-1]); c != 0 {
		if !ok {
			t.watchMethods(c, in, formatMethods, true)
		}
		if fn.Name() == "Errorf" {
			t.wrapped(in, c)
		}
	}
	if strings.HasPrefix(fn.Name(), "Fprint") {
		t.watchMethods(t.value(args[0]), in, []string{"Write"}, false)
	}
}

// wrapped is the error that fmt.Errorf makes.
func (t *targets) wrapped(in ssa.CallInstruction, args cell) {
	scope := in.Common().StaticCallee().Pkg.Pkg.Scope()
	t.results(in, func(_ int, _ types.Type, to cell) {
		for _, name := range []string{"wrapError", "wrapErrors", "fmtError"} {
			if obj := scope.Lookup(name); obj != nil {
				t.put(to, t.typeItem(types.NewPointer(obj.Type())))
			}
		}
		if p := t.prog.ImportedPackage("errors"); p != nil {
			t.put(to, t.typeItem(types.NewPointer(p.Pkg.Scope().Lookup("errorString").Type())))
		}
	})
	t.edge(args, flowEdge{to: t.at(chainKey{})})
}

// unwrap is a look through a chain of errors: it calls the methods of each.
func (t *targets) unwrap(in ssa.CallInstruction) {
	c := t.at(chainKey{})
	for _, a := range in.Common().Args {
		if dynamic(a.Type()) && t.value(a) != 0 {
			t.edge(t.value(a), flowEdge{to: c})
		}
	}
	t.watchMethods(c, in, []string{"Is", "As", "Unwrap"}, false)
	t.results(in, func(_ int, typ types.Type, to cell) {
		if dynamic(typ) {
			t.edge(c, flowEdge{to: to})
		}
	})
}

// watcher makes a call follow what a cell holds: as its function or receiver or, where
// there are names, by methods that it calls.
type watcher struct {
	in    ssa.CallInstruction
	names []string
	deep  bool // of what is in fields as well
	other cell // what the method is given
}

func (t *targets) watchMethods(c cell, in ssa.CallInstruction, names []string, deep bool) {
	if c != 0 {
		t.watchBy(c, watcher{in: in, names: names, deep: deep})
	}
}

// named links a call to the methods of a type that have one of the names.
func (t *targets) named(w watcher, typ int32) {
	k := formattedKey{w.in, typ}
	if _, ok := t.values[k]; ok {
		return
	}
	t.values[k] = 0
	T := t.typeList[typ]
	found := false
	if types.IsInterface(T) {
		return
	}
	for _, name := range w.names {
		if sel := t.prog.MethodSets.MethodSet(T).Lookup(nil, name); sel != nil {
			if m := t.prog.MethodValue(sel); m != nil {
				t.mention(w.in, m, typ)
				found = true
				if w.other != 0 && len(m.Params) > 1 && dynamic(m.Params[1].Type()) {
					t.edge(w.other, flowEdge{to: t.value(m.Params[1])})
				}
				if name == "Unwrap" && m.Signature.Results().Len() == 1 && dynamic(m.Signature.Results().At(0).Type()) {
					t.edge(t.at(resultKey{m, 0}), flowEdge{to: t.at(chainKey{})})
				}
			}
		}
	}
	if !w.deep || found {
		return
	}
	switch u := T.Underlying().(type) {
	case *types.Struct:
		for i := range u.NumFields() {
			t.inner(w, u.Field(i).Type(), func() cell { return t.field(T, i) })
		}
	case *types.Pointer:
		t.inner(w, u.Elem(), func() cell { return t.elem(t.inside(T)) })
	case *types.Slice:
		t.inner(w, u.Elem(), func() cell { return t.elem(t.inside(T)) })
	case *types.Array:
		t.inner(w, u.Elem(), func() cell { return t.inside(T) })
	case *types.Map:
		t.inner(w, u.Elem(), func() cell { return t.elem(t.inside(T)) })
		t.inner(w, u.Key(), func() cell { return t.keyOf(t.inside(T)) })
	}
}

func (t *targets) inner(w watcher, typ types.Type, at func() cell) {
	if types.IsInterface(typ) {
		t.watchBy(at(), w)
		return
	}
	t.named(w, t.typeID(typ))
}
