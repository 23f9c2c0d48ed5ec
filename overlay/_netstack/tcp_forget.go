package tcp

import (
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/waiter"
)

// Forget ends a connection as if its peer had reset it. Nothing is sent: the peer may
// be connected with the machine that this one is a copy of.
func (e *Endpoint) Forget() {
	defer e.drainClosingSegmentQueue()
	e.LockUser()
	defer e.UnlockUser()
	defer e.purgeReadQueue()
	if e.EndpointState().connected() {
		e.resetConnectionLocked(&tcpip.ErrConnectionReset{})
		e.waiterQueue.Notify(waiter.EventHUp | waiter.EventErr | waiter.ReadableEvents | waiter.WritableEvents)
	}
}
