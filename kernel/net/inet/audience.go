package inet

import (
	"slices"
	"sync"
	"sync/atomic"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
)

// audience are the groups that sockets have joined, for packets: an interface takes one only if
// a socket wants its source. mu is a leaf: it is taken with netstack's locks held.
type audience struct {
	picky atomic.Int32 // sockets that distinguish sources

	mu sync.RWMutex
	by map[*inetSock][]membership // guarded by mu; the lists are immutable
}

// set says what a socket has joined.
func (h *audience) set(s *inetSock, list []membership) {
	picks := func(m membership) bool { return m.picks() }
	h.mu.Lock()
	defer h.mu.Unlock()
	if slices.ContainsFunc(h.by[s], picks) {
		h.picky.Add(-1)
	}
	if len(list) == 0 {
		delete(h.by, s)
		return
	}
	if slices.ContainsFunc(list, picks) {
		h.picky.Add(1)
	}
	if h.by == nil {
		h.by = map[*inetSock][]membership{}
	}
	h.by[s] = list
}

// shuns reports whether nobody wants a packet's source of those who have joined its group.
func (h *audience) shuns(nic tcpip.NICID, to, from tcpip.Address) bool {
	if to == header.IPv4AllSystems || to == header.IPv6AllNodesMulticastAddress {
		return false
	}
	h.mu.RLock()
	defer h.mu.RUnlock()
	joined := false
	for _, list := range h.by {
		for i := range list {
			if m := &list[i]; m.nic == nic && m.addr == to {
				if m.hears(from) {
					return false
				}
				joined = true
			}
		}
	}
	return joined
}
