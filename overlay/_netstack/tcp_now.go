package tcp

// processNow does the work of a processor goroutine in the goroutine that
// received the packet: a hand-over less for each. It reports whether nothing is
// left to do for a processor; where somebody holds the endpoint, there is.
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
	// A user who has the endpoint looks at the queue when letting go of it.
	return e.segmentQueue.empty() || e.isOwnedByUser()
}
