package maxlive

import (
	"go/ast"
	"go/token"
	"go/types"
	"strings"

	"golang.org/x/tools/go/ssa"
)

var sizes = types.SizesFor("gc", "amd64")

// site is an instruction that may allocate.
type site struct {
	instr ssa.Instruction
	size  Vector
	// stack says that it is the compiler's escape analysis that decided for the heap:
	// where the function is inlined it may decide otherwise.
	stack bool
	chain *chain // of an append: its size is charged once for all, where the slice begins
	need  string // what must be known for a bound and is not
}

const (
	smallBuffer    = 32       // the stack buffer of strings and slices that do not escape
	largestOnStack = 64 << 10 // what is larger may be moved to the heap for its size
)

// sites finds what the instruction allocates itself; calls are not sites.
func (f *function) sites() []site {
	var out []site
	for _, b := range f.fn.Blocks {
		if f.doomed[b] {
			continue
		}
		for _, in := range b.Instrs {
			s := site{instr: in}
			if f.site(&s) {
				out = append(out, s)
			}
		}
	}
	return out
}

func (f *function) site(s *site) bool {
	switch in := s.instr.(type) {
	case *ssa.Alloc:
		return f.alloc(s, in)
	case *ssa.MakeSlice:
		f.makeSlice(s, in)
	case *ssa.MakeMap:
		f.makeMap(s, in)
	case *ssa.MapUpdate:
		return f.mapUpdate(s, in)
	case *ssa.MakeChan:
		f.makeChan(s, in)
	case *ssa.MakeClosure:
		return f.closure(s, in)
	case *ssa.MakeInterface:
		return f.makeInterface(s, in)
	case *ssa.BinOp:
		return isString(in.Type()) && in.Op == token.ADD && f.concat(s, in)
	case *ssa.Convert:
		return copies(in) && f.conversion(s, in)
	case *ssa.Defer:
		return f.deferred(s, in)
	case *ssa.Go:
		f.goroutine(s, in)
	case *ssa.Send, *ssa.Select:
		s.size = f.a.sudogs(in)
	case *ssa.UnOp:
		if in.Op != token.ARROW {
			return false
		}
		s.size = f.a.sudogs(in)
	case *ssa.Call:
		if _, _, ok := f.extends(in); ok {
			return f.appended(s, in)
		}
		return false
	default:
		return false
	}
	return s.need != "" || !s.size.zero()
}

func (f *function) object(t types.Type) Vector {
	return f.a.classes.object(uint64(sizes.Sizeof(t)), hasPointers(t), 1)
}

// alloc is a variable, a composite literal, new, or the array of a slice.
func (f *function) alloc(s *site, in *ssa.Alloc) bool {
	t := in.Type().Underlying().(*types.Pointer).Elem()
	s.stack = true
	s.size = f.object(t)
	if s.size.zero() || !in.Heap && s.size.Total() <= largestOnStack {
		return false
	}
	e, pos := f.a.esc, f.a.position(in.Pos())
	switch in.Comment {
	case "complit":
		return e.onHeap(pos.Filename, pos.Line, pos.Line, f.columns(in.Pos()), isPointer)
	case "slicelit":
		return e.onHeap(pos.Filename, pos.Line, pos.Line, f.columns(in.Pos()), isLiteral)
	case "makeslice":
		return e.onHeap(pos.Filename, pos.Line, pos.Line, f.columns(in.Pos()), isMake)
	case "new":
		return e.onHeap(pos.Filename, pos.Line, pos.Line, f.columns(in.Pos()), isNew)
	case "varargs":
		if appendsOnly(in) {
			return false
		}
		file, first, last := f.span(in)
		return e.onHeap(file, first, last, nil, isVariadic)
	}
	if !in.Pos().IsValid() || isInstance(f.fn) {
		return true // the compiler may never have looked at it
	}
	return e.variable(pos.Filename, pos.Line, pos.Column, in.Comment)
}

// isInstance: made of a generic function, or within one that is.
func isInstance(fn *ssa.Function) bool {
	for ; fn != nil; fn = fn.Parent() {
		if fn.Origin() != nil && fn.Origin() != fn {
			return true
		}
	}
	return false
}

// appendsOnly: the elements that append is given are not a slice of their own.
func appendsOnly(in *ssa.Alloc) bool {
	for _, r := range *in.Referrers() {
		s, ok := r.(*ssa.Slice)
		if !ok {
			continue
		}
		for _, r := range *s.Referrers() {
			c, ok := r.(*ssa.Call)
			if !ok {
				return false
			}
			if b, ok := c.Call.Value.(*ssa.Builtin); !ok || b.Name() != "append" {
				return false
			}
		}
	}
	return true
}

// columns are where the compiler may place what go/ssa places at pos.
func (f *function) columns(pos token.Pos) map[line][]int {
	out := map[line][]int{}
	note := func(p token.Pos) {
		at := f.a.position(p)
		out[line{at.Filename, at.Line}] = append(out[line{at.Filename, at.Line}], at.Column)
	}
	note(pos)
	if amp, ok := f.a.ampersands[pos]; ok {
		note(amp)
	}
	return out
}

// span is the file and the lines of an instruction, by its own position, its operands'
// and those of what uses it.
func (f *function) span(in ssa.Instruction) (file string, first, last int) {
	note := func(pos token.Pos) {
		if !pos.IsValid() {
			return
		}
		p := f.a.position(pos)
		if file == "" {
			file, first, last = p.Filename, p.Line, p.Line
		}
		if p.Filename == file {
			first, last = min(first, p.Line), max(last, p.Line)
		}
	}
	note(in.Pos())
	if m, ok := in.(*ssa.MakeInterface); ok {
		note(m.X.Pos())
	}
	if v, ok := in.(ssa.Value); ok {
		f.uses(v, 0, note)
	}
	return file, first, last
}

// uses notes where a value is used; a slice that is made only for a call counts as it.
func (f *function) uses(v ssa.Value, depth int, note func(token.Pos)) {
	refs := v.Referrers()
	if refs == nil || depth > 3 {
		return
	}
	for _, r := range *refs {
		note(r.Pos())
		switch r := r.(type) {
		case *ssa.Slice:
			f.uses(r, depth+1, note)
		case *ssa.Store:
			if a, ok := r.Addr.(*ssa.IndexAddr); ok && r.Val == v {
				if arr, ok := a.X.(*ssa.Alloc); ok && arr.Comment == "varargs" {
					f.uses(arr, depth+1, note)
				}
			}
		}
	}
}

// count bounds a number of elements: derived, or annotated on the line of pos.
func (f *function) count(s *site, what string, pos token.Pos, derived int64, ok bool) uint64 {
	if ok && derived >= 0 && derived <= maxBytes {
		f.a.notes.find("len", f.a.position(pos))
		return uint64(derived)
	}
	if n, ok := f.a.notes.bound("len", f.a.position(pos)); ok {
		return n
	}
	s.need = what
	return 0
}

func (f *function) makeSlice(s *site, in *ssa.MakeSlice) {
	elem := in.Type().Underlying().(*types.Slice).Elem()
	top, ok := checkedUpper(in.Cap, in.Block(), 0)
	n := f.count(s, "make of a slice of unknown length", in.Pos(), top, ok)
	s.size = f.a.classes.object(satMul(uint64(sizes.Sizeof(elem)), n), hasPointers(elem), 1)
}

func (f *function) makeChan(s *site, in *ssa.MakeChan) {
	elem := in.Type().Underlying().(*types.Chan).Elem()
	top, ok := upper(in.Size, 0)
	n := f.count(s, "make of a channel of unknown length", in.Pos(), top, ok)
	header, buffer := f.a.runtimeSize("hchan"), satMul(uint64(sizes.Sizeof(elem)), n)
	if !hasPointers(elem) || buffer == 0 {
		s.size = f.a.classes.object(header+buffer, false, 1)
		return
	}
	s.size = f.a.classes.object(header, true, 1)
	b := f.a.classes.object(buffer, true, 1)
	s.size.add(&b)
}

// closure is a function literal with its variables, or a method bound to its receiver.
func (f *function) closure(s *site, in *ssa.MakeClosure) bool {
	s.stack = true
	method, bound := strings.CutSuffix(in.Fn.Name(), "$bound")
	n := uint64(8)
	for _, b := range in.Bindings {
		size := sizes.Sizeof(b.Type())
		if p, ok := b.Type().Underlying().(*types.Pointer); ok && !bound {
			// A variable: by reference, or a copy of what it holds.
			if v := sizes.Sizeof(p.Elem()); v <= 128 {
				size = v
			}
		}
		n += uint64(max(size, 8)+7) &^ 7
	}
	s.size = f.a.classes.object(n, true, 1)
	if isGo(in) {
		s.stack = false
		return true
	}
	file, _, last := f.span(in)
	pos := f.a.position(in.Pos())
	if bound {
		return f.a.esc.onHeap(file, pos.Line, last, nil, func(w string) bool { return strings.HasSuffix(w, "."+method) })
	}
	return f.a.esc.onHeap(file, pos.Line, pos.Line, f.columns(in.Pos()), isFuncLit)
}

func isGo(v ssa.Value) bool {
	for _, r := range *v.Referrers() {
		if _, ok := r.(*ssa.Go); ok {
			return true
		}
	}
	return false
}

// makeInterface is the copy of a value that is not a pointer.
func (f *function) makeInterface(s *site, in *ssa.MakeInterface) bool {
	t := in.X.Type()
	if _, isConst := in.X.(*ssa.Const); isConst || pointerShaped(t) {
		return false
	}
	size := sizes.Sizeof(t)
	if b, ok := t.Underlying().(*types.Basic); ok && size == 1 && b.Info()&(types.IsInteger|types.IsBoolean) != 0 {
		return false // the runtime has all of them
	}
	s.stack = true
	if s.size = f.object(t); s.size.zero() {
		return false
	}
	file, first, last := f.span(in)
	if file == "" {
		return true
	}
	return f.a.esc.onHeap(file, first, last, nil, isAny)
}

// pointerShaped says whether an interface holds values of a type without a copy.
func pointerShaped(t types.Type) bool {
	switch t := t.Underlying().(type) {
	case *types.Pointer, *types.Chan, *types.Map, *types.Signature, *types.Interface:
		return true
	case *types.Basic:
		return t.Kind() == types.UnsafePointer || t.Kind() == types.UntypedNil
	case *types.Struct:
		return t.NumFields() == 1 && pointerShaped(t.Field(0).Type())
	case *types.Array:
		return t.Len() == 1 && pointerShaped(t.Elem())
	}
	return false
}

// concat is a sum of strings; a sum within a sum is one step of it.
func (f *function) concat(s *site, in *ssa.BinOp) bool {
	if refs := *in.Referrers(); len(refs) == 1 {
		if b, ok := refs[0].(*ssa.BinOp); ok && b.Op == token.ADD {
			return false
		}
	}
	top, ok := lenUpper(in, 0)
	n := f.count(s, "sum of strings of unknown length", in.Pos(), top, ok)
	s.size = f.a.classes.object(n, false, 1)
	return s.need != "" || n > 0 && !f.small(in, n, isConcat)
}

// small says that a string or slice stays in its function's stack buffer.
func (f *function) small(in ssa.Instruction, n uint64, is shape) bool {
	file, first, last := f.span(in)
	return n <= smallBuffer && file != "" && !f.a.esc.onHeap(file, first, last, nil, is)
}

// conversion is one between strings and slices of bytes or runes.
func (f *function) conversion(s *site, in *ssa.Convert) bool {
	if f.onlyCompared(in) {
		return false
	}
	var top int64
	ok := true
	width := uint64(1)
	switch {
	case !isString(in.Type()) && isRunes(in.Type()):
		top, ok = lenUpper(in.X, 0)
		width = 4
	case isString(in.Type()) && isRunes(in.X.Type()):
		top, ok = lenUpper(in.X, 0)
		top *= 4
	case isString(in.Type()) && !isSlice(in.X.Type()):
		top = 4 // one rune
	default:
		top, ok = lenUpper(in.X, 0)
	}
	n := f.count(s, "conversion of a string of unknown length", in.Pos(), top, ok)
	s.size = f.a.classes.object(satMul(n, width), false, 1)
	return s.need != "" || n > 0 && !f.small(in, n*width, isAny)
}

func isSlice(t types.Type) bool { _, ok := t.Underlying().(*types.Slice); return ok }

// onlyCompared: the compiler makes no copy for a comparison or a look into a map.
func (f *function) onlyCompared(in *ssa.Convert) bool {
	if !isString(in.Type()) || !isSlice(in.X.Type()) || len(*in.Referrers()) != 1 {
		return false
	}
	switch r := (*in.Referrers())[0].(type) {
	case *ssa.Lookup:
		return r.Index == in
	case *ssa.BinOp:
		return r.Op != token.ADD
	}
	return false
}

// deferred is a defer's record, which is on the heap only in a loop, with the closure of
// its arguments.
func (f *function) deferred(s *site, in *ssa.Defer) bool {
	if f.byBlock[in.Block()] == nil {
		return false
	}
	s.size = f.a.classes.object(f.a.runtimeSize("_defer"), true, 1)
	c := f.wrapper(&in.Call)
	s.size.add(&c)
	return true
}

// wrapper is the closure that the compiler makes for a call with arguments.
func (f *function) wrapper(c *ssa.CallCommon) Vector {
	n := uint64(8)
	for _, v := range arguments(c) {
		n += uint64(max(sizes.Sizeof(v.Type()), 8)+7) &^ 7
	}
	if !c.IsInvoke() && c.StaticCallee() == nil {
		n += 8
	}
	if n == 8 {
		return Vector{}
	}
	return f.a.classes.object(n, true, 1)
}

// goroutine is a goroutine's record, its stack, and the closure of its arguments.
func (f *function) goroutine(s *site, in *ssa.Go) {
	s.size = f.a.classes.object(f.a.runtimeSize("g"), true, 1)
	v := stack(f.a.cfg.Stack)
	s.size.add(&v)
	c := f.wrapper(&in.Call)
	s.size.add(&c)
}

// ampersands finds for each composite literal whose address is taken where that is.
func ampersands(files []*ast.File) map[token.Pos]token.Pos {
	out := map[token.Pos]token.Pos{}
	for _, f := range files {
		ast.Inspect(f, func(n ast.Node) bool {
			if u, ok := n.(*ast.UnaryExpr); ok && u.Op == token.AND {
				if lit, ok := ast.Unparen(u.X).(*ast.CompositeLit); ok {
					out[lit.Lbrace] = u.OpPos
				}
			}
			return true
		})
	}
	return out
}
