package maxlive

import (
	"go/constant"
	"go/token"
	"go/types"
	"math"

	"golang.org/x/tools/go/ssa"
)

// counter is a variable that each iteration of a loop changes by at least step.
type counter struct {
	phi  *ssa.Phi
	init []ssa.Value
	step int64 // least change, of either sign
}

// counterOf recognises the variable of a condition: v is the header's phi, or the phi
// changed for the next iteration (next).
func counterOf(l *loop, v ssa.Value) (c counter, next, ok bool) {
	if c, ok := counterPhi(l, v); ok {
		return c, false, true
	}
	if b, isOp := v.(*ssa.BinOp); isOp {
		if c, ok := counterPhi(l, b.X); ok {
			if n, isStep := stepOf(c.phi, v, 0); isStep && n == c.step {
				return c, true, true
			}
		}
	}
	return c, false, false
}

func counterPhi(l *loop, v ssa.Value) (c counter, ok bool) {
	phi, ok := v.(*ssa.Phi)
	if !ok || phi.Block() != l.header {
		return c, false
	}
	c.phi = phi
	for i, e := range phi.Edges {
		if !l.blocks[phi.Block().Preds[i]] {
			c.init = append(c.init, e)
			continue
		}
		n, ok := stepOf(phi, e, 0)
		if !ok || n == 0 || c.step != 0 && (n > 0) != (c.step > 0) {
			return c, false
		}
		if c.step == 0 || abs(n) < abs(c.step) {
			c.step = n
		}
	}
	return c, c.step != 0
}

func abs(n int64) int64 { return max(n, -n) }

// stepOf says by how much v is more than the phi, at least: both ways of a branch count.
func stepOf(phi *ssa.Phi, v ssa.Value, depth int) (int64, bool) {
	if v == phi {
		return 0, true
	}
	switch v := v.(type) {
	case *ssa.BinOp:
		k, ok := constOf(v.Y)
		if !ok || v.Op != token.ADD && v.Op != token.SUB || depth > 8 {
			return 0, false
		}
		n, ok := stepOf(phi, v.X, depth+1)
		if v.Op == token.SUB {
			k = -k
		}
		if n != 0 && (n > 0) != (k > 0) {
			return 0, false
		}
		return n + k, ok
	case *ssa.Phi:
		if depth > 8 || v.Block() == phi.Block() {
			return 0, false
		}
		least, found := int64(0), false
		for _, e := range v.Edges {
			n, ok := stepOf(phi, e, depth+1)
			if !ok || n == 0 || found && (n > 0) != (least > 0) {
				return 0, false
			}
			if !found || abs(n) < abs(least) {
				least, found = n, true
			}
		}
		return least, found
	}
	return 0, false
}

func constOf(v ssa.Value) (int64, bool) {
	c, ok := v.(*ssa.Const)
	if !ok || c.Value == nil || c.Value.Kind() != constant.Int {
		return 0, false
	}
	return constant.Int64Val(c.Value)
}

// trips says how often at most a condition of a loop keeps it going; stay is the
// condition's value with which it does.
func trips(l *loop, cond ssa.Value, stay bool) (uint64, bool) {
	op, ok := cond.(*ssa.BinOp)
	if !ok {
		return 0, false
	}
	sign, x, y := op.Op, op.X, op.Y
	if !stay {
		sign = negate[sign]
	}
	c, next, ok := counterOf(l, x)
	if !ok {
		if c, next, ok = counterOf(l, y); !ok {
			return 0, false
		}
		y, sign = x, mirror[sign]
	}
	n, ok := c.count(sign, y)
	if ok && next && n > 0 {
		n-- // the first look is one step ahead
	}
	return n, ok && n < maxTrip
}

var (
	negate = map[token.Token]token.Token{token.LSS: token.GEQ, token.GEQ: token.LSS, token.GTR: token.LEQ, token.LEQ: token.GTR, token.EQL: token.NEQ, token.NEQ: token.EQL}
	mirror = map[token.Token]token.Token{token.LSS: token.GTR, token.GTR: token.LSS, token.LEQ: token.GEQ, token.GEQ: token.LEQ, token.NEQ: token.NEQ}
)

// count is how often "counter sign limit" holds at most.
func (c *counter) count(sign token.Token, limit ssa.Value) (uint64, bool) {
	lo, hi, ok := c.initial()
	if !ok {
		return 0, false
	}
	var distance int64
	switch {
	case c.step > 0 && (sign == token.LSS || sign == token.LEQ):
		top, ok := upper(limit, 0)
		if !ok || lo == math.MinInt64 || top > c.highest(sign) {
			return 0, false
		}
		distance = top - lo
	case c.step < 0 && (sign == token.GTR || sign == token.GEQ):
		bottom, ok := lower(limit, 0)
		if !ok || hi == math.MaxInt64 || bottom < c.lowest(sign) {
			return 0, false
		}
		distance = hi - bottom
	case sign == token.NEQ && abs(c.step) == 1:
		k, ok := constOf(limit)
		if !ok || lo != hi || (k > lo) != (c.step > 0) {
			return 0, false
		}
		return uint64(abs(k - lo)), true
	default:
		return 0, false
	}
	if sign == token.LEQ || sign == token.GEQ {
		distance++
	}
	if distance <= 0 {
		return 0, true
	}
	step := abs(c.step)
	return uint64((distance + step - 1) / step), true
}

// highest is the largest limit at which the counter does not wrap around.
func (c *counter) highest(sign token.Token) int64 {
	if sign == token.LSS {
		return typeMax(c.phi.Type()) - (c.step - 1)
	}
	return typeMax(c.phi.Type()) - c.step
}

// lowest is the smallest such limit of one that falls.
func (c *counter) lowest(sign token.Token) int64 {
	if sign == token.GTR {
		return typeMin(c.phi.Type()) - c.step - 1
	}
	return typeMin(c.phi.Type()) - c.step
}

// initial bounds what the counter begins with.
func (c *counter) initial() (lo, hi int64, ok bool) {
	lo, hi = math.MaxInt64, math.MinInt64
	for _, v := range c.init {
		low, ok := lower(v, 0)
		if !ok {
			low = math.MinInt64
		}
		high, ok := upper(v, 0)
		if !ok {
			high = math.MaxInt64
		}
		lo, hi = min(lo, low), max(hi, high)
	}
	return lo, hi, len(c.init) > 0
}

func isUnsigned(t types.Type) bool {
	b, ok := t.Underlying().(*types.Basic)
	return ok && b.Info()&types.IsUnsigned != 0
}

func width(t types.Type) int {
	b, ok := t.Underlying().(*types.Basic)
	if !ok || b.Info()&types.IsInteger == 0 {
		return 0
	}
	return int(sizes.Sizeof(b)) * 8
}

func typeMax(t types.Type) int64 {
	w := width(t)
	switch {
	case w == 0 || w == 64:
		return math.MaxInt64
	case isUnsigned(t):
		return 1<<w - 1
	}
	return 1<<(w-1) - 1
}

func typeMin(t types.Type) int64 {
	w := width(t)
	switch {
	case isUnsigned(t):
		return 0
	case w == 0 || w == 64:
		return math.MinInt64
	}
	return -1 << (w - 1)
}

const deepest = 6 // how far a bound is looked for

// upper is the most that an integer can be.
func upper(v ssa.Value, depth int) (int64, bool) {
	if n, ok := constOf(v); ok {
		return n, true
	}
	best, known := typeMax(v.Type()), width(v.Type()) > 0 && width(v.Type()) <= 16
	if n, ok := upperOf(v, depth); ok && (!known || n < best) {
		best, known = n, true
	}
	return best, known
}

func upperOf(v ssa.Value, depth int) (int64, bool) {
	if depth > deepest {
		return 0, false
	}
	switch v := v.(type) {
	case *ssa.Convert:
		if width(v.X.Type()) == 0 || width(v.Type()) == 0 {
			return 0, false
		}
		n, ok := upper(v.X, depth+1)
		low, okLow := lower(v.X, depth+1)
		return n, ok && okLow && low >= typeMin(v.Type()) && n <= typeMax(v.Type())
	case *ssa.ChangeType:
		return upper(v.X, depth+1)
	case *ssa.Phi:
		most := int64(math.MinInt64)
		for _, e := range v.Edges {
			n, ok := upper(e, depth+3) // circles end soon
			if !ok {
				return 0, false
			}
			most = max(most, n)
		}
		return most, true
	case *ssa.BinOp:
		return upperBinary(v, depth)
	case *ssa.Call:
		return upperCall(v, depth)
	}
	return 0, false
}

func upperBinary(v *ssa.BinOp, depth int) (int64, bool) {
	x, okX := upper(v.X, depth+1)
	y, okY := upper(v.Y, depth+1)
	lowX, okLowX := lower(v.X, depth+1)
	lowY, okLowY := lower(v.Y, depth+1)
	switch v.Op {
	case token.AND:
		switch {
		case okX && okLowX && lowX >= 0 && okY && okLowY && lowY >= 0:
			return min(x, y), true
		case okY && okLowY && lowY >= 0:
			return y, true
		case okX && okLowX && lowX >= 0:
			return x, true
		}
	case token.REM:
		if okY && okLowY && lowY > 0 {
			return y - 1, true
		}
	case token.QUO:
		if okX && okLowY && lowY > 0 && x >= 0 {
			return x / lowY, true
		}
	case token.SHR:
		if k, ok := constOf(v.Y); ok && okX && x >= 0 && k < 64 {
			return x >> k, true
		}
	case token.ADD:
		if okX && okY && okLowX && okLowY && lowX >= 0 && lowY >= 0 && x < maxTrip && y < maxTrip && x+y <= typeMax(v.Type()) {
			return x + y, true
		}
	case token.SUB:
		if k, ok := constOf(v.Y); ok && okX && k >= 0 && !isUnsigned(v.Type()) {
			return x - k, true
		}
	case token.MUL:
		if okX && okY && okLowX && okLowY && lowX >= 0 && lowY >= 0 && x < 1<<20 && y < 1<<20 && x*y <= typeMax(v.Type()) {
			return x * y, true
		}
	}
	return 0, false
}

func upperCall(v *ssa.Call, depth int) (int64, bool) {
	b, ok := v.Call.Value.(*ssa.Builtin)
	if !ok {
		return 0, false
	}
	switch b.Name() {
	case "len":
		return lenUpper(v.Call.Args[0], depth+1)
	case "cap":
		if a, ok := arrayOf(v.Call.Args[0]); ok {
			return a, true
		}
	case "copy":
		x, okX := lenUpper(v.Call.Args[0], depth+1)
		y, okY := lenUpper(v.Call.Args[1], depth+1)
		if okX && okY {
			return min(x, y), true
		}
		return max(x, y), okX || okY
	case "min":
		best, found := int64(0), false
		for _, a := range v.Call.Args {
			if n, ok := upper(a, depth+1); ok && (!found || n < best) {
				best, found = n, true
			}
		}
		return best, found
	case "max":
		most := int64(math.MinInt64)
		for _, a := range v.Call.Args {
			n, ok := upper(a, depth+1)
			if !ok {
				return 0, false
			}
			most = max(most, n)
		}
		return most, true
	}
	return 0, false
}

// lower is the least that an integer can be.
func lower(v ssa.Value, depth int) (int64, bool) {
	if n, ok := constOf(v); ok {
		return n, true
	}
	if isUnsigned(v.Type()) {
		return 0, true
	}
	if depth > deepest {
		return 0, false
	}
	switch v := v.(type) {
	case *ssa.Call:
		if b, ok := v.Call.Value.(*ssa.Builtin); ok && (b.Name() == "len" || b.Name() == "cap" || b.Name() == "copy") {
			return 0, true
		}
	case *ssa.Convert:
		if n, ok := lower(v.X, depth+1); ok && n >= 0 && width(v.X.Type()) > 0 {
			if top, ok := upper(v.X, depth+1); width(v.X.Type()) < width(v.Type()) || ok && top <= typeMax(v.Type()) {
				return n, true
			}
		}
	case *ssa.BinOp:
		if v.Op == token.AND {
			for _, o := range []ssa.Value{v.X, v.Y} {
				if n, ok := lower(o, depth+1); ok && n >= 0 {
					return 0, true
				}
			}
		}
	case *ssa.Phi:
		if c, ok := risingPhi(v); ok {
			return c, true
		}
	}
	return 0, false
}

// risingPhi is the least value of a variable that begins with a constant and only rises.
func risingPhi(v *ssa.Phi) (int64, bool) {
	if width(v.Type()) != 64 {
		return 0, false // it may wrap around
	}
	least, found := int64(math.MaxInt64), false
	for i, e := range v.Edges {
		if n, ok := constOf(e); ok {
			least, found = min(least, n), true
		} else if n, ok := stepOf(v, e, 0); !ok || n < 0 || !v.Block().Dominates(v.Block().Preds[i]) {
			return 0, false
		}
	}
	return least, found
}

// arrayOf is the length of the array that v points to or slices whole.
func arrayOf(v ssa.Value) (int64, bool) {
	t := v.Type().Underlying()
	if p, ok := t.(*types.Pointer); ok {
		t = p.Elem().Underlying()
	}
	if a, ok := t.(*types.Array); ok {
		return a.Len(), true
	}
	if s, ok := v.(*ssa.Slice); ok {
		return arrayOf(s.X)
	}
	return 0, false
}

// lenUpper is the most elements that a slice, string, array, map or channel can have.
func lenUpper(v ssa.Value, depth int) (int64, bool) {
	if n, ok := arrayOf(v); ok {
		if s, isSlice := v.(*ssa.Slice); isSlice && s.High != nil {
			if h, ok := upper(s.High, depth+1); ok {
				n = min(n, h)
			}
		}
		return n, true
	}
	if depth > deepest {
		return 0, false
	}
	switch v := v.(type) {
	case *ssa.Const:
		if v.Value == nil {
			return 0, true
		}
		if v.Value.Kind() == constant.String {
			return int64(len(constant.StringVal(v.Value))), true
		}
	case *ssa.MakeSlice:
		return upper(v.Len, depth+1)
	case *ssa.Slice:
		if v.High != nil && !isString(v.X.Type()) { // it may reach up to the capacity
			return upper(v.High, depth+1)
		}
		return lenUpper(v.X, depth+1)
	case *ssa.Phi:
		most := int64(0)
		for _, e := range v.Edges {
			n, ok := lenUpper(e, depth+3)
			if !ok {
				return 0, false
			}
			most = max(most, n)
		}
		return most, true
	case *ssa.ChangeType:
		return lenUpper(v.X, depth+1)
	case *ssa.Convert:
		if copies(v) && !isRunes(v.Type()) && !isRunes(v.X.Type()) {
			return lenUpper(v.X, depth+1)
		}
	case *ssa.BinOp:
		x, okX := lenUpper(v.X, depth+1)
		y, okY := lenUpper(v.Y, depth+1)
		return x + y, v.Op == token.ADD && okX && okY && isString(v.Type())
	}
	return 0, false
}

func isRunes(t types.Type) bool {
	s, ok := t.Underlying().(*types.Slice)
	return ok && sizes.Sizeof(s.Elem()) == 4
}
