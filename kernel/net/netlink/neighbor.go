package netlink

import (
	"encoding/binary"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/stack"

	"hardtack/abi/linux"
	"hardtack/kernel/net/inet"
)

// nudStates are netstack's states of a neighbour as NUD_*.
var nudStates = [...]uint16{
	stack.Unknown: linux.NUD_INCOMPLETE, stack.Incomplete: linux.NUD_INCOMPLETE, stack.Reachable: linux.NUD_REACHABLE,
	stack.Stale: linux.NUD_STALE, stack.Delay: linux.NUD_DELAY, stack.Probe: linux.NUD_PROBE,
	stack.Static: linux.NUD_PERMANENT, stack.Unreachable: linux.NUD_FAILED,
}

// dumpNeighbors lists the neighbours of a family, or of both with 0, of one interface
// where the request names it.
func (w *builder) dumpNeighbors(body []byte) {
	index := int32(0)
	if len(body) >= linux.SizeofNdmsg {
		index = int32(binary.LittleEndian.Uint32(body[4:]))
	}
	for _, family := range []byte{linux.AF_INET, linux.AF_INET6} {
		if body[0] != 0 && body[0] != family {
			continue
		}
		for _, i := range w.net.Interfaces() {
			if index != 0 && index != i.Index {
				continue
			}
			for _, x := range w.net.NeighborEntries(i, family == linux.AF_INET6) {
				w.neighbor(linux.RTM_NEWNEIGH, family, i, x)
			}
		}
	}
}

// neighbor writes the message about one.
func (w *builder) neighbor(typ uint16, family byte, i *inet.Interface, x stack.NeighborEntry) {
	state := uint16(linux.NUD_INCOMPLETE)
	if int(x.State) < len(nudStates) {
		state = nudStates[x.State]
	}
	w.begin(typ)
	w.b = append(w.b, family, 0, 0, 0)
	w.u32(uint32(i.Index))
	w.b = binary.LittleEndian.AppendUint16(w.b, state)
	w.b = append(w.b, 0, linux.RTN_UNICAST)
	w.attr(linux.NDA_DST, x.Addr.AsSlice())
	if x.LinkAddr != "" {
		w.attr(linux.NDA_LLADDR, []byte(x.LinkAddr))
	}
	w.attrU32(linux.NDA_PROBES, 0)
	w.attr(linux.NDA_CACHEINFO, make([]byte, linux.SizeofNdaCacheinfo))
	w.end()
}

// changeNeighbor is RTM_NEWNEIGH, of neighbours that stay, and RTM_DELNEIGH.
func (w *builder) changeNeighbor(typ, flags uint16, body []byte) linux.Errno {
	if len(body) < linux.SizeofNdmsg {
		return linux.EINVAL
	}
	family := body[0]
	at := parseAttributes(body[linux.SizeofNdmsg:])
	dst, mac := at[linux.NDA_DST], at[linux.NDA_LLADDR]
	i := w.net.InterfaceByIndex(int32(binary.LittleEndian.Uint32(body[4:])))
	size := 4
	if family == linux.AF_INET6 {
		size = 16
	}
	switch {
	case len(dst) == 0:
		return linux.EINVAL
	case i == nil && binary.LittleEndian.Uint32(body[4:]) != 0:
		return linux.ENODEV
	case typ == linux.RTM_NEWNEIGH && mac != nil && i != nil && len(mac) < len(i.MAC):
		return linux.EINVAL
	case family != linux.AF_INET && family != linux.AF_INET6:
		return linux.EAFNOSUPPORT
	case len(dst) < size, i == nil:
		return linux.EINVAL
	}
	a := tcpip.AddrFromSlice(dst[:size])
	old, have := w.net.NeighborEntry(i, a)
	if typ == linux.RTM_DELNEIGH {
		if !have {
			return linux.ENOENT
		}
		return w.net.RemoveNeighbor(i, a)
	}
	state := binary.LittleEndian.Uint16(body[8:])
	switch {
	case have && flags&linux.NLM_F_EXCL != 0:
		return linux.EEXIST
	case !have && flags&linux.NLM_F_CREATE == 0:
		return linux.ENOENT
	case state&linux.NUD_PERMANENT == 0, i.Loopback:
		return linux.EOPNOTSUPP // netstack itself finds out what is reachable
	case mac == nil && old.LinkAddr == "":
		return linux.EINVAL
	case mac == nil, have && flags&linux.NLM_F_REPLACE == 0 && old.LinkAddr != "":
		mac = []byte(old.LinkAddr)
	}
	if e := w.net.AddNeighbor(i, a, tcpip.LinkAddress(mac[:len(i.MAC)])); e != 0 {
		return e
	}
	x := &builder{net: w.net, seq: w.seq, port: w.s.port.Load()}
	x.neighbor(linux.RTM_NEWNEIGH, family, i, stack.NeighborEntry{Addr: a, LinkAddr: tcpip.LinkAddress(mac[:len(i.MAC)]), State: stack.Static})
	x.multicast(members(linux.NETLINK_ROUTE, linux.RTNLGRP_NEIGH))
	return 0
}
