package tcp

import (
	"sync"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip/seqnum"
)

// Delayed acknowledgements (RFC 1122, 4.2.3.2). The stack acknowledges all data at once,
// although the program's answer a moment later carries an acknowledgement anyway: half
// of the frames of a request and its answer were bare acknowledgements. Here the ACK for
// less than two segments of in-order data waits, for at most ackDelay, for a segment
// that is sent anyway.
//
// Lock order: Endpoint.mu, delayedAcks.mu.

// ackDelay is half of Linux's delay. The answers that matter here come within a
// millisecond, or later on a loaded machine.
const ackDelay = 20 * time.Millisecond

// delayedAcks holds the endpoints that may owe an acknowledgement.
type delayedAcks struct {
	mu    sync.Mutex
	owe   []*Endpoint // guarded by mu; those with ackDelayed set, each once
	spare []*Endpoint // guarded by mu; memory of an empty list
	armed bool        // guarded by mu; flush is scheduled
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

// flush sends the outstanding acknowledgements: none waits longer than ackDelay.
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
