package tcp

// Queued returns about how many bytes of memory the queues of the endpoint take: of what is to
// be sent or acknowledged, of what was received, and, for a listener, of connections that
// nobody has accepted. That includes what segments take beside their data, which is most of it
// where they are short. It waits for no user of the endpoint, who may wait for memory.
func (e *Endpoint) Queued() (toSend, received, unaccepted int64) {
	e.sndQueueInfo.sndQueueMu.Lock()
	toSend = int64(e.sndQueueInfo.SndBufUsed)
	e.sndQueueInfo.sndQueueMu.Unlock()
	toSend += toSend/4 + int64(e.sndSegments.Load())*int64(segmentBytes)
	received = int64(e.receiveMemUsed())
	received += received / 4
	if e.EndpointState() != StateListen {
		return toSend, received, 0
	}
	e.acceptMu.Lock()
	defer e.acceptMu.Unlock()
	if e.acceptQueue == nil {
		return toSend, received, 0
	}
	for x := e.acceptQueue.endpoints.Front(); x != nil; x = x.Next() {
		unaccepted += endpointBytes + int64(x.Value.(*Endpoint).receiveMemUsed())
	}
	return toSend, received, unaccepted
}

// endpointBytes is about what an endpoint takes with what it refers to.
const endpointBytes = 6 << 10
