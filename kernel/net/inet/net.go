// Package inet is AF_INET and AF_INET6: TCP, UDP, ICMP and raw sockets over
// gVisor's netstack.
//
// A TCP connection between two sockets of this machine does not go through
// netstack: connect finds the listener itself and joins the two sockets by a
// Flow each way, as AF_UNIX does, with TCP's rules for shutdown and reset
// (local.go). An endpoint of netstack is made only when a socket needs one: by
// bind, listen, or connect to another machine.
//
// Lock order: TCP.mu (of a socket that connects, then of its listener),
// Net.changing, Net.binding, Net.mu, register.mu, taps.mu, netstack's locks, wait.Queue's. netstack
// announces readiness under its own locks: listeners must not call it back.
package inet

import (
	"io"
	"sync"
	"sync/atomic"

	"gvisor.dev/gvisor/pkg/log"
	gvrand "gvisor.dev/gvisor/pkg/rand"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/network/arp"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv6"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
	"gvisor.dev/gvisor/pkg/tcpip/transport/icmp"
	"gvisor.dev/gvisor/pkg/tcpip/transport/raw"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"
	"gvisor.dev/gvisor/pkg/tcpip/transport/udp"

	"hardtack/abi/linux"
	"hardtack/kernel/base/hook"
	"hardtack/kernel/base/random"
	"hardtack/kernel/base/settings"
)

// Config says how the stack is made.
type Config struct {
	// Rand is where random numbers come from (sequence numbers, ports); it
	// must be safe for several goroutines.
	Rand io.Reader
	// Log receives what netstack has to say; nil drops it.
	Log io.Writer
	// MaxTCPBuffer bounds what one TCP connection may buffer each way; 0 is 1 MiB.
	MaxTCPBuffer int
	// MaxQueued bounds the memory of all datagrams that wait in sockets; 0 is 32 MiB.
	MaxQueued int64
}

// LoopbackNIC is the interface index of lo.
const LoopbackNIC = 1

// loopbackMTU is lo's MTU as Linux shows it.
const loopbackMTU = 65536

// Net is the machine's network: netstack, its interfaces, and the registers of
// sockets that connect without it.
type Net struct {
	Stack *stack.Stack // immutable
	lo    *Interface   // immutable

	mu        sync.RWMutex
	listeners map[uint16][]*TCP           // guarded by mu: listening sockets, by port
	heard     [1 << 16 / 64]atomic.Uint64 // the ports in listeners, a bit each; written with mu held
	ifaces    []*Interface                // guarded by mu, ordered by index
	holders   []holder                    // guarded by mu; its elements are immutable
	ports     portSet                     // own lock
	all       register                    // own lock
	queued    queued                      // own lock
	waits     timeWaits                   // own lock
	orphans   orphans                     // own lock
	conns     [1 << 16]atomic.Int32       // how many connections within the machine have a port
	bound     map[uint32][]*inetSock      // guarded by binding: who was bound, by type and port
	changing  sync.Mutex                  // held while addresses, routes or interfaces change
	binding   sync.Mutex                  // held from the check for a conflict to the bind
	raw       atomic.Int32                // raw sockets and Taps
	taps      taps                        // own lock
	discovery discovery                   // own lock
	audience  audience                    // own lock
	counts    counters
	rr        atomic.Uint32 // spreads connections over SO_REUSEPORT listeners
	log       io.Writer     // immutable

	// Filter, AllInterfaces and NewInterfaces are what /proc/sys/net says.
	Filter                       Filter
	AllInterfaces, NewInterfaces InterfaceSettings

	// By interface: which pass packets on, and the addresses to give back where
	// disable_ipv6 has taken them. Guarded by mu; the maps are immutable.
	forward4, forward6 map[int32]bool
	without6           map[int32][]tcpip.ProtocolAddress
	routers            map[int32]raSettings // what is taken from routers, by interface; guarded by mu

	notes        map[routeKey]RouteNote     // guarded by mu
	addressNotes map[addressKey]AddressNote // guarded by mu
	expiry       *timer                     // of lifetimes; guarded by changing when it is set, nil before
	addressOrder sync.Map                   // of addressKey to uint64: which came first
	addressCount atomic.Uint64
}

// InterfaceAdded hears of each new interface; set before there is a network.
var InterfaceAdded = hook.Default(func(*Net, *Interface) {})

// Default is the machine's network; made by Init while booting.
var Default *Net

// Init makes the machine's network.
func Init(cfg Config) *Net {
	Default = New(cfg)
	return Default
}

// New makes a network of its own, with a loopback interface only.
func New(cfg Config) *Net {
	if cfg.Rand != nil {
		gvrand.Reader = cfg.Rand
	}
	out := cfg.Log
	if out == nil {
		out = io.Discard
	}
	log.SetTarget(&log.Writer{Next: &logLimit{to: out}})
	log.SetLevel(log.Warning)
	if cfg.MaxTCPBuffer == 0 {
		cfg.MaxTCPBuffer = 1 << 20
	}
	if cfg.MaxQueued == 0 {
		cfg.MaxQueued = 32 << 20
	}
	n := &Net{listeners: make(map[uint16][]*TCP), bound: make(map[uint32][]*inetSock), log: out,
		forward4: map[int32]bool{}, forward6: map[int32]bool{}, without6: map[int32][]tcpip.ProtocolAddress{},
		routers: map[int32]raSettings{-1: {0, 1}, 0: {0, 1}},
		notes:   map[routeKey]RouteNote{}, addressNotes: map[addressKey]AddressNote{}}
	n.discovery.n, n.discovery.known = n, map[learnedKey]*learned{}
	n.Filter.IgnoreBroadcast.Set(1)
	n.queued.init(cfg.MaxQueued)
	n.ports.init()
	n.Stack = stack.New(stack.Options{
		NetworkProtocols: []stack.NetworkProtocolFactory{
			ipv4.NewProtocol,
			ipv6.NewProtocolWithOptions(ipv6.Options{NDPConfigs: raSettings{}.ndp(), NDPDisp: &n.discovery, DADConfigs: stack.DADConfigurations{}}),
			arp.NewProtocol,
		},
		TransportProtocols: []stack.TransportProtocolFactory{
			tcp.NewProtocol, udp.NewProtocol, icmp.NewProtocol4, icmp.NewProtocol6,
		},
		Clock:       new(clock),
		HandleLocal: true,
		RawFactory:  raw.EndpointFactory{},
		RandSource:  randSource{},
		SecureRNG:   cfg.Rand,
	})
	n.tune(cfg.MaxTCPBuffer)
	n.addLoopback()
	return n
}

// randSource feeds netstack's insecure generator from the runtime's.
type randSource struct{}

func (randSource) Int63() int64 { return int64(random.Uint64() >> 1) }
func (randSource) Seed(int64)   {}

// tune sets what differs from netstack's defaults.
func (n *Net) tune(maxBuffer int) {
	set := func(proto tcpip.TransportProtocolNumber, o tcpip.SettableTransportProtocolOption) {
		if err := n.Stack.SetTransportProtocolOption(proto, o); err != nil {
			panic("inet: " + err.String())
		}
	}
	// Linux starts with 16 KiB to send and 128 KiB to receive and grows both
	// to 4 and 6 MiB; small machines keep less.
	snd := tcpip.TCPSendBufferSizeRangeOption{Min: 4096, Default: min(64<<10, maxBuffer), Max: maxBuffer}
	rcv := tcpip.TCPReceiveBufferSizeRangeOption{Min: 4096, Default: min(128<<10, maxBuffer), Max: maxBuffer}
	sack, delay, moderate := tcpip.TCPSACKEnabled(true), tcpip.TCPDelayEnabled(true), tcpip.TCPModerateReceiveBufferOption(true)
	// A connection in TIME-WAIT costs netstack several kilobytes, so they do
	// not stay for Linux's minute.
	tw := tcpip.TCPTimeWaitTimeoutOption(timeWait)
	cc := tcpip.CongestionControlOption("cubic")
	syn, fin := tcpip.TCPSynRetriesOption(settings.SynRetries.Get()), tcpip.TCPLingerTimeoutOption(seconds(int32(settings.FinTimeout.Get())))
	for _, o := range []tcpip.SettableTransportProtocolOption{&snd, &rcv, &sack, &delay, &moderate, &tw, &cc, &syn, &fin} {
		set(tcp.ProtocolNumber, o)
	}
	n.SetPortRange(n.PortRange())
	n.TuneBuffers()
}

func (n *Net) addLoopback() {
	lo := &loopback{net: n}
	lo.mtu.Store(loopbackMTU)
	n.lo = &Interface{Index: LoopbackNIC, Name: "lo", MTU: loopbackMTU, Loopback: true}
	if err := n.AddInterface(n.lo, lo); err != nil {
		panic("inet: " + err.String())
	}
	n.AddAddress(LoopbackNIC, tcpip.AddrFrom4([4]byte{127, 0, 0, 1}), 8)
	n.AddAddress(LoopbackNIC, header.IPv6Loopback, 128)
	four, _ := tcpip.NewSubnet(tcpip.AddrFrom4([4]byte{127}), tcpip.MaskFrom("\xff\x00\x00\x00"))
	n.Stack.AddRoute(tcpip.Route{Destination: four, NIC: LoopbackNIC})
	n.Stack.AddRoute(tcpip.Route{Destination: header.IPv6Loopback.WithPrefix().Subnet(), NIC: LoopbackNIC})
}

// Interface is a network interface as programs see it.
type Interface struct {
	Index    int32
	Name     string
	MAC      [6]byte
	MTU      int
	Loopback bool
	NoARP    bool

	Settings InterfaceSettings // net.ipv4.conf.NAME

	send      func(frame []byte) bool // sends a frame; nil if there is no way. Immutable after AddInterface.
	mtuSetter mtuSetter               // immutable after AddInterface
	state     linkState
}

// AddInterface makes a NIC of a link endpoint.
func (n *Net) AddInterface(i *Interface, ep stack.LinkEndpoint) tcpip.Error {
	// An endpoint that takes single packets saves a list for each.
	q, _ := ep.(stack.QueueingDiscipline)
	if x, ok := ep.(frameSender); ok {
		i.send = x.SendFrame
	}
	i.mtuSetter, _ = ep.(mtuSetter)
	i.state.own, _ = ep.(addressed)
	if x, ok := ep.(promiscuous); ok {
		i.state.stations = x
	}
	if !i.Loopback {
		i.state.flags.Store(linux.IFF_MULTICAST)
	}
	if err := n.Stack.CreateNICWithOptions(tcpip.NICID(i.Index), ep, stack.NICOptions{Name: i.Name, QDisc: q}); err != nil {
		return err
	}
	n.mu.Lock()
	n.ifaces = append(n.ifaces, i)
	if h, ok := ep.(holder); ok {
		n.holders = append(n.holders[:len(n.holders):len(n.holders)], h)
	}
	n.forward4[i.Index], n.forward6[i.Index] = n.forward4[0], n.forward6[0]
	if _, off := n.without6[0]; off {
		n.without6[i.Index] = nil
	}
	n.routers[i.Index] = n.routers[0]
	n.applyNDP(i.Index)
	n.mu.Unlock()
	n.SetReversePath(&i.Settings, n.NewInterfaces.ReversePath.Get())
	i.Settings.LogMartians.Set(n.NewInterfaces.LogMartians.Get())
	i.Settings.PromoteSecondaries.Set(n.NewInterfaces.PromoteSecondaries.Get())
	InterfaceAdded.Call(n, i)
	return nil
}

// A holder is an interface that can keep packets back, to send several at once.
type holder interface {
	Hold()
	Flush()
}

// together has all that f sends go out at once.
func (n *Net) together(f func()) {
	n.mu.RLock()
	holders := n.holders
	n.mu.RUnlock()
	for _, h := range holders {
		h.Hold()
	}
	f()
	for _, h := range holders {
		h.Flush()
	}
}

// RawSockets returns how many raw sockets there are: they want to see every
// packet.
func (n *Net) RawSockets() int { return int(n.raw.Load()) }

// Interfaces returns all interfaces; the caller must not change them.
func (n *Net) Interfaces() []*Interface {
	n.mu.RLock()
	defer n.mu.RUnlock()
	return n.ifaces[:len(n.ifaces):len(n.ifaces)]
}

// NextIndex returns a free interface index.
func (n *Net) NextIndex() int32 {
	n.mu.RLock()
	defer n.mu.RUnlock()
	i := int32(0)
	for _, x := range n.ifaces {
		i = max(i, x.Index)
	}
	return i + 1
}

// AddAddress gives an interface an address.
func (n *Net) AddAddress(index int32, a tcpip.Address, prefix int) tcpip.Error {
	proto := ipv4.ProtocolNumber
	if a.Len() == 16 {
		proto = ipv6.ProtocolNumber
	}
	p := tcpip.ProtocolAddress{Protocol: proto, AddressWithPrefix: tcpip.AddressWithPrefix{Address: a, PrefixLen: prefix}}
	if proto == ipv6.ProtocolNumber {
		n.mu.Lock()
		defer n.mu.Unlock()
		if gone, off := n.without6[index]; off { // it gets it once it may
			n.without6[index] = append(gone, p)
			return nil
		}
	}
	return n.addProtocolAddress(index, p)
}

func (n *Net) addProtocolAddress(index int32, p tcpip.ProtocolAddress) tcpip.Error {
	n.addressOrder.Store(addressKey{index, p.AddressWithPrefix.Address}, n.addressCount.Add(1))
	return n.Stack.AddProtocolAddress(tcpip.NICID(index), p, stack.AddressProperties{})
}

// local returns the address that a connection to a goes to if that is this
// machine, and the address it then comes from.
func (n *Net) local(a tcpip.Address) (dst, src tcpip.Address, ok bool) {
	switch a.Len() {
	case 4:
		b := a.As4()
		switch {
		case b == [4]byte{}:
			return loopback4, loopback4, true
		case b[0] == 127:
			return a, loopback4, b != [4]byte{127, 255, 255, 255}
		}
		return a, a, n.Stack.CheckLocalAddress(0, ipv4.ProtocolNumber, a) != 0
	case 16:
		switch a {
		case header.IPv6Any, header.IPv6Loopback:
			return header.IPv6Loopback, header.IPv6Loopback, true
		}
		return a, a, n.Stack.CheckLocalAddress(0, ipv6.ProtocolNumber, a) != 0
	}
	return a, a, false
}

// isBroadcast reports whether an address of IPv4 is for all machines of a link.
func (n *Net) isBroadcast(a tcpip.Address) bool {
	if a.Len() != 4 {
		return false
	}
	if a == header.IPv4Broadcast {
		return true
	}
	for _, i := range n.Interfaces() {
		for _, own := range n.Addresses(i.Index) {
			if s := own.Subnet(); own.Address.Len() == 4 && own.PrefixLen < 31 && s.Broadcast() == a {
				return true
			}
		}
	}
	return false
}

var loopback4 = tcpip.AddrFrom4([4]byte{127, 0, 0, 1})

// loopback is the link endpoint of lo: what is sent is received at once, by the
// sender's goroutine.
type loopback struct {
	net *Net // immutable
	mtu atomic.Uint32
	d   atomic.Pointer[stack.NetworkDispatcher]
}

func (l *loopback) MTU() uint32                           { return l.mtu.Load() }
func (*loopback) SetMTU(uint32)                           {}
func (*loopback) MaxHeaderLength() uint16                 { return 0 }
func (*loopback) LinkAddress() tcpip.LinkAddress          { return "" }
func (*loopback) SetLinkAddress(tcpip.LinkAddress)        {}
func (*loopback) Wait()                                   {}
func (*loopback) ARPHardwareType() header.ARPHardwareType { return header.ARPHardwareLoopback }
func (*loopback) AddHeader(*stack.PacketBuffer)           {}
func (*loopback) ParseHeader(*stack.PacketBuffer) bool    { return true }
func (*loopback) Close()                                  {}
func (*loopback) SetOnCloseAction(func())                 {}

func (*loopback) Capabilities() stack.LinkEndpointCapabilities {
	return stack.CapabilityRXChecksumOffload | stack.CapabilityTXChecksumOffload | stack.CapabilityLoopback
}

func (l *loopback) Attach(d stack.NetworkDispatcher) {
	if d == nil {
		l.d.Store(nil)
		return
	}
	l.d.Store(&d)
}

func (l *loopback) IsAttached() bool { return l.d.Load() != nil }

func (l *loopback) WritePackets(pkts stack.PacketBufferList) (int, tcpip.Error) {
	for _, p := range pkts.AsSlice() {
		l.WritePacket(p)
	}
	return pkts.Len(), nil
}

// WritePacket delivers one packet.
func (l *loopback) WritePacket(p *stack.PacketBuffer) tcpip.Error {
	if d := l.d.Load(); d != nil {
		if l.net.Tapped() {
			if !l.net.lo.Up() {
				return nil
			}
			l.tapped(p)
		}
		q := stack.NewPacketBuffer(stack.PacketBufferOptions{Payload: p.ToBuffer()})
		if p.TransportProtocolNumber == header.UDPProtocolNumber {
			q.GSOOptions.MSS = p.GSOOptions.MSS
		}
		l.deliver(*d, p.NetworkProtocolNumber, q)
	}
	return nil
}
