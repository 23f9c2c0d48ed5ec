// Package flows is what the tests of maxlive analyse and then run: ways in which objects
// come to outlive the function that makes them.
package flows

type object struct {
	p *object
	n [4]int
	s []*object
}

var ext = []byte("0123456789")

//go:noinline
func mk() *object { return &object{} }

// Captured has a closure write the variable that it returns.
//
//go:noinline
func Captured() any {
	var x *object
	f := func() { x = mk() }
	call(f)
	return x
}

//go:noinline
func call(f func()) { f() }

// Alias stores through an alias.
//
//go:noinline
func Alias() any {
	a := &object{}
	b := a
	c := &b
	(*c).p = mk()
	return a
}

// CarriedInClosure builds a list in a closure's variable.
//
//go:noinline
func CarriedInClosure() any {
	var head *object
	add := func() { t := mk(); t.p = head; head = t }
	for range 7 {
		add()
	}
	return head
}

// Sent leaves objects in a channel.
//
//go:noinline
func Sent() any {
	ch := make(chan *object, 3)
	for range 3 {
		ch <- mk()
	}
	return ch
}

// OutParameter has a callee store where a parameter points to.
//
//go:noinline
func OutParameter() any {
	t := mk()
	fill(&t.p)
	return t
}

//go:noinline
func fill(pp **object) { *pp = mk() }

// Slices makes slices of slices.
//
//go:noinline
func Slices() any {
	var out [][]*object
	for range 4 {
		var in []*object
		for range 3 {
			in = append(in, mk())
		}
		out = append(out, in)
	}
	return out
}

// Swapped carries objects round a loop in two variables.
//
//go:noinline
func Swapped() any {
	a, b := mk(), mk()
	for range 5 {
		a, b = b, a
		a.p = mk()
	}
	return [2]*object{a, b}
}

// Copied moves objects out of an iteration by copy.
//
//go:noinline
func Copied() any {
	out := make([]*object, 6)
	for i := range 6 {
		tmp := []*object{mk()}
		copy(out[i:], tmp)
	}
	return out
}

// Closures keeps closures, each with a variable of its iteration.
//
//go:noinline
func Closures() any {
	var fs [5]func() int
	for i := range 5 {
		fs[i] = func() int { i++; return i }
	}
	return fs[:]
}

type setter interface{ set(*object) }

func (t *object) set(u *object) { t.s = append(t.s[:0], u) } //maxlive:len 1 because one is put

// Receiver has a method keep its argument in its receiver.
//
//go:noinline
func Receiver() any {
	t := mk()
	var s setter = t
	for range 3 {
		s.set(mk())
	}
	return t
}

// NamedResult is set by a deferred call.
//
//go:noinline
func NamedResult() (r any) {
	defer func() { r = mk() }()
	return nil
}

// RangeOverFunc carries objects from one call of the body to the next.
//
//go:noinline
func RangeOverFunc() any {
	var head *object
	for i := range seq {
		t := mk()
		t.n[0] = i
		t.p = head
		head = t
	}
	return head
}

func seq(yield func(int) bool) {
	for i := range 6 {
		if !yield(i) {
			return
		}
	}
}

// MapValues keeps objects in a map.
//
//go:noinline
func MapValues() any {
	m := map[int]*object{}
	for i := range 5 {
		m[i+len(ext)] = mk()
	}
	return m
}

type value struct{ t *object }

// Boxed passes a pointer in a structure in an interface.
//
//go:noinline
func Boxed() any {
	v := value{mk()}
	var x any = v
	return wrap(x)
}

//go:noinline
func wrap(x any) any { return []any{x, len(ext) * 1000} }

// Sometimes appends under conditions.
//
//go:noinline
func Sometimes() any {
	var s []int64
	if len(ext) > 20 {
		s = append(s, 1)
	}
	for range 9 {
		if len(ext) > 5 {
			s = append(s, 2, 3)
		}
	}
	return s
}

// All are the functions by name.
var All = map[string]func() any{
	"Captured":         Captured,
	"Alias":            Alias,
	"CarriedInClosure": CarriedInClosure,
	"Sent":             Sent,
	"OutParameter":     OutParameter,
	"Slices":           Slices,
	"Swapped":          Swapped,
	"Copied":           Copied,
	"Closures":         Closures,
	"Receiver":         Receiver,
	"NamedResult":      NamedResult,
	"RangeOverFunc":    RangeOverFunc,
	"MapValues":        MapValues,
	"Boxed":            Boxed,
	"Sometimes":        Sometimes,
}
