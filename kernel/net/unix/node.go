package unix

import (
	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/creds"
	"hardtack/kernel/fs/vfs"
)

// makeNode creates a name in the file system; called with s.mu held.
func makeNode(c *caller.Ctx, fs *vfs.FSContext, path string, s *Sock) linux.Errno {
	if fs == nil {
		return linux.EINVAL
	}
	p, e := vfs.BindSocket(c, fs, path, s.Mode(), s)
	if e == 0 {
		s.place = p
	}
	return e
}

// findNode returns the socket that a name belongs to, or nil.
func findNode(c *caller.Ctx, fs *vfs.FSContext, path string) (*Sock, linux.Errno) {
	if fs == nil {
		return nil, linux.EINVAL
	}
	v, e := vfs.FindSocket(c, fs, path)
	if e != 0 {
		return nil, e
	}
	s, _ := v.(*Sock)
	return s, 0
}

// OpenName opens the node of the socket's name, as O_PATH does (SIOCUNIXFILE).
func (s *Sock) OpenName(c *caller.Ctx) (*vfs.File, linux.Errno) {
	if !c.Cred().Has(creds.CapNetAdmin) {
		return nil, linux.EPERM
	}
	s.mu.Lock()
	p := s.place
	s.mu.Unlock()
	if p.Zero() {
		return nil, linux.ENOENT
	}
	return vfs.OpenPlace(p)
}
