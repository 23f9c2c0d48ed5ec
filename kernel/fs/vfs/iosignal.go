package vfs

import (
	"sync"

	"hardtack/kernel/base/wait"
)

// ioSignal is a signal that is to be sent to the owner of an open file.
type ioSignal struct {
	a   *Async
	fd  int32       // the descriptor of F_NOTIFY; -1 for O_ASYNC's
	ev  wait.Events // what happened
	dir bool        // F_NOTIFY asked for it
}

// maxIOSignals bounds the signals of one open file that wait to be sent. Their receiver
// learns of the events beyond by those.
const maxIOSignals = 16

// ioSignals is the signals that wait to be sent. Events come with locks held, so one
// goroutine sends the signals, in order. It exists only while there are some: an event
// of a file that many have open makes no goroutine for each.
var ioSignals struct {
	mu      sync.Mutex
	list    []ioSignal // guarded by mu
	sending bool       // there is the goroutine; guarded by mu
}

// post has a signal sent soon.
func (s ioSignal) post() {
	q := &ioSignals
	q.mu.Lock()
	defer q.mu.Unlock()
	if s.a.waiting == maxIOSignals {
		return
	}
	s.a.waiting++
	q.list = append(q.list, s)
	if !q.sending {
		q.sending = true
		go sendIOSignals()
	}
}

// sendIOSignals sends until none is left.
func sendIOSignals() {
	q := &ioSignals
	for {
		q.mu.Lock()
		list := q.list
		q.list = nil
		for _, s := range list {
			s.a.waiting--
		}
		q.sending = len(list) > 0
		q.mu.Unlock()
		if len(list) == 0 {
			return
		}
		for _, s := range list {
			s.send()
		}
	}
}

// send sends the signal, unless the file has been changed so that none is due.
func (s ioSignal) send() {
	a := s.a
	a.mu.Lock()
	o, sig, fd, on := a.owner, a.sig, a.fd, a.queue != nil
	a.mu.Unlock()
	if s.dir {
		fd, on = s.fd, true
	}
	if on && o.ID != 0 && SignalIO.Call != nil {
		SignalIO.Call(o, sig, fd, s.ev)
	}
}
