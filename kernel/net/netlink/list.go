package netlink

import (
	"reflect"

	"hardtack/kernel/net/sock"
)

// all lists the sockets.
var all sock.List[*Sock]

// Info describes a socket for /proc/net/netlink.
type Info struct {
	Ino           uint64
	Type          int32
	Protocol      int32
	Port          uint32
	Groups        uint32
	Queued        int
	Receive, Send uint32 // sizes of buffers
}

// Each calls fn for every socket.
func Each(fn func(Info)) {
	for _, s := range all.All() {
		fn(Info{s.Ino, s.Type, s.Protocol, s.port.Load(), uint32(s.groups.Load()), s.in.Used(), uint32(s.Opt.RcvBuf.Load()), uint32(s.Opt.SndBuf.Load())})
	}
}

// SizeOfSock is what a socket takes, in bytes.
var SizeOfSock = int(reflect.TypeFor[Sock]().Size())
