package netlink

import (
	"reflect"
	"slices"
	"sync"
)

// all lists the sockets; all.mu is a leaf.
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

// Info describes a socket for /proc/net/netlink.
type Info struct {
	Ino      uint64
	Protocol int32
	Port     uint32
	Groups   uint32
	Queued   int
}

// Each calls fn for every socket.
func Each(fn func(Info)) {
	all.mu.Lock()
	list := slices.Clone(all.list)
	all.mu.Unlock()
	for _, s := range list {
		fn(Info{s.Ino, s.Protocol, s.port.Load(), uint32(s.groups.Load()), s.in.Used()})
	}
}

// SizeOfSock is what a socket takes, in bytes.
var SizeOfSock = int(reflect.TypeFor[Sock]().Size())
