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

// Parse reads settings from the kernel's command line:
//
//	dhcp
//	10.0.2.15/24[,gw=10.0.2.2][,dns=10.0.2.3]…[,domain=example.org]
func Parse(text string) (s Settings, dhcp bool, err error) {
	if text == "dhcp" {
		return s, true, nil
	}
	for i, field := range strings.Split(text, ",") {
		if i == 0 {
			if s.Address, err = netip.ParsePrefix(field); err != nil {
				return s, false, fmt.Errorf("network address %q: %w", field, err)
			}
			continue
		}
		key, value, _ := strings.Cut(field, "=")
		switch key {
		case "gw":
			s.Router, err = netip.ParseAddr(value)
		case "dns":
			var a netip.Addr
			a, err = netip.ParseAddr(value)
			s.DNS = append(s.DNS, a)
		case "domain":
			s.Domain = value
		default:
			err = fmt.Errorf("unknown word")
		}
		if err != nil {
			return s, false, fmt.Errorf("network setting %q: %w", field, err)
		}
	}
	return s, false, nil
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

// Apply gives the interface its address and routes, in place of what it had.
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
