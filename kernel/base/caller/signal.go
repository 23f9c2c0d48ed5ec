package caller

import "hardtack/kernel/base/hook"

// OnSignalSelf is how SignalSelf works; kernel/process/proc provides it. Tests may leave it
// unset.
var OnSignalSelf = hook.Default(func(c *Ctx, sig int) {})

// SignalSelf sends the calling thread a signal that its own call causes, before
// the call returns its error: SIGPIPE with EPIPE, SIGXFSZ with EFBIG. The code
// that returns EPIPE calls it (write handlers need not).
func SignalSelf(c *Ctx, sig int) { OnSignalSelf.Call(c, sig) }
