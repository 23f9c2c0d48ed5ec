package unix

import (
	"sync"

	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/fs/vfs"
	"hardtack/kernel/net/sock"
)

// abstract holds the names that are not in the file system. Sockets of another
// type may have the same name.
var abstract = struct {
	mu   sync.Mutex
	m    map[abstractName]*Sock // guarded by mu
	next uint32                 // guarded by mu: where autobind goes on
}{m: make(map[abstractName]*Sock)}

type abstractName struct {
	typ  int32
	name string // the bytes behind the family
}

// pathOf returns the name in an address: a path, or an abstract name with its
// leading NUL; autobind asks for a name to be made up.
func pathOf(a *sock.Addr) (name string, isAbstract, autobind bool, e linux.Errno) {
	b := a.Bytes()
	if a.Family() != linux.AF_UNIX || len(b) > linux.SizeofSockaddrUn {
		return "", false, false, linux.EINVAL
	}
	b = b[2:]
	switch {
	case len(b) == 0:
		return "", false, true, 0
	case b[0] == 0:
		return string(b), true, false, 0
	}
	for i, x := range b {
		if x == 0 {
			b = b[:i]
			break
		}
	}
	return string(b), false, false, 0
}

// Bind is bind(2).
func (s *Sock) Bind(c *caller.Ctx, _ *vfs.File, fs *vfs.FSContext, a *sock.Addr) linux.Errno {
	name, isAbstract, auto, e := pathOf(a)
	if e != 0 {
		return e
	}
	if auto {
		if s.name.Load() != nil {
			return 0
		}
		return s.autobind()
	}
	// The lock makes a second bind wait, then fail.
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.name.Load() != nil || s.state.Load() == stClosed {
		if !isAbstract && fs != nil { // Linux makes the name first
			if _, e := vfs.Lookup(c, fs, nil, name, 0); e == 0 {
				return linux.EADDRINUSE
			}
		}
		return linux.EINVAL
	}
	kept := new(sock.Addr)
	if isAbstract {
		kept.Set(a.Bytes())
		abstract.mu.Lock()
		defer abstract.mu.Unlock()
		key := abstractName{s.Type, name}
		if abstract.m[key] != nil {
			return linux.EADDRINUSE
		}
		abstract.m[key] = s
	} else {
		if e := makeNode(c, fs, name, s); e != 0 {
			if e == linux.EEXIST {
				e = linux.EADDRINUSE
			}
			return e
		}
		kept.Set(append(append([]byte{linux.AF_UNIX, 0}, name...), 0))
	}
	s.name.Store(kept)
	return 0
}

// autobind takes a free abstract name of five hexadecimal digits.
func (s *Sock) autobind() linux.Errno {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.name.Load() != nil {
		return 0
	}
	abstract.mu.Lock()
	defer abstract.mu.Unlock()
	for i := 0; i < 1<<20; i++ {
		abstract.next = (abstract.next + 1) & 0xfffff
		b := [8]byte{linux.AF_UNIX, 0, 0}
		for d := 0; d < 5; d++ {
			b[7-d] = "0123456789abcdef"[abstract.next>>(4*d)&15]
		}
		if key := (abstractName{s.Type, string(b[2:])}); abstract.m[key] == nil {
			abstract.m[key] = s
			kept := new(sock.Addr)
			kept.Set(b[:])
			s.name.Store(kept)
			return 0
		}
	}
	return linux.ENOSPC
}

// unname takes an abstract name back; a name in the file system stays until it
// is unlinked.
func (s *Sock) unname() {
	a := s.name.Load()
	if a == nil || a.Len < 3 || a.B[2] != 0 {
		return
	}
	key := abstractName{s.Type, string(a.B[2:a.Len])}
	abstract.mu.Lock()
	if abstract.m[key] == s { // accepted sockets share the listener's name
		delete(abstract.m, key)
	}
	abstract.mu.Unlock()
}

// find returns the socket of s's type with a name.
func (s *Sock) find(c *caller.Ctx, fs *vfs.FSContext, a *sock.Addr) (*Sock, linux.Errno) {
	name, isAbstract, auto, e := pathOf(a)
	if e != 0 {
		return nil, e
	}
	if auto {
		return nil, linux.EINVAL
	}
	var x *Sock
	if isAbstract {
		abstract.mu.Lock()
		x = abstract.m[abstractName{s.Type, name}]
		abstract.mu.Unlock()
	} else if x, e = findNode(c, fs, name); e != 0 {
		return nil, e
	}
	switch {
	case x == nil || x.state.Load() == stClosed:
		return nil, linux.ECONNREFUSED
	case x.Type != s.Type:
		return nil, linux.EPROTOTYPE
	}
	return x, 0
}

// LocalAddr is getsockname(2).
func (s *Sock) LocalAddr(a *sock.Addr) linux.Errno {
	s.putName(a)
	return 0
}

// PeerAddr is getpeername(2).
func (s *Sock) PeerAddr(a *sock.Addr) linux.Errno {
	p := s.peer.Load()
	if p == nil {
		return linux.ENOTCONN
	}
	p.putName(a)
	return 0
}

func (s *Sock) putName(a *sock.Addr) {
	if n := s.name.Load(); n != nil {
		*a = *n
		return
	}
	a.Set([]byte{linux.AF_UNIX, 0})
}
