// Package graph is what the tests of maxlive analyse and then run: calls whose targets
// only a narrow call graph distinguishes. Each has a neighbour of the same type that
// allocates a page; the bound of none may have it.
package graph

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
)

type small struct{ a, b, c int }

type page [4096]byte

func newSmall() any { return &small{1, 2, 3} }
func newPage() any  { return new(page) }

var (
	smallHooks = []func() any{newSmall}
	pageHooks  = []func() any{newPage}
	smallHook  = newSmall
	pageHook   = newPage
	smallTable = map[string]func() any{"a": newSmall}
	pageTable  = map[string]func() any{"a": newPage}
	smallPool  = sync.Pool{New: func() any { return new(small) }}
	pagePool   = &sync.Pool{New: func() any { return new(page) }}
	smallOnce  = sync.OnceValue(func() *small { return new(small) })
	pageOnce   = sync.OnceValue(func() *small { kept = new(page); return new(small) })
	kept       any //lint:ignore U1000 what is stored in it stays
	text       = "a text whose length nobody tells"
)

type struct1 struct{ hook func() any }
type struct2 struct{ hook func() any }

var (
	one = &struct1{newSmall}
	two = struct2{newPage}
)

type maker interface{ make() any }
type smallMaker struct{}
type pageMaker struct{}

func (smallMaker) make() any { return newSmall() }
func (pageMaker) make() any  { return newPage() }

func (*small) String() string { return "small" }
func (*page) String() string  { kept = new(page); return "page" }

//go:noinline
func call(f func() any) any { return f() }

//go:noinline
func callTwice(f func() any) any { call(f); return call(f) }

//go:noinline
func ask(m maker) any { return m.make() }

//go:noinline
func wrap(f func() any) func() any { return func() any { return f() } }

// Neighbours reach what the other cases must not: it is no case itself.
func Neighbours() {
	pageHooks[0]()
	pageHook()
	pageTable["a"]()
	pagePool.Put(pagePool.Get())
	pageOnce()
	two.hook()
	callTwice(newPage)
	ask(pageMaker{})
	wrap(newPage)()
	kept = fmt.Sprint(new(page))
	io.Copy(new(pageWriter), strings.NewReader("x"))
}

// Slice is a hook in a slice: by the variable.
//
//go:noinline
func Slice() any { return smallHooks[0]() }

// Variable is a hook in a variable.
//
//go:noinline
func Variable() any { return smallHook() }

// Map is a function in a map.
//
//go:noinline
func Map() any { return smallTable["a"]() }

// Field is a function in a field: by the struct's type.
//
//go:noinline
func Field() any { return one.hook() }

// Pool is a pool's New: by the variable that the pool is.
//
//go:noinline
func Pool() any { return smallPool.Get() }

// Once is what runs once.
//
//go:noinline
func Once() any { return smallOnce() }

// Argument is a function that a function is given, and hands on.
//
//go:noinline
func Argument() any { return callTwice(newSmall) }

// Interface is a type that a function is given.
//
//go:noinline
func Interface() any { return ask(smallMaker{}) }

// Made is a closure over a function: by where it is made.
//
//go:noinline
func Made() any { return call(func() any { return call(newSmall) }) }

// Sorted sorts with a function that allocates nothing; other sorts do.
//
//go:noinline
func Sorted() any {
	s := []int{3, 1, 2}
	slices.SortFunc(s, func(a, b int) int { return a - b })
	return nil
}

// Printed is a text of numbers and constants.
//
//go:noinline
func Printed() any { return fmt.Sprintf("%d and %x: %s", len(text), 255, "constant") }

// Stringer is a text from a method.
//
//go:noinline
func Stringer() any {
	return fmt.Sprint(new(small)) //maxlive:len 5 because String says so
}

// Number appends numbers to a slice of its own.
//
//go:noinline
func Number() any {
	b := make([]byte, 0, 4)
	b = strconv.AppendInt(b, int64(len(text)), 10)
	return strconv.AppendUint(b, 7, 10)
}

// Clone is a copy of a text.
//
//go:noinline
func Clone() any {
	return strings.Clone(text) //maxlive:len 32 because the text above is as long
}

// Removed takes elements out of a slice that is not its own.
//
//go:noinline
func Removed() any {
	numbers = slices.Delete(numbers, 0, 1)
	i := len(numbers) - 1
	numbers = append(numbers[:i], numbers[i+1:]...)
	numbers = append(numbers, 0, 0) //maxlive:same because two were taken out
	return nil
}

var numbers = make([]int, 1000, 2000)

type pageWriter struct{}

func (*pageWriter) Write(b []byte) (int, error) { kept = new(page); return len(b), nil }

// reserved is a point: what it needs is its own.
//
//maxlive:point because the test says so
//go:noinline
func reserved() { kept = new(page) }

//go:noinline
func checked(n int32) any {
	if n < 0 || n > 100 {
		return nil
	}
	return make([]byte, 8*int(n)+8)
}

// Checked is a length that was compared with a constant.
//
//go:noinline
func Checked() any { return checked(100) }

// Pointed calls a point.
//
//go:noinline
func Pointed() any { reserved(); return newSmall() }

// hook is a function that another package provides.
type hook[F any] struct {
	call F
	set  bool
}

func (h *hook[F]) provide(f F) { h.call, h.set = f, true }

func standard[F any](f F) hook[F] { return hook[F]{call: f} }

var (
	smallProvided hook[func() any]
	pageProvided  hook[func() any]
	smallStandard = standard(newSmall)
	pageStandard  = standard(newPage)
)

func init() {
	smallProvided.provide(newSmall)
	pageProvided.provide(newPage)
}

func Provided() any { return smallProvided.call() }

func Standard() any { _ = pageStandard.set; return smallStandard.call() }

//go:noinline
func ifAny(take func() any) any {
	if take != nil {
		return take()
	}
	return nil
}

func Nobody() any { return ifAny(nil) }
