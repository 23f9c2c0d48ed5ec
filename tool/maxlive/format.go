package maxlive

import (
	"go/constant"
	"go/types"
	"strings"

	"golang.org/x/tools/go/ssa"
)

// formatCost is what a call of one of fmt's functions needs itself: the printer with its
// buffer, and the text. The methods that it calls come on top.
func (f *function) formatCost(call ssa.CallInstruction, fn *ssa.Function) Cost {
	c := call.Common()
	s := site{instr: call}
	top, ok := f.textLength(c, fn)
	n := f.count(&s, "text of unknown length", call.Pos(), top, ok)
	if s.need != "" {
		f.cause(s.need, "", call.Pos())
	}
	a := f.a
	var cost Cost
	cost.Peak = a.classes.object(a.sizeOf("fmt", "pp"), true, 1)
	buf := a.classes.growthAny(1, n, false)
	cost.Peak.add(&buf)
	text := a.classes.object(n, false, 1)
	switch {
	case fn.Name() == "Errorf":
		cost.Ret = a.classes.object(a.sizeOf("fmt", "wrapErrors"), true, 1)
		list := a.classes.object(16*uint64(strings.Count(constText(c.Args[0]), "%w")), true, 1)
		cost.Ret.add(&list)
		cost.Ret.add(&text)
	case strings.HasPrefix(fn.Name(), "Sprint"):
		cost.Ret = text
	case strings.HasPrefix(fn.Name(), "Append"):
		cost.Ret = buf
	}
	cost.Peak.add(&cost.Ret)
	return cost
}

func constText(v ssa.Value) string {
	if c, ok := v.(*ssa.Const); ok && c.Value != nil && c.Value.Kind() == constant.String {
		return constant.StringVal(c.Value)
	}
	return ""
}

// textLength bounds the text that a call writes, where its format is a constant.
func (f *function) textLength(c *ssa.CallCommon, fn *ssa.Function) (int64, bool) {
	args, ok := variadic(c.Args[len(c.Args)-1])
	if !ok {
		return 0, false
	}
	if !strings.HasSuffix(fn.Name(), "f") {
		n := int64(len(args) + 1) // spaces and the end of the line
		for _, v := range args {
			w, ok := printed(v, 'v')
			if !ok {
				return 0, false
			}
			n += w
		}
		return n, true
	}
	at := len(c.Args) - 2
	k, isConst := c.Args[at].(*ssa.Const)
	if !isConst || k.Value == nil {
		return 0, false
	}
	return formatted(constant.StringVal(k.Value), args)
}

// variadic lists the values that a call passes as its last argument.
func variadic(v ssa.Value) ([]ssa.Value, bool) {
	if c, ok := v.(*ssa.Const); ok && c.Value == nil {
		return nil, true
	}
	s, ok := v.(*ssa.Slice)
	if !ok {
		return nil, false
	}
	at, ok := s.X.(*ssa.Alloc)
	if !ok || at.Comment != "varargs" {
		return nil, false
	}
	list := make([]ssa.Value, at.Type().Underlying().(*types.Pointer).Elem().Underlying().(*types.Array).Len())
	for _, r := range *at.Referrers() {
		x, ok := r.(*ssa.IndexAddr)
		if !ok {
			continue
		}
		i, ok := constOf(x.Index)
		if !ok {
			return nil, false
		}
		for _, r := range *x.Referrers() {
			if st, ok := r.(*ssa.Store); ok {
				list[i] = st.Val
			}
		}
	}
	return list, true
}

// formatted is the most bytes that a format makes of its arguments.
func formatted(format string, args []ssa.Value) (int64, bool) {
	n := int64(0)
	for i := 0; i < len(format); i++ {
		if format[i] != '%' {
			n++
			continue
		}
		width, digits := int64(0), int64(0)
		for i++; i < len(format) && strings.IndexByte("+-# 0123456789.", format[i]) >= 0; i++ {
			if c := format[i]; c >= '0' && c <= '9' {
				digits = digits*10 + int64(c-'0')
			} else {
				width, digits = width+digits, 0
			}
		}
		width += digits
		if i == len(format) {
			return 0, false
		}
		if format[i] == '%' {
			n++
			continue
		}
		if len(args) == 0 || format[i] == '*' || format[i] == '[' || args[0] == nil {
			return 0, false
		}
		w, ok := printed(args[0], rune(format[i]))
		if !ok {
			return 0, false
		}
		args = args[1:]
		n += w + width
	}
	return n, len(args) == 0
}

// printed is the most bytes that a verb makes of a value.
func printed(v ssa.Value, verb rune) (int64, bool) {
	m, ok := v.(*ssa.MakeInterface)
	if !ok {
		return 0, false
	}
	x := m.X
	if verb == 'T' {
		return int64(len(x.Type().String())), true
	}
	if hasMethods(x.Type()) && strings.ContainsRune("vsqxXw", verb) {
		return 0, false
	}
	b, ok := x.Type().Underlying().(*types.Basic)
	if !ok {
		if p, isPointer := x.Type().Underlying().(*types.Pointer); isPointer && (verb == 'p' || p == nil) {
			return 18, true
		}
		return bytesPrinted(x, verb)
	}
	switch info := b.Info(); {
	case info&types.IsBoolean != 0:
		return 5, true
	case info&types.IsInteger != 0:
		if verb == 'b' {
			return 67, true
		}
		return 24, true
	case info&types.IsFloat != 0:
		return 0, false
	case info&types.IsString != 0:
		return quotedLength(x, verb)
	case b.Kind() == types.UnsafePointer:
		return 18, true
	}
	return 0, false
}

func bytesPrinted(x ssa.Value, verb rune) (int64, bool) {
	s, ok := x.Type().Underlying().(*types.Slice)
	if !ok || !types.Identical(s.Elem().Underlying(), types.Typ[types.Byte]) {
		return 0, false
	}
	if verb == 'v' || verb == 'd' {
		return 0, false
	}
	return quotedLength(x, verb)
}

func quotedLength(x ssa.Value, verb rune) (int64, bool) {
	n, ok := lenUpper(x, 0)
	switch verb {
	case 's', 'v':
		return n, ok
	case 'q':
		return 4*n + 2, ok
	case 'x', 'X':
		return 3*n + 2, ok
	}
	return 0, false
}

// hasMethods says whether fmt may call a method of a type.
func hasMethods(t types.Type) bool {
	set := types.NewMethodSet(t)
	for _, name := range formatMethods {
		if set.Lookup(nil, name) != nil {
			return true
		}
	}
	return false
}

// wrapping is the summary of a function that puts its last argument into its result.
func wrapping(fn *ssa.Function) *flowSummary {
	s := fresh(fn)
	if n := len(s.direct); n > 0 {
		s.direct[n-1], s.shared[n-1], s.loaded[n-1] = resultBit, resultBit, resultBit
	}
	return s
}

// fresh is the summary of one that keeps nothing and makes what it returns.
func fresh(fn *ssa.Function) *flowSummary {
	s := borrowing(fn)
	s.result = 0
	return s
}

// formatSummary: Append returns what it is given, or a longer copy.
func formatSummary(fn *ssa.Function) *flowSummary {
	switch {
	case fn.Name() == "Errorf":
		return wrapping(fn)
	case strings.HasPrefix(fn.Name(), "Append"):
		s := fresh(fn)
		s.direct[0], s.shared[0] = resultBit, resultBit
		return s
	}
	return fresh(fn)
}
