package maxlive

import (
	"go/types"

	"golang.org/x/tools/go/ssa"
)

// A hook is a struct of a generic type with a field that is a function of the type
// argument: there are few types, and each variable is something else. What such a field
// holds is told apart by the variable, or the field, that the struct is.

type (
	apartKey struct {
		owner any
		field int
	}
	anyApartKey   struct{ typ int32 }
	strayApartKey struct{ typ int32 }
)

// isApart says whether a field of a struct type is told apart by variables.
func isApart(strct types.Type, field int) bool {
	n, ok := strct.(*types.Named)
	if !ok || n.TypeArgs().Len() == 0 {
		return false
	}
	s, ok := n.Origin().Underlying().(*types.Struct)
	if !ok || field >= s.NumFields() {
		return false
	}
	if _, isParam := s.Field(field).Type().(*types.TypeParam); !isParam {
		return false
	}
	_, isFunc := n.Underlying().(*types.Struct).Field(field).Type().Underlying().(*types.Signature)
	return isFunc
}

// apart is the cell of such a field. What is stored where the variable is not known
// goes to all; what is loaded there comes from all.
func (t *targets) apart(strct types.Type, field int, owner any) cell {
	id := t.typeID(strct)
	if owner == nil {
		return t.at(strayApartKey{id})
	}
	k := apartKey{owner, field}
	if _, ok := t.values[k]; !ok {
		t.edge(t.at(k), flowEdge{to: t.at(anyApartKey{id})})
		t.edge(t.at(strayApartKey{id}), flowEdge{to: t.at(k)})
	}
	return t.at(k)
}

// apartField is the address of such a field.
func (t *targets) apartField(v *ssa.FieldAddr) bool {
	strct := v.X.Type().Underlying().(*types.Pointer).Elem()
	if !isApart(strct, v.Field) {
		return false
	}
	owner := t.owner(v.X)
	if owner == nil {
		id := t.typeID(strct)
		t.edge(t.at(strayApartKey{id}), flowEdge{to: t.at(anyApartKey{id})})
		if onlyRead(v) {
			t.unify(t.elem(t.value(v)), t.at(anyApartKey{id}))
			return true
		}
	}
	t.unify(t.elem(t.value(v)), t.apart(strct, v.Field, owner))
	return true
}

// onlyRead says that an address is only loaded from.
func onlyRead(v *ssa.FieldAddr) bool {
	for _, r := range *v.Referrers() {
		if _, ok := r.(*ssa.UnOp); !ok {
			return false
		}
	}
	return true
}

// setsApart handles the call of a function that stores a parameter in such a field of its
// receiver, or of the struct that it returns: it is stored in the caller's variable.
func (t *targets) setsApart(in ssa.CallInstruction, fn *ssa.Function) bool {
	if in.Common().IsInvoke() || len(fn.Blocks) == 0 || len(fn.TypeArgs()) == 0 && fn.Signature.Recv() == nil {
		return false
	}
	type store struct{ param, field int }
	var stores []store
	var strct types.Type
	for i, p := range fn.Params {
		if _, ok := p.Type().Underlying().(*types.Signature); !ok {
			continue
		}
		for _, r := range *p.Referrers() {
			s, ok := r.(*ssa.Store)
			if !ok {
				return false
			}
			f, ok := s.Addr.(*ssa.FieldAddr)
			if !ok {
				return false
			}
			strct = f.X.Type().Underlying().(*types.Pointer).Elem()
			_, local := f.X.(*ssa.Alloc)
			if !isApart(strct, f.Field) || !local && f.X != fn.Params[0] {
				return false
			}
			stores = append(stores, store{i, f.Field})
		}
	}
	owner := t.setOwner(in, fn)
	if len(stores) == 0 || owner == nil {
		return false
	}
	for _, s := range stores {
		arg := in.Common().Args[s.param]
		t.flows(arg.Type(), t.value(arg), t.apart(strct, s.field, owner))
	}
	return true
}

// setOwner is the variable whose struct a call sets: that of the receiver, or the one
// that the result is stored in.
func (t *targets) setOwner(in ssa.CallInstruction, fn *ssa.Function) any {
	if fn.Signature.Recv() != nil {
		return t.owner(in.Common().Args[0])
	}
	v := in.Value()
	if v == nil || v.Referrers() == nil || len(*v.Referrers()) != 1 {
		return nil
	}
	if s, ok := (*v.Referrers())[0].(*ssa.Store); ok && s.Val == v {
		return t.owner(s.Addr)
	}
	return nil
}
