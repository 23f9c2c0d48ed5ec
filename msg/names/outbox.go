package names

import "sync"

// outbox is what a connection's writer has yet to send. Three kinds go in:
// answers to requests, for which the connection's own reader waits when there
// are too many (answer); answers to waits, whose number is bounded by the waits
// (put); and events, which are refused when too many wait (event).
type outbox struct {
	mu     sync.Mutex
	moved  sync.Cond // answers were taken, or it was closed
	queue  []packet
	events int // of those in queue
	closed bool
	kick   chan struct{} // capacity 1: something is in queue, or it was closed
}

// keepQueue is how many packets a queue has room for when it is idle: 5 KiB.
const keepQueue = 64

func newOutbox() *outbox {
	o := &outbox{kick: make(chan struct{}, 1)}
	o.moved.L = &o.mu
	return o
}

// put queues an answer and never waits.
func (o *outbox) put(p packet) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.add(p)
}

// answer queues an answer, after waiting for the peer to read earlier ones.
func (o *outbox) answer(p packet) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for len(o.queue)-o.events >= maxConnAnswers && !o.closed {
		o.moved.Wait()
	}
	o.add(p)
}

// event queues an event, or says that too many are waiting.
func (o *outbox) event(p packet) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.events >= maxConnEvents {
		return false
	}
	o.events++
	o.add(p)
	return true
}

// add needs mu.
func (o *outbox) add(p packet) {
	if o.closed {
		return
	}
	o.queue = append(o.queue, p)
	o.wake()
}

func (o *outbox) wake() {
	select {
	case o.kick <- struct{}{}:
	default:
	}
}

// take gives the writer all that is queued, instead of the batch it has sent,
// and nil when the outbox is closed. It waits for something to be there.
func (o *outbox) take(sent []packet) []packet {
	clear(sent)
	if cap(sent) > keepQueue {
		sent = nil // the memory of a burst goes back
	}
	for {
		o.mu.Lock()
		if len(o.queue) > 0 || o.closed {
			batch := o.queue
			if o.closed && len(batch) == 0 {
				batch = nil
			}
			o.queue = sent[:0]
			o.events = 0
			o.moved.Broadcast()
			o.mu.Unlock()
			return batch
		}
		o.mu.Unlock()
		<-o.kick
	}
}

// close lets the writer finish what is queued; nothing more is taken in.
func (o *outbox) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	o.moved.Broadcast()
	o.wake()
}
