package inet

import (
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// forgetful is netstack's end of a TCP connection, in a kernel (overlay/_netstack).
type forgetful interface {
	stack.TransportEndpoint
	Forget()
	Info() tcpip.EndpointInfo
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
	return count
}
