package stack

import "gvisor.dev/gvisor/pkg/tcpip"

// Routes that lead nowhere have the number of their kind in Linux (RTN_*), negated, for
// the number of an interface.
const (
	refuseSilently    tcpip.NICID = -6 // blackhole
	refuseUnreachable tcpip.NICID = -7
	refuseProhibited  tcpip.NICID = -8
	refuseNoRoute     tcpip.NICID = -9 // throw: as if the table had none
)

// refuses returns the error of such a route; nil for an interface.
func refuses(id tcpip.NICID) tcpip.Error {
	switch id {
	case refuseSilently:
		return &tcpip.ErrInvalidOptionValue{}
	case refuseUnreachable:
		return &tcpip.ErrHostUnreachable{}
	case refuseProhibited:
		return &tcpip.ErrBroadcastDisabled{} // which is EACCES
	case refuseNoRoute:
		return &tcpip.ErrNetworkUnreachable{}
	}
	return nil
}
