package netif

import (
	"fmt"
	"net/netip"
	"strings"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
)

// Settings are an interface's addresses and what belongs to them.
type Settings struct {
	Address  netip.Prefix // with the host part
	Router   netip.Addr   // the zero Addr for none
	DNS      []netip.Addr
	Domain   string
	Hostname string
}

// ResolvConf returns the text of /etc/resolv.conf.
func (s Settings) ResolvConf() []byte {
	var b strings.Builder
	if s.Domain != "" {
		fmt.Fprintf(&b, "search %s\n", s.Domain)
	}
	for _, a := range s.DNS {
		fmt.Fprintf(&b, "nameserver %s\n", a)
	}
	return []byte(b.String())
}

func address(a netip.Addr) tcpip.Address { return tcpip.AddrFromSlice(a.AsSlice()) }

// Apply gives the interface its address and routes, instead of what it had.
func (l *Link) Apply(s Settings) error {
	want := tcpip.AddressWithPrefix{Address: address(s.Address.Addr()), PrefixLen: s.Address.Bits()}
	have := false
	for _, a := range l.net.Addresses(l.index) {
		switch {
		case a == want:
			have = true
		case a.Address.Len() == want.Address.Len():
			l.net.Stack.RemoveAddress(tcpip.NICID(l.index), a.Address)
		}
	}
	if !have {
		if err := l.net.AddAddress(l.index, want.Address, want.PrefixLen); err != nil {
			return stackError{err}
		}
	}
	l.setOwn(want)
	nic := tcpip.NICID(l.index)
	l.net.Stack.RemoveRoutes(func(r tcpip.Route) bool {
		return r.NIC == nic && r.Destination.ID().Len() == want.Address.Len()
	})
	l.net.Stack.AddRoute(tcpip.Route{Destination: want.Subnet(), NIC: nic})
	if s.Router.IsValid() {
		all := header.IPv4EmptySubnet
		if s.Router.Is6() {
			all = header.IPv6EmptySubnet
		}
		l.net.Stack.AddRoute(tcpip.Route{Destination: all, Gateway: address(s.Router), NIC: nic})
	}
	return nil
}

// Index returns the interface's index.
func (l *Link) Index() int32 { return l.index }
