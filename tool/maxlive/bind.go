package maxlive

import (
	"cmp"
	"fmt"
	"go/token"
	"go/types"
	"slices"
	"strings"

	"golang.org/x/tools/go/ssa"
)

// binding is what is known of a function's parameters and of a closure's variables
// where it is called: a function that calls what it is given costs what that costs.
type binding struct {
	params map[int][]*bound
	free   map[int][]*bound
	name   string
}

// bound is a function, as it was made, or a type.
type bound struct {
	fn  *ssa.Function
	env *binding // of its variables
	typ int32
}

func (b *bound) name(a *Analysis) string {
	if b.fn == nil {
		return fmt.Sprint("t", b.typ)
	}
	s := fmt.Sprint("f", a.targets.funcItem(b.fn))
	if b.env != nil {
		s += "{" + b.env.name + "}"
	}
	return s
}

// instanceKey is a function with a binding.
type instanceKey struct {
	fn      *ssa.Function
	binding string
}

const (
	mostBound     = 4   // values of one parameter
	mostInstances = 60  // of one function
	longestName   = 400 // of a binding: closures of closures end there
)

// instance is the record of a function with a binding. One with too many has one record
// for all that are left.
func (a *Analysis) instance(fn *ssa.Function, b *binding) *function {
	point := a.isPoint(fn)
	if point {
		b = nil
	}
	k := instanceKey{fn: fn}
	if b != nil {
		k.binding = b.name
	}
	f := a.functions[k]
	if f == nil && b != nil && a.instances[fn] >= mostInstances {
		return a.instance(fn, nil)
	}
	if f == nil {
		f = &function{a: a, fn: fn, bind: b, point: point}
		a.functions[k] = f
		a.instances[fn]++
	}
	return f
}

// callsOf are the callees of each call of a function, in a fixed order.
func (a *Analysis) callsOf(f *function) map[ssa.CallInstruction][]*function {
	out := map[ssa.CallInstruction][]*function{}
	for _, b := range f.fn.Blocks {
		for _, in := range b.Instrs {
			if call, ok := in.(ssa.CallInstruction); ok && !f.doomed[b] {
				if list := a.callees(f, call); len(list) > 0 {
					out[call] = list
				}
			}
		}
	}
	return out
}

// callees are those of one call.
func (a *Analysis) callees(f *function, call ssa.CallInstruction) []*function {
	var out []*function
	add := func(fn *ssa.Function, env *binding) {
		if isTemplate(fn) {
			return
		}
		if g := a.instance(fn, a.bindingOf(f, call, fn, env)); !slices.Contains(out, g) {
			out = append(out, g)
		}
	}
	c := call.Common()
	known, ok := a.resolve(f, c.Value, 0)
	switch {
	case c.StaticCallee() == nil && ok:
		for _, b := range known {
			switch {
			case !c.IsInvoke() && b.fn != nil:
				add(a.stand(b.fn), b.env)
			case c.IsInvoke() && b.fn == nil:
				if m := a.targets.method(b.typ, c.Method); m != nil {
					add(m, nil)
				}
			}
		}
	default:
		var env *binding
		if ok && len(known) == 1 {
			env = known[0].env
		}
		for fn := range a.targets.calls[call] {
			switch callee := c.StaticCallee(); {
			case callee == nil || fn == callee || !a.mentions(callee):
				add(fn, env)
			default:
				out = append(out, a.instance(fn, a.given(f, call, callee, fn)))
			}
		}
	}
	slices.SortFunc(out, func(x, y *function) int {
		return cmp.Or(strings.Compare(x.fn.String(), y.fn.String()), cmp.Compare(x.fn.Pos(), y.fn.Pos()), strings.Compare(x.binding(), y.binding()))
	})
	return out
}

func (f *function) binding() string {
	if f.bind == nil {
		return ""
	}
	return f.bind.name
}

// bindingOf is what a call tells of its callee's parameters.
func (a *Analysis) bindingOf(f *function, call ssa.CallInstruction, fn *ssa.Function, env *binding) *binding {
	if a.external(fn) || a.isPoint(fn) {
		return nil
	}
	b := &binding{}
	if env != nil {
		b.free = env.free
	}
	args := arguments(call.Common())
	for i, p := range fn.Params {
		if i >= len(args) || len(args) != len(fn.Params) || !dynamic(p.Type()) || !a.calledWith(p) {
			continue
		}
		list, ok := a.resolve(f, args[i], 0)
		if !ok {
			list, ok = a.heldBy(args[i], p)
		}
		if ok && len(list) <= mostBound {
			if b.params == nil {
				b.params = map[int][]*bound{}
			}
			b.params[i] = list
		}
	}
	return b.named(a)
}

// heldBy is what the argument can hold, where that is less than the parameter can.
func (a *Analysis) heldBy(arg ssa.Value, p *ssa.Parameter) ([]*bound, bool) {
	c, ok := a.targets.values[arg]
	d, ok2 := a.targets.values[p]
	if !ok || !ok2 {
		return nil, false
	}
	has := a.targets.cells[a.targets.find(c)].has
	if len(has) == 0 || len(has) > mostBound || len(has) == len(a.targets.cells[a.targets.find(d)].has) {
		return nil, false
	}
	var out []*bound
	for i := range has {
		it := a.targets.items[i]
		if it.fn == nil && it.typ < 0 {
			return nil, false
		}
		out = append(out, &bound{fn: it.fn, typ: it.typ})
	}
	return out, true
}

// named gives a binding its name; one that tells nothing is nil.
func (b *binding) named(a *Analysis) *binding {
	var s strings.Builder
	for _, m := range []map[int][]*bound{b.params, b.free} {
		for _, list := range m {
			slices.SortFunc(list, func(x, y *bound) int { return strings.Compare(x.name(a), y.name(a)) })
		}
	}
	write := func(kind string, m map[int][]*bound) {
		var keys []int
		for i := range m {
			keys = append(keys, i)
		}
		slices.Sort(keys)
		for _, i := range keys {
			fmt.Fprintf(&s, "%s%d=", kind, i)
			for _, x := range m[i] {
				s.WriteString(x.name(a) + ",")
			}
		}
	}
	write("p", b.params)
	write("v", b.free)
	if s.Len() == 0 || s.Len() > longestName {
		return nil
	}
	b.name = s.String()
	return b
}

func dynamic(t types.Type) bool {
	switch t.Underlying().(type) {
	case *types.Signature, *types.Interface:
		return true
	}
	return false
}

// calledWith says whether a function may call a parameter, or hand it on.
func (a *Analysis) calledWith(p *ssa.Parameter) bool {
	is, ok := a.calledParams[p]
	if !ok {
		is = usedInCall(p, 0)
		a.calledParams[p] = is
	}
	return is
}

func usedInCall(v ssa.Value, depth int) bool {
	if v.Referrers() == nil || depth > 4 {
		return depth > 4
	}
	for _, r := range *v.Referrers() {
		switch r := r.(type) {
		case ssa.CallInstruction, *ssa.MakeClosure:
			return true
		case *ssa.Phi, *ssa.ChangeInterface, *ssa.ChangeType, *ssa.TypeAssert, *ssa.Extract:
			if usedInCall(r.(ssa.Value), depth+1) {
				return true
			}
		case *ssa.Store:
			if at, ok := r.Addr.(*ssa.Alloc); ok && r.Val == v && usedInCall(at, depth+1) {
				return true
			}
		case *ssa.UnOp:
			if r.Op == token.MUL && usedInCall(r, depth+1) {
				return true
			}
		}
	}
	return false
}

// resolve finds what a function value or an interface can be from the text around it.
func (a *Analysis) resolve(f *function, v ssa.Value, depth int) ([]*bound, bool) {
	if depth > 6 {
		return nil, false
	}
	switch v := v.(type) {
	case *ssa.Function:
		return []*bound{{fn: v}}, true
	case *ssa.Const:
		return nil, v.Value == nil && dynamic(v.Type())
	case *ssa.MakeClosure:
		return []*bound{{fn: v.Fn.(*ssa.Function), env: a.environment(f, v, depth+1)}}, true
	case *ssa.MakeInterface:
		return []*bound{{typ: a.targets.typeID(v.X.Type())}}, true
	case *ssa.ChangeInterface:
		return a.resolve(f, v.X, depth+1)
	case *ssa.ChangeType:
		return a.resolve(f, v.X, depth+1)
	case *ssa.Phi:
		var out []*bound
		for _, e := range v.Edges {
			list, ok := a.resolve(f, e, depth+2)
			if !ok {
				return nil, false
			}
			out = append(out, list...)
		}
		return out, true
	case *ssa.Parameter:
		if f.bind != nil {
			list, ok := f.bind.params[slices.Index(f.fn.Params, v)]
			return list, ok
		}
	case *ssa.FreeVar:
		if f.bind != nil {
			list, ok := f.bind.free[slices.Index(f.fn.FreeVars, v)]
			return list, ok
		}
	case *ssa.UnOp:
		if v.Op != token.MUL || !dynamic(v.Type()) {
			return nil, false
		}
		switch x := v.X.(type) {
		case *ssa.Alloc:
			return a.stored(f, x, depth+1)
		case *ssa.FreeVar:
			return a.resolve(f, x, depth+1)
		}
	}
	return nil, false
}

// environment is what a closure's variables are where it is made.
func (a *Analysis) environment(f *function, v *ssa.MakeClosure, depth int) *binding {
	b := &binding{}
	for i, x := range v.Bindings {
		var list []*bound
		var ok bool
		if at, isVar := x.(*ssa.Alloc); isVar {
			list, ok = a.stored(f, at, depth+1)
		} else if dynamic(x.Type()) || isFreeVar(x) {
			list, ok = a.resolve(f, x, depth+1)
		}
		if ok && len(list) <= mostBound {
			if b.free == nil {
				b.free = map[int][]*bound{}
			}
			b.free[i] = list
		}
	}
	return b.named(a)
}

func isFreeVar(v ssa.Value) bool { _, ok := v.(*ssa.FreeVar); return ok }

// stored is what a local variable holds, if all that is stored in it is seen.
func (a *Analysis) stored(f *function, at *ssa.Alloc, depth int) ([]*bound, bool) {
	if !dynamic(at.Type().Underlying().(*types.Pointer).Elem()) {
		return nil, false
	}
	var out []*bound
	for _, r := range *at.Referrers() {
		switch r := r.(type) {
		case *ssa.Store:
			if r.Addr != at || r.Val == at {
				return nil, false
			}
			list, ok := a.resolve(f, r.Val, depth+1)
			if !ok {
				return nil, false
			}
			out = append(out, list...)
		case *ssa.UnOp, *ssa.DebugRef:
		case *ssa.MakeClosure:
			if writes(r, at) {
				return nil, false
			}
		default:
			return nil, false
		}
	}
	return out, true
}

// writes says whether a closure may change a variable.
func writes(c *ssa.MakeClosure, v ssa.Value) bool {
	for i, b := range c.Bindings {
		if b != v {
			continue
		}
		for _, r := range *c.Fn.(*ssa.Function).FreeVars[i].Referrers() {
			switch r := r.(type) {
			case *ssa.UnOp, *ssa.DebugRef:
			case *ssa.MakeClosure:
				if writes(r, c.Fn.(*ssa.Function).FreeVars[i]) {
					return true
				}
			default:
				return true
			}
		}
	}
	return false
}

// never says that a call cannot happen: nothing is ever assigned to what it calls.
func (a *Analysis) never(c *ssa.CallCommon) bool {
	return a.whole && c.StaticCallee() == nil && len(a.targets.held(c.Value)) == 0
}

// mentions says whether a function calls methods of its arguments out of sight.
func (a *Analysis) mentions(fn *ssa.Function) bool {
	return isCopy(fn) || isFormat(fn) || strings.HasPrefix(nameOf(fn), "errors.")
}

// given is what a method is given by a function that copies: the other side, without
// the readers that only count.
func (a *Analysis) given(f *function, call ssa.CallInstruction, copier, fn *ssa.Function) *binding {
	if !isCopy(copier) || len(fn.Params) < 2 || !dynamic(fn.Params[1].Type()) {
		return nil
	}
	other := call.Common().Args[0]
	if fn.Name() == "ReadFrom" {
		other = call.Common().Args[1]
	}
	list, ok := a.resolve(f, other, 0)
	if !ok {
		list, ok = a.heldBy(other, fn.Params[1])
	}
	if !ok || len(list) > mostBound {
		return nil
	}
	b := &binding{params: map[int][]*bound{1: list}}
	return b.named(a)
}
