package packet

import "hardtack/kernel/net/sock"

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
}

// Each calls fn for each socket.
func Each(fn func(Info)) {
	for _, s := range all.All() {
		s.mu.Lock()
		i := Info{s.Ino, s.Type, s.num, s.index, s.running, s.used, s.UID}
		s.mu.Unlock()
		fn(i)
	}
}
