package tcp

// Queued returns how many bytes wait in the endpoint: to be sent or acknowledged, and, for
// a listener, in connections that nobody has accepted. It waits for no user of the
// endpoint, who may wait for memory.
func (e *Endpoint) Queued() (toSend, unaccepted int64) {
	e.sndQueueInfo.sndQueueMu.Lock()
	toSend = int64(e.sndQueueInfo.SndBufUsed)
	e.sndQueueInfo.sndQueueMu.Unlock()
	if e.EndpointState() != StateListen {
		return toSend, 0
	}
	e.acceptMu.Lock()
	defer e.acceptMu.Unlock()
	for x := e.acceptQueue.endpoints.Front(); x != nil; x = x.Next() {
		unaccepted += endpointBytes + int64(x.Value.(*Endpoint).receiveMemUsed())
	}
	return toSend, unaccepted
}

// endpointBytes is about what an endpoint takes with what it refers to.
const endpointBytes = 6 << 10
