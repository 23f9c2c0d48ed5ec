// Package cases is what the tests of maxlive analyse and then run: small functions
// whose heap is known. They return what they leave behind.
package cases

import "strings"

type point struct{ x, y, z int }

type node struct {
	next *node
	_    [3]int
}

type sink interface{ put(any) }

type keeper struct{ held []any }

func (k *keeper) put(v any) { k.held[0] = v }

var (
	kept  any
	bytes = []byte("some bytes that are longer than the buffer on the stack")
)

//go:noinline
func use(any) {}

//go:noinline
func newPoint(x int) *point { return &point{x: x} }

//go:noinline
func newBuffer() []byte { return make([]byte, 1000) }

// New is one object.
//
//go:noinline
func New() any { return &point{1, 2, 3} }

// Stack allocates nothing: what it makes stays on the stack.
//
//go:noinline
func Stack() any {
	p := &point{1, 2, 3}
	q := make([]int, 10)
	q[p.x] = p.y
	return nil
}

// Scratch is an object that its callee returns and that is dead at the end.
//
//go:noinline
func Scratch() any {
	p := newPoint(4)
	p.y = p.x
	return nil
}

// Escaping is an object that goes to a global variable.
//
//go:noinline
func Escaping() any {
	kept = newPoint(1)
	return kept
}

// Branches takes one of two ways.
//
//go:noinline
func Branches() any {
	if len(bytes) > 5 {
		return newPoint(1)
	}
	return newBuffer()
}

// Worst takes the way that needs more.
//
//go:noinline
func Worst() any {
	if len(bytes) > 5 {
		return newBuffer()
	}
	return newPoint(1)
}

// Reuse makes two buffers, one after the other, in callees that forget them.
//
//go:noinline
func Reuse() any {
	n := first()
	n += first()
	return nil
}

//go:noinline
func first() int {
	b := newBuffer()
	return int(b[0]) + len(b)
}

// List is ten objects that refer to each other.
//
//go:noinline
func List() any {
	var head *node
	for range 10 {
		head = &node{next: head}
	}
	return head
}

// Counted counts in another way.
//
//go:noinline
func Counted() any {
	var head *node
	for i := 20; i > 0; i -= 3 {
		head = &node{next: head}
	}
	return head
}

// Array ranges over an array.
//
//go:noinline
func Array() any {
	var ps [12]*point
	for i := range ps {
		ps[i] = newPoint(i)
	}
	return ps[:]
}

// Iterations makes an object in each of its iterations, dead before the next.
//
//go:noinline
func Iterations() any {
	n := 0
	for i := range 100 {
		p := newPoint(i)
		n += p.x
	}
	return nil
}

// Forever has no bound, and needs none.
//
//go:noinline
func Forever() any {
	for i := 0; ; i++ {
		p := newPoint(i)
		if p.x > 5 {
			return nil
		}
	}
}

// Early leaves its loop in the middle.
//
//go:noinline
func Early() any {
	var head *node
	for i := range 10 {
		head = &node{next: head}
		if i == 9 {
			break
		}
	}
	return head
}

// Nested has a loop within a loop.
//
//go:noinline
func Nested() any {
	var head *node
	for range 4 {
		for range 5 {
			head = &node{next: head}
		}
	}
	return head
}

// Grow appends.
//
//go:noinline
func Grow() any {
	var s []*point
	for range 100 {
		s = append(s, nil)
	}
	return s
}

// Two appends twice, once under a condition.
//
//go:noinline
func Two() any {
	s := make([]int64, 0, 2)
	if len(bytes) > 3 {
		s = append(s, 1, 2, 3)
	}
	s = append(s, 4, 5, 6, 7)
	return s
}

// Annotated has a loop whose bound the comment tells.
//
//go:noinline
func Annotated() any {
	var head *node
	//maxlive:loop 55 because bytes is 55 bytes long
	for range bytes {
		head = &node{next: head}
	}
	return head
}

// Length makes a slice as long as the comment tells.
//
//go:noinline
func Length() any {
	return make([]int32, len(bytes)) //maxlive:len 55 because bytes is 55 bytes long
}

// Masked makes a slice whose length cannot be large.
//
//go:noinline
func Masked() any { return make([]int64, len(bytes)&31) }

// Recursive calls itself.
//
//go:noinline
func Recursive() any { return list(8) }

//
//maxlive:recursion 9 because Recursive begins with 8, and it ends below 0
//go:noinline
func list(n int) *node {
	if n < 0 {
		return nil
	}
	return &node{next: list(n - 1)}
}

// Even and odd call each other and allocate nothing.
//
//go:noinline
func Even() any {
	use(even(10))
	return nil
}

//go:noinline
func even(n int) bool { return n == 0 || odd(n-1) }

//go:noinline
func odd(n int) bool { return n != 0 && even(n-1) }

// Map fills a small map.
//
//go:noinline
func Map() any { return map[int]int{1: 2, 3: 4, len(bytes): 5} }

// Table fills a larger one.
//
//go:noinline
func Table() any {
	m := make(map[int]*point)
	for i := range 100 {
		m[i] = nil
	}
	return m
}

// Hint makes a map with room.
//
//go:noinline
func Hint() any { return make(map[int64]int64, 40) }

// Channel makes channels.
//
//go:noinline
func Channel() any { return []any{make(chan int, 10), make(chan *point, 4), make(chan struct{})} }

// Closure returns one, which shares a variable.
//
//go:noinline
func Closure() any {
	n := len(bytes)
	return func() int { n++; return n }
}

// ByValue returns one that has a copy.
//
//go:noinline
func ByValue() any {
	n, m := len(bytes), newPoint(1)
	return func() int { return n + m.x }
}

// Method returns a bound method.
//
//go:noinline
func Method() any {
	k := &keeper{}
	return k.put
}

// Boxed puts values into interfaces.
//
//go:noinline
func Boxed() any { return []any{len(bytes) + 1000, point{1, 2, len(bytes)}, "x" + string(bytes[:3])} }

// Small values need no box.
//
//go:noinline
func Small() any { return bytes[0] }

// Variadic passes arguments that are kept.
//
//go:noinline
func Variadic() any { return collect(newPoint(1), newPoint(2), len(bytes)+1000) }

//go:noinline
func collect(vs ...any) any { return vs }

// Dynamic calls through an interface, which keeps its argument in what it refers to.
//
//go:noinline
func Dynamic() any {
	k := &keeper{held: make([]any, 1)}
	store(k)
	return k
}

//go:noinline
func store(s sink) { s.put(newPoint(3)) }

// Deferred frees nothing until the end.
//
//go:noinline
func Deferred() any {
	for i := range 3 {
		defer use(newPoint(i))
	}
	return nil
}

// Concat joins strings.
//
//go:noinline
func Concat() any {
	s := string(bytes[:40])
	return s + "and a constant"
}

// Builder is of the standard library.
//
//go:noinline
func Builder() any {
	var b strings.Builder
	b.WriteByte('x')
	return b.Len()
}

// Field stores a callee's result where a parameter refers to.
//
//go:noinline
func Field() any {
	var n node
	link(&n)
	return nil
}

//go:noinline
func link(n *node) { n.next = &node{} }

// Large is more than any size class.
//
//go:noinline
func Large() any { return new([40000]byte) }

// Header is an object with pointers that needs a header.
//
//go:noinline
func Header() any { return new([128]*point) }

type pair[T any] struct{ a, b T }

//go:noinline
func newPair[T any](a, b T) *pair[T] { return &pair[T]{a, b} }

//go:noinline
func addressOf[T any](v T) *T { return &v }

// Generic calls generic functions.
//
//go:noinline
func Generic() any {
	p := newPair(len(bytes), 2)
	return &pair[*int]{addressOf(p.a), nil}
}

// Sum joins four strings at once.
//
//go:noinline
func Sum() any {
	s := string(bytes[:40])
	return len(s + "," + s + ";")
}

// Started starts a goroutine.
//
//go:noinline
func Started() any {
	done := make(chan struct{})
	go func() { close(done) }()
	<-done
	return nil
}

// Panics makes much on a way that ends in a panic.
//
//go:noinline
func Panics() any {
	if len(bytes) == 0 {
		panic(string(make([]byte, len(bytes))) + "nothing")
	}
	return newPoint(0)
}
