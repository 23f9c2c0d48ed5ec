package network

import (
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// PlainPath returns the way of plain packets that the context sends to, if there is one,
// and what goes into their headers.
func (c *WriteContext) PlainPath() (p *stack.Path, tos, ttl uint8, df bool) {
	return c.route.Path(), c.tos, c.ttl, c.df
}

// Crowded reports that an error is one of the device, which a program is told of only if it
// wants to be.
func (e *Endpoint) Crowded() tcpip.Error {
	if e.ops.GetIPv4RecvError() {
		return &tcpip.ErrNoBufferSpace{}
	}
	return nil
}
