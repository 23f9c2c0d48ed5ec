package inet

import (
	"slices"

	"gvisor.dev/gvisor/pkg/tcpip"

	"hardtack/abi/linux"
)

// Addresses that programs change (netlink, ioctl).

// AddressNote is what netstack does not keep of an address.
type AddressNote struct {
	Label        string // IFA_LABEL; empty for the interface's name
	Broadcast    tcpip.Address
	HasBroadcast bool // Broadcast was given, or that there is none
	Scope        uint8
	HasScope     bool
}

// addressKey says which address a note is about.
type addressKey struct {
	index int32
	a     tcpip.Address
}

// AddressNoteOf returns what is kept of an address.
func (n *Net) AddressNoteOf(index int32, a tcpip.Address) AddressNote {
	n.mu.RLock()
	defer n.mu.RUnlock()
	return n.addressNotes[addressKey{index, a}]
}

func (n *Net) noteAddress(index int32, a tcpip.Address, x AddressNote) {
	n.mu.Lock()
	n.addressNotes[addressKey{index, a}] = x
	n.mu.Unlock()
}

func (n *Net) forgetAddress(index int32, a tcpip.Address) {
	n.addressOrder.Delete(addressKey{index, a})
	n.mu.Lock()
	delete(n.addressNotes, addressKey{index, a})
	n.mu.Unlock()
}

// Scope returns an address's scope.
func (n *Net) Scope(i *Interface, a tcpip.Address) uint8 {
	x := n.AddressNoteOf(i.Index, a)
	ip := a.AsSlice()
	switch {
	case x.HasScope:
		return x.Scope
	case i.Loopback && (len(ip) == 16 || ip[0] == 127):
		return linux.RT_SCOPE_HOST
	case len(ip) == 16 && ip[0] == 0xfe && ip[1]&0xc0 == 0x80:
		return linux.RT_SCOPE_LINK
	}
	return linux.RT_SCOPE_UNIVERSE
}

// GiveAddress gives an interface an address, and a route to the machines that share its prefix.
func (n *Net) GiveAddress(by By, i *Interface, a tcpip.AddressWithPrefix, x AddressNote) linux.Errno {
	n.changing.Lock()
	defer n.changing.Unlock()
	for _, own := range n.Addresses(i.Index) {
		if own.Address == a.Address {
			return linux.EEXIST
		}
	}
	if err := n.AddAddress(i.Index, a.Address, a.PrefixLen); err != nil {
		return errno(err)
	}
	n.noteAddress(i.Index, a.Address, x)
	n.tell(Event{By: by, Type: linux.RTM_NEWADDR, Interface: i, Address: a})
	n.connected(by, i, a)
	i.addressesChanged()
	return 0
}

// TakeAddress takes an address from an interface. The route to its prefix goes with the
// last of the prefix.
func (n *Net) TakeAddress(by By, i *Interface, a tcpip.Address) linux.Errno {
	n.changing.Lock()
	defer n.changing.Unlock()
	has := n.Addresses(i.Index)
	at := slices.IndexFunc(has, func(own tcpip.AddressWithPrefix) bool { return own.Address == a })
	if at < 0 || n.Stack.RemoveAddress(tcpip.NICID(i.Index), a) != nil {
		return linux.EADDRNOTAVAIL
	}
	gone := has[at]
	n.tell(Event{By: by, Type: linux.RTM_DELADDR, Interface: i, Address: gone})
	n.forgetAddress(i.Index, a)
	left := slices.ContainsFunc(n.Addresses(i.Index), func(own tcpip.AddressWithPrefix) bool { return own.Subnet() == gone.Subnet() })
	if !left {
		nic := tcpip.NICID(i.Index)
		routes, notes := n.dropRoutes(func(r *tcpip.Route) bool {
			return r.NIC == nic && (r.Gateway.Len() == 0 && r.Destination == gone.Subnet() || r.SourceHint == a)
		})
		for k, r := range routes {
			if !i.Loopback {
				n.tell(Event{By: by, Type: linux.RTM_DELROUTE, Interface: i, Route: r, Note: notes[k]})
			}
		}
	}
	i.addressesChanged()
	return 0
}

// Label returns the name that an address is shown with.
func (n *Net) Label(i *Interface, a tcpip.Address) string {
	if x := n.AddressNoteOf(i.Index, a); x.Label != "" {
		return x.Label
	}
	return i.Name
}

// named is an address with its label.
type named struct {
	name string
	a    tcpip.Address
}

// named4 returns the IPv4 addresses of all interfaces.
func (n *Net) named4() (all []named) {
	for _, i := range n.Interfaces() {
		for _, a := range n.Addresses(i.Index) {
			if a.Address.Len() == 4 {
				all = append(all, named{n.Label(i, a.Address), a.Address})
			}
		}
	}
	return all
}

// Broadcast returns an IPv4 address's broadcast address; false without one.
func (n *Net) Broadcast(i *Interface, a tcpip.AddressWithPrefix) (tcpip.Address, bool) {
	x := n.AddressNoteOf(i.Index, a.Address)
	if x.HasBroadcast {
		return x.Broadcast, x.Broadcast.Len() != 0
	}
	if i.Loopback || a.PrefixLen >= 31 {
		return tcpip.Address{}, false
	}
	s := a.Subnet()
	return s.Broadcast(), true
}
