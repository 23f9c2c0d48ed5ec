package packet

import (
	"hardtack/abi/linux"
	"hardtack/kernel/net/sock"
)

// all lists the sockets.
var all sock.List[*Sock]

// Info describes a socket for /proc/net/packet.
type Info struct {
	Ino      uint64
	Type     int32
	Protocol uint16
	Index    int32
	Running  bool
	Queued   int
	UID      uint32

	Version       int32  // PACKET_VERSION
	Reserve       uint32 // PACKET_RESERVE
	Receive, Send uint32 // sizes of buffers
}

// Each calls fn for each socket.
func Each(fn func(Info)) {
	for _, s := range all.All() {
		s.mu.Lock()
		i := Info{s.Ino, s.Type, s.num, s.index, s.running, s.used, s.UID, s.flags[linux.PACKET_VERSION], uint32(s.flags[linux.PACKET_RESERVE]), uint32(s.Opt.RcvBuf.Load()), uint32(s.Opt.SndBuf.Load())}
		s.mu.Unlock()
		fn(i)
	}
}
