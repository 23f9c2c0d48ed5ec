package netlink

import (
	"reflect"

	"hardtack/kernel/net/sock"
)

// all lists the sockets.
var all sock.List[*Sock]

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
	for _, s := range all.All() {
		fn(Info{s.Ino, s.Protocol, s.port.Load(), uint32(s.groups.Load()), s.in.Used()})
	}
}

// SizeOfSock is what a socket takes, in bytes.
var SizeOfSock = int(reflect.TypeFor[Sock]().Size())
