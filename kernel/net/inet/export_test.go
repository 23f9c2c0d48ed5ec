package inet

import "gvisor.dev/gvisor/pkg/tcpip/network/ipv6"

// Kept is what is kept for sockets.
type Kept struct {
	Pending, TCP, UDP int64 // connections that nobody has accepted; ports
	Sockets           int
}

func KeptNow() (k Kept) {
	Default.Each(func(*Info) { k.Sockets++ })
	k.Pending, k.TCP, k.UDP = pendingPool.Get().Used(), tcpPorts.Used(), udpPorts.Used()
	return k
}

// Discovery is what netstack tells of routers, and Learned how much is kept of that.
func (n *Net) Discovery() ipv6.NDPDispatcher { return &n.discovery }

func (n *Net) Learned() int {
	n.discovery.mu.Lock()
	defer n.discovery.mu.Unlock()
	return len(n.discovery.known)
}

// Still has nobody change anything until it is called off.
func (n *Net) Still() (off func()) {
	n.changing.Lock()
	return n.changing.Unlock
}
