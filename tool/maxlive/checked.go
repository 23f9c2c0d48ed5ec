package maxlive

import (
	"go/token"
	"math"

	"golang.org/x/tools/go/ssa"
)

// checkedUpper is the most that an integer can be in a block: by what it is made of, or
// by comparisons with constants that the program passes on its way there.
func checkedUpper(v ssa.Value, at *ssa.BasicBlock, depth int) (int64, bool) {
	best, known := upper(v, 0)
	if n, ok := compared(v, at); ok && (!known || n < best) {
		best, known = n, true
	}
	if known || depth > deepest {
		return best, known
	}
	switch v := v.(type) {
	case *ssa.Convert:
		n, ok := checkedUpper(v.X, at, depth+1)
		wider := width(v.Type()) > width(v.X.Type()) || width(v.Type()) == width(v.X.Type()) && isUnsigned(v.X.Type())
		return n, ok && width(v.X.Type()) > 0 && wider && (isUnsigned(v.X.Type()) || !isUnsigned(v.Type()))
	case *ssa.ChangeType:
		return checkedUpper(v.X, at, depth+1)
	case *ssa.BinOp:
		return checkedBinary(v, at, depth)
	}
	return 0, false
}

// checkedBinary is that of an operation with a constant.
func checkedBinary(v *ssa.BinOp, at *ssa.BasicBlock, depth int) (int64, bool) {
	x, y := v.X, v.Y
	if _, ok := constOf(x); ok && (v.Op == token.MUL || v.Op == token.ADD) {
		x, y = y, x
	}
	k, isConst := constOf(y)
	n, ok := checkedUpper(x, at, depth+1)
	if !ok || !isConst || n > math.MaxInt32 || k < 0 || k > math.MaxInt32 || width(v.Type()) < 64 {
		return 0, false
	}
	switch v.Op {
	case token.MUL:
		return n * k, true
	case token.ADD:
		return n + k, true
	case token.SUB:
		return n, !isUnsigned(v.Type())
	case token.QUO:
		return n, k > 0
	case token.SHL:
		return n << min(k, 31), k < 31
	}
	return 0, false
}

// compared is the least constant that v was found not to be above of.
func compared(v ssa.Value, at *ssa.BasicBlock) (best int64, known bool) {
	for b := at; b != nil; b = b.Idom() {
		d := b.Idom()
		if d == nil || len(b.Preds) != 1 || b.Preds[0] != d {
			continue
		}
		cond, ok := d.Instrs[len(d.Instrs)-1].(*ssa.If)
		if !ok || d.Succs[0] == d.Succs[1] {
			continue
		}
		op, ok := cond.Cond.(*ssa.BinOp)
		if !ok {
			continue
		}
		sign, x, y := op.Op, op.X, op.Y
		if b == d.Succs[1] {
			sign = negate[sign]
		}
		if y == v {
			x, y, sign = y, x, mirror[sign]
		}
		n, isConst := constOf(y)
		if x != v || !isConst {
			continue
		}
		switch sign {
		case token.LSS:
			n--
		case token.LEQ, token.EQL:
		default:
			continue
		}
		if !known || n < best {
			best, known = n, true
		}
	}
	return best, known
}
