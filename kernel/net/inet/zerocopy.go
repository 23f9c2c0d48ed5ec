package inet

import (
	"sync"

	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/wait"
	"hardtack/kernel/fs/vfs"
	"hardtack/kernel/net/sock"
)

// zeroCopies counts sends with MSG_ZEROCOPY (SO_ZEROCOPY). All are copied, so each is done
// at once; the error queue tells of a whole range of them. mu is a leaf.
type zeroCopies struct {
	mu      sync.Mutex
	next    uint32 // the number of the next send; guarded by mu
	first   uint32 // the first that nobody was told of; guarded by mu
	pending bool   // guarded by mu
}

// zeroBit in TCP.shut says that the socket has zeroCopies.
const zeroBit uint32 = 64

// sendRare is Send with flags that few sends have.
func (s *TCP) sendRare(c *caller.Ctx, f *vfs.File, m *sock.Msg) (int, linux.Errno) {
	nonblock := f.NonBlock() || m.Flags&linux.MSG_DONTWAIT != 0
	if m.Flags&linux.MSG_FASTOPEN != 0 {
		if e := s.connectToSend(c, m, nonblock); e != 0 {
			return 0, e
		}
	}
	if m.Flags&linux.MSG_OOB != 0 && s.ep.Load() != nil && s.far.Load() == nil && s.state.Load() != stFresh {
		return 0, linux.EOPNOTSUPP // netstack has no urgent data
	}
	n, e := s.send(c, m.V, m.Flags, nonblock)
	if e == 0 && n > 0 && m.Flags&linux.MSG_ZEROCOPY != 0 && s.Opt.Has(sock.ZeroCopy) {
		s.shut.Or(zeroBit)
		s.noteZeroCopy()
	}
	return n, e
}

// connectToSend is what MSG_FASTOPEN does first: the data goes behind the handshake.
func (s *TCP) connectToSend(c *caller.Ctx, m *sock.Msg, nonblock bool) linux.Errno {
	switch {
	case m.To != nil && m.To.Len >= 2 && m.To.Family() == linux.AF_UNSPEC:
		return linux.EOPNOTSUPP
	case s.linuxState() != linux.TCP_CLOSE:
		return linux.EISCONN
	case m.To == nil:
		return linux.EINVAL
	}
	return s.Connect(c, m.FS, m.To, nonblock)
}

// noteZeroCopy has the error queue tell of one more send.
func (s *inetSock) noteZeroCopy() {
	z := s.zero.Load()
	if z == nil {
		s.zero.CompareAndSwap(nil, new(zeroCopies))
		z = s.zero.Load()
	}
	z.mu.Lock()
	if !z.pending {
		z.first, z.pending = z.next, true
	}
	z.next++
	z.mu.Unlock()
	s.Q.Notify(wait.Err)
}

// zeroCopied reports whether the error queue has something to tell of sends.
func (s *inetSock) zeroCopied() bool {
	z := s.zero.Load()
	if z == nil {
		return false
	}
	z.mu.Lock()
	defer z.mu.Unlock()
	return z.pending
}

// takeZeroCopies tells of all sends that nobody was told of.
func (s *inetSock) takeZeroCopies(m *sock.Msg) bool {
	const origin, copied = 5, 1 // SO_EE_ORIGIN_ZEROCOPY, SO_EE_CODE_ZEROCOPY_COPIED
	z := s.zero.Load()
	if z == nil {
		return false
	}
	z.mu.Lock()
	defer z.mu.Unlock()
	if !z.pending {
		return false
	}
	z.pending = false
	m.OutFlags |= linux.MSG_ERRQUEUE
	m.HasError, m.Error = true, sock.ExtendedError{Origin: origin, Code: copied, Info: z.first, Data: z.next - 1, V6: s.v6}
	return true
}
