package inet

import (
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/stack"

	"hardtack/kernel/base/settings"
)

// NonlocalBind has every socket be bound as with IP_FREEBIND: net.ipv4.ip_nonlocal_bind
// and that of IPv6.
var NonlocalBind4, NonlocalBind6 settings.Setting

// bindAnywhere is netstack's bind, which knows only addresses of this machine, for sockets
// that may be bound to others too (IP_FREEBIND, IP_TRANSPARENT): such a one hears of
// packets once the machine has the address. Called with Net.binding held.
func (s *inetSock) bindAnywhere(fa tcpip.FullAddress, bind func(tcpip.FullAddress) tcpip.Error) tcpip.Error {
	err := bind(fa)
	_, foreign := err.(*tcpip.ErrBadLocalAddress)
	a := unmap(fa.Addr)
	switch {
	case foreign && header.IsV4MulticastAddress(a): // any socket may; of IPv4 netstack checks only the interface, if there is one
		fa.NIC = LoopbackNIC
		return bind(fa)
	case !foreign || fa.NIC != 0 || !s.freeBind.Load() && !nonlocal(a) || header.IsV6MulticastAddress(a):
		return err
	}
	// netstack looks at the address while it binds only.
	p := tcpip.ProtocolAddress{Protocol: protocolOf(a), AddressWithPrefix: a.WithPrefix()}
	nic := tcpip.NICID(s.net.wayOut(a))
	if e := s.net.Stack.AddProtocolAddress(nic, p, stack.AddressProperties{PEB: stack.NeverPrimaryEndpoint}); e != nil {
		return err
	}
	defer s.net.Stack.RemoveAddress(nic, a)
	return bind(fa)
}

func nonlocal(a tcpip.Address) bool {
	if a.Len() == 4 {
		return NonlocalBind4.Get() != 0
	}
	return NonlocalBind6.Get() != 0
}

// wayOut returns the interface that packets to an address leave by, or lo.
func (n *Net) wayOut(a tcpip.Address) int32 {
	r, err := n.Stack.FindRoute(0, tcpip.Address{}, a, protocolOf(a), false)
	if err != nil {
		return LoopbackNIC
	}
	defer r.Release()
	return int32(r.NICID())
}
