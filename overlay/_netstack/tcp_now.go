package tcp

import (
	"runtime"

	"hardtack/arch/amd64"
)

// processNow does a processor goroutine's work in the goroutine that received the
// packet, which saves a hand-over per packet. It reports whether nothing is left for the
// processor. While the endpoint is locked, there is work left.
//
// +checklocksexclude:e.mu
func (e *Endpoint) processNow() bool {
	switch state := e.EndpointState(); {
	case state.connecting():
		handleConnecting(e)
	case state == StateTimeWait:
		handleTimeWait(e)
	case state.connected():
		handleConnected(e)
	case state == StateListen:
		handleListen(e)
	default:
		return false
	}
	// Whoever holds the endpoint checks the queue when releasing it.
	return e.segmentQueue.empty() || e.isOwnedByUser()
}

// letHolder lets whoever has an endpoint go on, before a processor tries it again: it may wait
// for this CPU, or for its turn if it was given the lock. The PAUSE has an emulator that runs
// one CPU at a time go on to the holder's.
func letHolder() {
	amd64.Pause()
	runtime.Gosched()
}
