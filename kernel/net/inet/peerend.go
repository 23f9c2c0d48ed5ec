package inet

import (
	"net/netip"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"

	"hardtack/kernel/base/wait"
)

// ResetPeer resets all connections to an address whose machine has ended: those of
// sockets, those that nobody has accepted yet, and those that linger.
func (n *Net) ResetPeer(a netip.Addr) {
	who := tcpip.AddrFromSlice(a.AsSlice())
	for _, s := range n.all.list() {
		t, ok := s.self.(*TCP)
		if !ok {
			continue
		}
		p := t.ep.Load()
		if p == nil {
			continue
		}
		if far, err := p.GetRemoteAddress(); err != nil || far.Addr != who {
			continue
		}
		if t.disconnect() == 0 {
			t.shut.Or(idleRd | idleWr)
			t.Q.Notify(evIn | evOut | wait.Err)
		}
	}
	for _, e := range n.Stack.RegisteredEndpoints() {
		if e, ok := e.(*tcp.Endpoint); ok {
			if far, err := e.GetRemoteAddress(); err == nil && far.Addr == who {
				e.Abort()
			}
		}
	}
	n.forgetTimeWaits(func(far tcpip.Address) bool { return far == who })
}
