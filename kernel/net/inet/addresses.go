package inet

import (
	"slices"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"

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
	Flags        uint32 // IFA_F_*, as they were given, and IFA_F_DEPRECATED
	Metric       uint32 // of the route to its prefix; 0 for the usual one
	Proto        uint8  // IFA_PROTO
	Life         Lifetime
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
	case i.Loopback && (a == header.IPv6Loopback || ip[0] == 127 && len(ip) == 4):
		return linux.RT_SCOPE_HOST
	case len(ip) == 16 && ip[0] == 0xfe && ip[1]&0xc0 == 0x80:
		return linux.RT_SCOPE_LINK
	case len(ip) == 16 && ip[0] == 0xfe && ip[1]&0xc0 == 0xc0:
		return linux.RT_SCOPE_SITE
	}
	return linux.RT_SCOPE_UNIVERSE
}

// GiveAddress gives an interface an address, and a route to the machines that share its prefix.
func (n *Net) GiveAddress(by By, i *Interface, a tcpip.AddressWithPrefix, x AddressNote) linux.Errno {
	n.changing.Lock()
	defer n.changing.Unlock()
	return n.giveAddress(by, i, a, x)
}

// giveAddress is GiveAddress with changing held.
func (n *Net) giveAddress(by By, i *Interface, a tcpip.AddressWithPrefix, x AddressNote) linux.Errno {
	for _, own := range n.Addresses(i.Index) {
		if own.Address == a.Address {
			return linux.EEXIST
		}
	}
	if err := n.AddAddress(i.Index, a.Address, a.PrefixLen); err != nil {
		return errno(err)
	}
	x.Life.begin()
	n.noteAddress(i.Index, a.Address, x)
	n.tell(Event{By: by, Type: linux.RTM_NEWADDR, Interface: i, Address: a})
	n.connected(by, i, a)
	if x.Life.limited() {
		n.armExpiry()
	}
	i.addressesChanged()
	return 0
}

// TakeAddress takes an address from an interface, and with the first of a prefix the
// others, unless promote_secondaries is set. The route to the prefix goes with the last.
func (n *Net) TakeAddress(by By, i *Interface, a tcpip.Address) linux.Errno {
	n.changing.Lock()
	defer n.changing.Unlock()
	return n.takeWithSecondaries(by, i, a)
}

// takeWithSecondaries is TakeAddress with changing held.
func (n *Net) takeWithSecondaries(by By, i *Interface, a tcpip.Address) linux.Errno {
	has := n.Addresses(i.Index)
	at := slices.IndexFunc(has, func(own tcpip.AddressWithPrefix) bool { return own.Address == a })
	if at < 0 {
		return linux.EADDRNOTAVAIL
	}
	gone := has[at]
	var others []tcpip.AddressWithPrefix
	for _, x := range has[at+1:] {
		if samePrefix(x, gone) && !secondary(has, gone) {
			others = append(others, x)
		}
	}
	if i.Settings.PromoteSecondaries.Get()|n.AllInterfaces.PromoteSecondaries.Get() == 0 {
		for _, x := range others {
			n.takeAddress(by, i, x)
		}
		others = nil
	}
	e := n.takeAddress(by, i, gone)
	for _, x := range others { // behind the other prefixes
		n.addressOrder.Store(addressKey{i.Index, x.Address}, n.addressCount.Add(1))
	}
	if e == 0 && len(others) > 0 {
		n.tell(Event{By: by, Type: linux.RTM_NEWADDR, Interface: i, Address: others[0]})
	}
	return e
}

// takeAddress is TakeAddress of one; called with changing held.
func (n *Net) takeAddress(by By, i *Interface, gone tcpip.AddressWithPrefix) linux.Errno {
	a, flags := gone.Address, n.AddressFlags(i, gone)
	if n.Stack.RemoveAddress(tcpip.NICID(i.Index), a) != nil {
		return linux.EADDRNOTAVAIL
	}
	n.tell(Event{By: by, Type: linux.RTM_DELADDR, Interface: i, Address: gone, Flags: flags})
	kept := flags&linux.IFA_F_NOPREFIXROUTE != 0
	n.forgetAddress(i.Index, a)
	left := kept || slices.ContainsFunc(n.Addresses(i.Index), func(own tcpip.AddressWithPrefix) bool { return own.Subnet() == gone.Subnet() })
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
	if a.Len() == 4 && !slices.ContainsFunc(n.Addresses(i.Index), func(own tcpip.AddressWithPrefix) bool { return own.Address.Len() == 4 }) {
		n.dropRoutes(func(r *tcpip.Route) bool { // of which nobody is told, as on Linux
			return r.NIC == tcpip.NICID(i.Index) && r.Destination.ID().Len() == 4
		})
	}
	i.addressesChanged()
	return 0
}

// samePrefix reports whether two addresses of IPv4 have one prefix.
func samePrefix(a, b tcpip.AddressWithPrefix) bool {
	return a.Address.Len() == 4 && a.PrefixLen == b.PrefixLen && a.Subnet() == b.Subnet()
}

// secondary reports whether an address of IPv4 has come after another of its prefix; list
// is all of the interface's, in their order.
func secondary(list []tcpip.AddressWithPrefix, a tcpip.AddressWithPrefix) bool {
	for _, x := range list {
		if x.Address == a.Address {
			return false
		}
		if samePrefix(x, a) {
			return true
		}
	}
	return false
}

// AddressFlags returns IFA_F_* of an address.
func (n *Net) AddressFlags(i *Interface, a tcpip.AddressWithPrefix) uint32 {
	x := n.AddressNoteOf(i.Index, a.Address)
	f := x.Flags
	if !x.Life.ends() {
		f |= linux.IFA_F_PERMANENT
	}
	if a.Address.Len() == 4 && secondary(n.Addresses(i.Index), a) {
		f |= linux.IFA_F_SECONDARY
	}
	return f
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
