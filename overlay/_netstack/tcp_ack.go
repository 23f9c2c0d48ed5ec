package tcp

import (
	"sync"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip/seqnum"
)

// Delayed acknowledgements (RFC 1122, 4.2.3.2). The stack acknowledges all data
// at once, though the program's answer, a moment later, carries the
// acknowledgement for nothing: half of the frames of a request and its answer
// were such. So the ACK for less than two segments' data in order waits for a
// segment that goes out anyway, for at most ackDelay.
//
// Lock order: Endpoint.mu, delayedAcks.mu.

// ackDelay is half of what Linux takes: the answers meant here come within a
// millisecond, on a loaded machine later.
const ackDelay = 20 * time.Millisecond

// delayedAcks are the endpoints that may owe an acknowledgement.
type delayedAcks struct {
	mu    sync.Mutex
	owe   []*Endpoint // guarded by mu; each once: those with ackDelayed
	spare []*Endpoint // guarded by mu: an empty list's memory
	armed bool        // guarded by mu: flush will come
}

// delayAck reports whether the acknowledgement that is due may wait.
//
// +checklocks:e.mu
func (e *Endpoint) delayAck() bool {
	two := 2 * seqnum.Size(e.amss)
	if e.EndpointState() != StateEstablished || len(e.rcv.pendingRcvdSegments) != 0 ||
		e.snd.MaxSentAck.Size(e.rcv.RcvNxt) >= two || e.rcv.currentWindow() < two {
		return false
	}
	if e.ackDelayed {
		return true
	}
	e.ackDelayed = true
	d := &e.protocol.delayed
	d.mu.Lock()
	d.owe = append(d.owe, e)
	arm := !d.armed
	d.armed = true
	d.mu.Unlock()
	if arm {
		e.stack.Clock().AfterFunc(ackDelay, d.flush)
	}
	return true
}

// flush sends what is still owed; nothing waits longer than ackDelay.
func (d *delayedAcks) flush() {
	d.mu.Lock()
	owe := d.owe
	d.owe, d.spare, d.armed = d.spare[:0], nil, false
	d.mu.Unlock()
	for i, e := range owe {
		e.LockUser()
		e.ackDelayed = false
		if e.EndpointState().connected() && e.rcv.RcvNxt != e.snd.MaxSentAck {
			e.snd.sendAck()
		}
		e.UnlockUser()
		owe[i] = nil
	}
	d.mu.Lock()
	d.spare = owe[:0]
	d.mu.Unlock()
}
