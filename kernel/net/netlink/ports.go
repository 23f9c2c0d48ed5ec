package netlink

import (
	"encoding/binary"
	"sync"

	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/fs/vfs"
	"hardtack/kernel/net/sock"
)

// address is a port of one protocol.
type address struct {
	protocol int32
	port     uint32
}

// ports is the sockets that have one.
var ports = struct {
	mu   sync.Mutex
	m    map[address]*Sock // guarded by mu
	next uint32            // guarded by mu: where made-up ports go on, downwards
}{m: make(map[address]*Sock), next: ^uint32(0) - 4096}

// find returns the socket with a port, or nil.
func find(protocol int32, port uint32) *Sock {
	ports.mu.Lock()
	defer ports.mu.Unlock()
	return ports.m[address{protocol, port}]
}

// take gives s a port; called with ports.mu held.
func (s *Sock) take(port uint32) linux.Errno {
	key := address{s.Protocol, port}
	if ports.m[key] != nil {
		return linux.EADDRINUSE
	}
	ports.m[key] = s
	a := new(sock.Addr)
	*a = *kernelAddr
	binary.LittleEndian.PutUint32(a.B[4:], port)
	s.name.Store(a)
	s.port.Store(port)
	return 0
}

// autobind takes the process's number or, for its further sockets, one that no process
// has.
func (s *Sock) autobind(c *caller.Ctx) {
	if s.port.Load() != 0 {
		return
	}
	ports.mu.Lock()
	defer ports.mu.Unlock()
	if s.port.Load() != 0 {
		return
	}
	for e := s.take(uint32(c.PID)); e != 0; ports.next-- {
		e = s.take(ports.next)
	}
}

// unbind gives the port back.
func (s *Sock) unbind() {
	ports.mu.Lock()
	if key := (address{s.Protocol, s.port.Load()}); ports.m[key] == s {
		delete(ports.m, key)
	}
	ports.mu.Unlock()
}

// Bind is bind(2). A socket keeps its first port; the groups can be changed.
func (s *Sock) Bind(c *caller.Ctx, _ *vfs.File, _ *vfs.FSContext, a *sock.Addr) linux.Errno {
	if a.Family() != linux.AF_NETLINK || a.Len < linux.SizeofSockaddrNl {
		return linux.EINVAL
	}
	port, groups := binary.LittleEndian.Uint32(a.B[4:]), binary.LittleEndian.Uint32(a.B[8:])
	if port == 0 && s.port.Load() == 0 {
		s.autobind(c)
	} else if e := s.bind(port); e != 0 {
		return e
	}
	for {
		old := s.groups.Load()
		if s.groups.CompareAndSwap(old, old>>32<<32|uint64(groups)) {
			return 0
		}
	}
}

func (s *Sock) bind(port uint32) linux.Errno {
	ports.mu.Lock()
	defer ports.mu.Unlock()
	switch has := s.port.Load(); {
	case has == 0:
		return s.take(port)
	case has != port:
		return linux.EINVAL
	}
	return 0
}
