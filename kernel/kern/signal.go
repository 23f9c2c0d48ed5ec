package kern

// sendSelf is kernel/proc's; tests may leave it unset.
var sendSelf func(c *Ctx, sig int)

// OnSignalSelf says how SignalSelf works; called once at start.
func OnSignalSelf(fn func(c *Ctx, sig int)) { sendSelf = fn }

// SignalSelf sends the calling thread a signal that its own call causes, before
// the call returns its error: SIGPIPE with EPIPE, SIGXFSZ with EFBIG. The code
// that returns EPIPE calls it (write handlers need not).
func SignalSelf(c *Ctx, sig int) {
	if sendSelf != nil {
		sendSelf(c, sig)
	}
}
