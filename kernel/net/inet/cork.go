package inet

import (
	"sync"
	"sync/atomic"

	"gvisor.dev/gvisor/pkg/tcpip"

	"hardtack/abi/linux"
	"hardtack/kernel/base/accounts"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/uio"
	"hardtack/kernel/net/sock"
)

// cork collects a datagram of UDP that several sends make up (MSG_MORE,
// UDP_CORK). The lock order is cork.mu, then netstack's.
type cork struct {
	busy atomic.Bool // on, or a datagram has been begun; written with mu held

	mu   sync.Mutex
	on   bool               // UDP_CORK; guarded by mu
	open bool               // a datagram has been begun; guarded by mu
	data []byte             // its bytes so far; guarded by mu
	opts tcpip.WriteOptions // those of its first send; guarded by mu
}

// maxUDP is the most that one datagram carries over IPv4.
const maxUDP = 65535 - 20 - 8

// sendPart adds v to the datagram that was begun, or begins one; without more
// and without UDP_CORK it sends it. An error throws it away.
func (s *Datagram) sendPart(c *caller.Ctx, v *uio.Vec, o tcpip.WriteOptions, nonblock, more bool) (int, linux.Errno) {
	k := &s.cork
	k.mu.Lock()
	if o.To == nil && !k.open {
		if _, err := s.ep.Load().GetRemoteAddress(); err != nil {
			k.mu.Unlock()
			return 0, linux.EDESTADDRREQ
		}
	}
	n, e := k.add(s.user, v, o)
	if e != 0 {
		k.take(s.user)
	}
	if e != 0 || more || k.on {
		k.mu.Unlock()
		return n, e
	}
	data, opts := k.take(s.user)
	k.mu.Unlock()
	if _, e := s.sendWhole(c, uio.Bytes(data), opts, nonblock); e != 0 {
		return 0, e
	}
	return n, 0
}

// add copies v behind what there is; called with mu held.
func (k *cork) add(u *accounts.User, v *uio.Vec, o tcpip.WriteOptions) (int, linux.Errno) {
	n, was := v.Len(), len(k.data)
	if was+n > maxUDP {
		return 0, linux.EMSGSIZE
	}
	if !sock.RingBytes.Charge(u, int64(n)) {
		return 0, linux.ENOBUFS
	}
	if !k.open {
		k.open, k.opts = true, o
		k.busy.Store(true)
	}
	k.data = append(k.data, make([]byte, n)...)
	if _, e := v.CopyIn(k.data[was:]); e != 0 {
		return 0, e
	}
	return n, 0
}

// take ends the datagram that was begun; called with mu held.
func (k *cork) take(u *accounts.User) ([]byte, tcpip.WriteOptions) {
	data, o := k.data, k.opts
	sock.RingBytes.Release(u, int64(len(data)))
	k.data, k.opts, k.open = nil, tcpip.WriteOptions{}, false
	k.busy.Store(k.on)
	return data, o
}

// setCork is UDP_CORK: to switch it off sends what was collected.
func (s *Datagram) setCork(c *caller.Ctx, on bool) linux.Errno {
	k := &s.cork
	k.mu.Lock()
	k.on = on
	open := k.open
	if on || !open {
		k.busy.Store(on || open)
		k.mu.Unlock()
		return 0
	}
	data, o := k.take(s.user)
	k.mu.Unlock()
	_, e := s.sendWhole(c, uio.Bytes(data), o, true)
	return e
}

// drop throws away what was collected: the socket is closed.
func (k *cork) drop(u *accounts.User) {
	k.mu.Lock()
	k.take(u)
	k.mu.Unlock()
}

// getCork answers getsockopt for UDP_CORK.
func (s *Datagram) getCork(val []byte) (int, linux.Errno) {
	s.cork.mu.Lock()
	defer s.cork.mu.Unlock()
	if s.cork.on {
		return sock.PutInt(val, 1), 0
	}
	return sock.PutInt(val, 0), 0
}
