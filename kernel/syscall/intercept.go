package syscall

import (
	"sync/atomic"

	"hardtack/abi/linux"
	"hardtack/kernel/process/proc"
)

// Interceptor carries out a call in place of its handler.
type Interceptor func(t *proc.Thread, a *Args, nr int, handler Handler) (uint64, linux.Errno)

// interceptor is what intercepted handlers call; it stays when interception ends, for calls
// that are under way.
var interceptor atomic.Pointer[Interceptor]

// intercepted are the handlers for DoIntercepted.
var intercepted [TableSize]Handler

func fillIntercepted() {
	for i := range intercepted {
		intercepted[i] = func(t *proc.Thread, a *Args) (uint64, linux.Errno) {
			return (*interceptor.Load())(t, a, i, handlers[i])
		}
	}
}

// Intercept has f called in place of the handlers of the calls that DoIntercepted carries out;
// proc.SetTracing says of whom. It is for one caller at a time.
func Intercept(f Interceptor) { interceptor.Store(&f) }

// DoIntercepted is Do for threads whose calls are intercepted.
func DoIntercepted(t *proc.Thread) {
	u := &t.User.Regs
	nr := uint64(uint32(u.RAX))
	if nr >= TableSize || interceptor.Load() == nil {
		Do(t)
		return
	}
	t.SetCallNumber(nr)
	a := (*Args)(&t.Args)
	a[0], a[1], a[2], a[3], a[4], a[5] = u.RDI, u.RSI, u.RDX, u.R10, u.R8, u.R9
	c := &counters[uint32(t.TID)%shards][nr]
	if n := c.calls.Add(1); n%proc.SampleEvery == 0 {
		doSampled(t, a, nr, c, &intercepted)
		return
	}
	v, e := intercepted[nr](t, a)
	if e != 0 {
		finishError(t, e, &intercepted)
		return
	}
	u.RAX = v
}
