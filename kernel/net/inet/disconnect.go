package inet

import (
	"hardtack/abi/linux"
	"hardtack/kernel/base/wait"
)

// disconnect is connect to AF_UNSPEC: the connection is reset and the socket can be used
// again. It keeps the port that bind was asked for.
func (s *TCP) disconnect() linux.Errno {
	switch s.state.Load() {
	case stFresh:
		s.shut.And(^(idleRd | idleWr))
		return 0
	case stListening:
		s.unlisten()
		return 0
	case stLate:
		s.giveUp(0)
		s.NoteError(linux.ECONNRESET)
		return 0
	}
	if s.shut.Load()&deferredBit != 0 {
		s.undefer()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch s.state.Load() {
	case stConnecting, stRemote:
		s.disconnectRemote()
	case stLocal:
		s.disconnectLocal()
	default:
		return 0 // another thread did it
	}
	s.Q.Notify(evIn | evOut | wait.Hup)
	return 0
}

// disconnectRemote resets a connection of netstack; called with mu held.
func (s *TCP) disconnectRemote() {
	p := s.ep.Swap(nil)
	own, err := p.GetLocalAddress()
	s.state.Store(stFresh)
	p.Abort()
	p.wq.EventUnregister(&p.entry)
	s.NoteError(linux.ECONNRESET)
	if err == nil && s.bindPort {
		if q, e := s.endpoint(); e == 0 {
			q.Bind(own)
		}
	}
}

// disconnectLocal resets a connection within the machine. A writer at the other end may
// still hold this end, whose flow stays closed for that reason: the next connection goes
// through netstack. Called with mu held.
func (s *TCP) disconnectLocal() {
	x := s.far.Load()
	s.state.Store(stFresh)
	s.spent.Store(true)
	s.NoteError(linux.ECONNRESET)
	s.closeLocal(x, true)
	s.begun = false
	s.far.Store(nil)
}
