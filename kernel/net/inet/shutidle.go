package inet

import (
	"hardtack/abi/linux"
	"hardtack/kernel/base/wait"
)

// Shutdown of a TCP socket that has no connection fails, and yet poll and recv see it
// from then on, until the socket has a connection or lets one go.

// Bits of TCP.shut: what was shut down while there was no connection.
const (
	idleRd uint32 = 128
	idleWr uint32 = 256
)

// shutIdle is shutdown of a socket without a connection.
func (s *TCP) shutIdle(how int32) {
	bits := idleRd | idleWr
	switch how {
	case linux.SHUT_RD:
		bits = idleRd
	case linux.SHUT_WR:
		bits = idleWr
	}
	s.shut.Or(bits)
	s.Q.Notify(evIn | evOut | wait.RdHup | wait.Hup)
}

// notConnected is how recv of a socket without a connection ends.
func (s *TCP) notConnected() (eof bool, e linux.Errno) {
	if s.state.Load() != stFresh && s.state.Load() != stClosed {
		return false, linux.ENOTCONN
	}
	if e := s.TakeError(); e != 0 {
		return false, e
	}
	if s.shut.Load()&idleRd != 0 {
		return true, 0
	}
	return false, linux.ENOTCONN
}
