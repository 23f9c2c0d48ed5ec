package msg

import (
	"context"
	"fmt"
	"reflect"
)

// Mistakes of the program that uses the package panic, and say what to do.

// made panics for a Conn that nobody has made. Methods on the hot path get here by
// attnMade, which such a Conn has not.
func (c *Conn) made(method string) {
	if c == nil || c.attn.Load()&attnMade == 0 {
		panic("msg: " + method + " a Conn that is nil or zero: get one from Connect, Accept, Pair or Adopt")
	}
}

// made panics for a Server that nobody has made.
func (s *Server) made(method string) {
	if s == nil || s.done == nil {
		panic("msg: " + method + " of a Server that is nil or zero: get one from Export")
	}
}

// needContext panics if ctx is nil.
func needContext(ctx context.Context, method string) {
	if ctx == nil {
		panic("msg: " + method + " with a nil Context: use context.Background() if nothing should end it")
	}
}

// needValue panics if what a program gave as an interface is a nil pointer in it,
// which no comparison with nil shows.
func needValue(v any, what string) {
	switch r := reflect.ValueOf(v); r.Kind() {
	case reflect.Pointer, reflect.Func, reflect.Map, reflect.Chan, reflect.Slice:
		if r.IsNil() {
			panic(fmt.Sprintf("msg: the %s is a nil %T: give one that was made, or nothing", what, v))
		}
	}
}
