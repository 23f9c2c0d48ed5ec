package syscall

import (
	"sync/atomic"

	"hardtack/abi/linux"
	"hardtack/kernel/process/proc"
)

// Interceptor carries out a call in place of its handler.
type Interceptor func(t *proc.Thread, a *Args, nr int, handler Handler) (uint64, linux.Errno)

// InterceptAll says that the interceptor is called for all processes, and not only for those
// with a mark (proc.Process.Traced).
var InterceptAll atomic.Bool

// interceptor is what intercepted handlers call; it stays when interception ends, for calls
// that are under way.
var interceptor Interceptor

// originals are the handlers without interception, intercepted the same with it. Both are
// filled by the first Intercept.
var originals, intercepted [TableSize]Handler

// Intercept has f called in place of the handlers of marked processes, or of all, until it is called with nil. Without it
// calls take the path that they always take. It is for one caller at a time.
func Intercept(f Interceptor) {
	if f == nil {
		for i := range handlers {
			setHandler(&handlers[i], originals[i])
		}
		return
	}
	interceptor = f
	for i := range handlers {
		if intercepted[i] == nil {
			h := handlers[i]
			originals[i] = h
			intercepted[i] = func(t *proc.Thread, a *Args) (uint64, linux.Errno) {
				if t.Proc.Traced.Load() == 0 && !InterceptAll.Load() {
					return h(t, a)
				}
				return interceptor(t, a, i, h)
			}
		}
		setHandler(&handlers[i], intercepted[i])
	}
}
