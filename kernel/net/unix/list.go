package unix

import (
	"reflect"
	"sync"

	"hardtack/abi/linux"
)

// all lists the sockets, for /proc/net/unix.
var all list

type list struct {
	mu    sync.Mutex
	first *Sock // guarded by mu
}

func (l *list) add(s *Sock) {
	l.mu.Lock()
	if s.next = l.first; s.next != nil {
		s.next.prev = s
	}
	l.first = s
	l.mu.Unlock()
}

// list returns the sockets.
func (l *list) list() (all []*Sock) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for s := l.first; s != nil; s = s.next {
		all = append(all, s)
	}
	return all
}

// remove takes a socket out; a second time does nothing.
func (l *list) remove(s *Sock) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case s.prev != nil:
		s.prev.next = s.next
	case l.first == s:
		l.first = s.next
	default:
		return
	}
	if s.next != nil {
		s.next.prev = s.prev
	}
	s.next, s.prev = nil, nil
}

// Info describes a socket for /proc/net/unix.
type Info struct {
	Ino             uint64
	Type            int32
	Listening, Conn bool
	Name            string // with a leading NUL if abstract; "" for none
}

// Each calls fn for every socket.
func Each(fn func(Info)) {
	all.mu.Lock()
	var infos []Info
	for s := all.first; s != nil; s = s.next {
		i := Info{Ino: s.Ino, Type: s.Type, Listening: s.state.Load() == stListening, Conn: s.state.Load() == stConnected}
		if a := s.name.Load(); a != nil && a.Len > 2 {
			i.Name = string(a.B[2:a.Len])
			if i.Name[0] != 0 && a.Len < linux.SizeofSockaddrUn {
				i.Name = i.Name[:len(i.Name)-1] // without the NUL
			}
		}
		infos = append(infos, i)
	}
	all.mu.Unlock()
	for _, i := range infos {
		fn(i)
	}
}

// Diag is what NETLINK_SOCK_DIAG tells of a socket.
type Diag struct {
	Ino, Peer        uint64 // Peer is 0 for none
	Type             int32
	State            int    // TCP_*
	Name             []byte // sun_path; nil for none
	Inode            uint64 // the node of a name in the file system
	Dev              uint64
	Pending          []uint64 // of a listener: the sockets that wait to be accepted
	RxQueue, TxQueue int
	Shut             uint8
	UID              uint32
}

// Diagnose calls fn for every socket.
func Diagnose(fn func(*Diag)) {
	for _, s := range all.list() {
		d := s.diag()
		fn(&d)
	}
}

func (s *Sock) diag() Diag {
	d := Diag{Ino: s.Ino, Type: s.Type, State: linux.TCP_CLOSE, UID: s.UID, Shut: uint8(s.shut.Load())}
	if a := s.name.Load(); a != nil && a.Len > 2 {
		d.Name = a.B[2:a.Len]
	}
	s.mu.Lock()
	if !s.place.Zero() {
		i := s.place.Dentry.Inode
		d.Inode, d.Dev = i.Ino, i.FS.Dev
	}
	backlog := s.backlog
	for _, x := range s.pending {
		ino := uint64(0)
		if y := x.peer.Load(); y != nil {
			ino = y.Ino
		}
		d.Pending = append(d.Pending, ino)
	}
	s.mu.Unlock()
	if s.state.Load() == stListening {
		d.State, d.RxQueue, d.TxQueue = linux.TCP_LISTEN, len(d.Pending), backlog
		return d
	}
	d.RxQueue = s.in.Used()
	if s.dgram() {
		d.RxQueue = s.in.NextLen()
	}
	if p := s.peer.Load(); p != nil {
		d.State, d.Peer = linux.TCP_ESTABLISHED, p.Ino
		if !s.dgram() {
			d.TxQueue = p.in.Used()
		}
	}
	return d
}

// SizeOfSock is what a socket takes, in bytes.
var SizeOfSock = int(reflect.TypeFor[Sock]().Size())
