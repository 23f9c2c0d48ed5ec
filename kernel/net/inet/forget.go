package inet

import (
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"
)

// forgetful is netstack's end of a TCP connection, in a kernel (overlay/_netstack).
type forgetful interface {
	stack.TransportEndpoint
	Forget()
	Info() tcpip.EndpointInfo
}

// timeWaiter is netstack's TCP, in a kernel: it keeps the connections in TIME-WAIT whose sockets
// are closed.
type timeWaiter interface {
	TimeWaits() int
	ForgetTimeWaits(match func(tcpip.Address) bool) int
}

// forgetTimeWaits ends such connections with the peers that match, and sends nothing.
func (n *Net) forgetTimeWaits(match func(tcpip.Address) bool) int {
	if t, ok := n.Stack.TransportProtocolInstance(tcp.ProtocolNumber).(timeWaiter); ok {
		return t.ForgetTimeWaits(match)
	}
	return 0
}

// TimeWaits returns how many connections that were closed still hold their ports.
func (n *Net) TimeWaits() int {
	count := n.waits.count()
	if t, ok := n.Stack.TransportProtocolInstance(tcp.ProtocolNumber).(timeWaiter); ok {
		count += t.TimeWaits()
	}
	return count
}

// ForgetOutside resets the TCP connections that lead out of this machine, and sends nothing:
// their peers are connected with the machine that this one is a copy of. Those within the
// machine stay. It returns how many there were.
func (n *Net) ForgetOutside() (count int) {
	for _, e := range n.Stack.RegisteredEndpoints() {
		ep, ok := e.(forgetful)
		if !ok {
			continue
		}
		info, ok := ep.Info().(*stack.TransportEndpointInfo)
		if !ok || info.ID.RemotePort == 0 {
			continue // it listens
		}
		if _, _, here := n.local(info.ID.RemoteAddress); !here {
			ep.Forget()
			count++
		}
	}
	return count + n.forgetTimeWaits(func(far tcpip.Address) bool {
		_, _, here := n.local(far)
		return !here
	})
}
