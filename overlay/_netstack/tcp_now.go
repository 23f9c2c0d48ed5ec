package tcp

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
