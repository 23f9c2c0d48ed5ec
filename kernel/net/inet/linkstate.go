package inet

import (
	"sync"
	"sync/atomic"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"

	"hardtack/abi/linux"
	"hardtack/kernel/base/hook"
)

// linkState is what programs may change of an interface.
type linkState struct {
	down  atomic.Bool
	mtu   atomic.Int32  // 0 for Interface.MTU
	flags atomic.Uint32 // IFF_* that are only kept: those that Linux, too, only keeps

	noCarrier      atomic.Bool
	carrierChanges atomic.Uint32
	promiscuity    atomic.Int32 // who wants frames for other stations, beside IFF_PROMISC
	stations       promiscuous  // nil if the device passes on all frames. Immutable after AddInterface.
	telling        sync.Mutex   // held while stations is told

	own addressed // who must know the addresses; nil for nobody. Immutable after AddInterface.
}

// addressed is a link endpoint that keeps a copy of its interface's address.
type addressed interface{ AddressesChanged() }

// Up reports whether the interface passes packets.
func (i *Interface) Up() bool { return !i.state.down.Load() }

// CurrentMTU returns the interface's MTU.
func (i *Interface) CurrentMTU() int {
	if v := i.state.mtu.Load(); v != 0 {
		return int(v)
	}
	return i.MTU
}

// Flags returns IFF_* of an interface.
func (i *Interface) Flags() uint32 {
	f := i.state.flags.Load()
	if i.Loopback {
		f |= linux.IFF_LOOPBACK
	} else {
		f |= linux.IFF_BROADCAST
	}
	if i.NoARP {
		f |= linux.IFF_NOARP
	}
	if i.Up() {
		f |= linux.IFF_UP
		if i.Carrier() {
			f |= linux.IFF_RUNNING
		}
	}
	return f
}

// keptFlags are the flags that a program may change and the kernel only shows.
const keptFlags = linux.IFF_MULTICAST | linux.IFF_DEBUG | linux.IFF_NOTRAILERS | linux.IFF_PROMISC | linux.IFF_ALLMULTI |
	linux.IFF_DYNAMIC | linux.IFF_PORTSEL | linux.IFF_AUTOMEDIA

// SetFlags changes an interface's flags where mask says so: IFF_UP, and those that are kept.
// Whether an interface has ARP does not change. Link tells listeners of it.
func (n *Net) SetFlags(i *Interface, flags, mask uint32) linux.Errno {
	if mask&linux.IFF_NOARP&flags != 0 && !i.NoARP {
		return linux.EOPNOTSUPP
	}
	before := i.Flags()
	old := i.state.flags.Load()
	i.state.flags.Store(old&^(mask&keptFlags) | flags&mask&keptFlags)
	if (old^flags)&mask&linux.IFF_PROMISC != 0 {
		i.setPromiscuous()
	}
	if mask&linux.IFF_UP != 0 {
		if flags&linux.IFF_UP != 0 {
			n.linkUp(i)
		} else {
			n.linkDown(i)
		}
	}
	if i.Flags() != before {
		n.tell(Event{Type: linux.RTM_NEWLINK, Interface: i})
	}
	return 0
}

// linkDown has an interface pass nothing. As on Linux its routes go, and its IPv6
// addresses; those of IPv4 stay this machine's.
func (n *Net) linkDown(i *Interface) {
	n.changing.Lock()
	defer n.changing.Unlock()
	if !i.state.down.CompareAndSwap(false, true) {
		return
	}
	nic := tcpip.NICID(i.Index)
	for _, a := range n.Addresses(i.Index) {
		if a.Address.Len() == 16 {
			flags := n.AddressFlags(i, a)
			n.Stack.RemoveAddress(nic, a.Address)
			n.tell(Event{Type: linux.RTM_DELADDR, Interface: i, Address: a, Flags: flags})
			n.forgetAddress(i.Index, a.Address)
		}
	}
	n.dropRoutes(func(r *tcpip.Route) bool {
		return r.NIC == nic && (!i.Loopback || n.NoteOf(r).Proto != linux.RTPROT_KERNEL)
	})
	n.AddTap(downTap{i.Index})
	i.addressesChanged()
	if list := n.taps.list.Load(); list != nil {
		for _, t := range *list {
			t.InterfaceDown(i.Index)
		}
	}
}

// downTap makes the ways of packets check whether their interface is down: they look at
// nothing while there is no Tap.
type downTap struct{ index int32 }

func (downTap) Tap(*Tapped)         {}
func (downTap) InterfaceDown(int32) {}

// linkUp undoes linkDown, except for the routes that had a gateway.
func (n *Net) linkUp(i *Interface) {
	n.changing.Lock()
	defer n.changing.Unlock()
	if i.Up() {
		return
	}
	i.state.down.Store(false)
	n.RemoveTap(downTap{i.Index})
	if i.Loopback {
		n.AddAddress(i.Index, header.IPv6Loopback, 128)
	}
	for _, a := range n.Addresses(i.Index) {
		n.connected(By{}, i, a)
	}
	i.addressesChanged()
	n.configure(i)
}

// addressesChanged tells the link endpoint.
func (i *Interface) addressesChanged() {
	if i.state.own != nil {
		i.state.own.AddressesChanged()
	}
}

// An mtuSetter is a link endpoint whose MTU can be changed, which it checks itself.
type mtuSetter interface{ ChangeMTU(mtu int) bool }

// SetMTU changes an interface's MTU.
func (n *Net) SetMTU(i *Interface, mtu int) linux.Errno {
	if mtu == i.CurrentMTU() {
		return 0
	}
	if mtu < 0 || mtu > 1<<31-1 || i.mtuSetter == nil || !i.mtuSetter.ChangeMTU(mtu) {
		return linux.EINVAL
	}
	i.state.mtu.Store(int32(mtu))
	n.tell(Event{Type: linux.RTM_NEWLINK, Interface: i})
	return 0
}

// ChangeMTU takes what a packet can have: below, IPv4 does not work.
func (l *loopback) ChangeMTU(mtu int) bool {
	if mtu < header.IPv4MinimumMTU || mtu > loopbackMTU {
		return false
	}
	l.mtu.Store(uint32(mtu))
	return true
}

// By is the request of rtnetlink that made a change; zero for none.
type By struct{ Seq, Port uint32 }

// Event is a change of which rtnetlink tells listeners.
type Event struct {
	By        By
	Type      uint16 // RTM_*
	Interface *Interface
	Address   tcpip.AddressWithPrefix
	Flags     uint32 // IFA_F_* of an Address that has gone
	Route     tcpip.Route
	Note      RouteNote // of a Route
}

// Changed hears of each change; set before there is a network. It must not change anything.
var Changed = hook.Default(func(*Net, Event) {})

func (n *Net) tell(e Event) { Changed.Call(n, e) }
