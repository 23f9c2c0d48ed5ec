package packet

import (
	"slices"
	"sync"
)

// all lists the sockets.
var all struct {
	mu   sync.Mutex
	list []*Sock // guarded by mu
}

func register(s *Sock) {
	all.mu.Lock()
	all.list = append(all.list, s)
	all.mu.Unlock()
}

func unregister(s *Sock) {
	all.mu.Lock()
	all.list = slices.DeleteFunc(all.list, func(x *Sock) bool { return x == s })
	all.mu.Unlock()
}

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
	all.mu.Lock()
	list := slices.Clone(all.list)
	all.mu.Unlock()
	for _, s := range list {
		s.mu.Lock()
		i := Info{s.Ino, s.Type, s.num, s.index, s.running, s.used, s.UID}
		s.mu.Unlock()
		fn(i)
	}
}
