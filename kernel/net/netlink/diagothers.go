package netlink

import (
	"encoding/binary"

	"hardtack/abi/linux"
	"hardtack/kernel/net/packet"
)

// Sockets of AF_NETLINK and AF_PACKET in NETLINK_SOCK_DIAG, which lists all of them or
// none (include/uapi/linux/netlink_diag.h, packet_diag.h).
const (
	sizeofOthersRequest = 20 // struct netlink_diag_req, struct packet_diag_req

	allProtocols = 255 // NDIAG_PROTO_ALL
	maxProtocols = 32  // MAX_LINKS

	netlinkMeminfo     = 0 // NETLINK_DIAG_*
	netlinkGroups      = 1
	netlinkShowMeminfo = 1 << 0 // NDIAG_SHOW_*
	netlinkShowGroups  = 1 << 1

	packetInfo        = 0 // PACKET_DIAG_*
	packetUID         = 5
	packetMeminfo     = 6
	packetShowInfo    = 1 << 0 // PACKET_SHOW_*
	packetShowMeminfo = 1 << 4
	packetRunning     = 1 << 0 // PDI_RUNNING
)

func (w *builder) netlinkSockets(body []byte, dump bool) linux.Errno {
	switch {
	case len(body) < sizeofOthersRequest:
		return linux.EINVAL
	case !dump:
		return linux.EOPNOTSUPP
	}
	protocol, show := int32(body[1]), binary.LittleEndian.Uint32(body[8:])
	if protocol != allProtocols && protocol >= maxProtocols {
		w.outcome = linux.ENOENT
		return 0
	}
	Each(func(i Info) {
		if protocol != allProtocols && protocol != i.Protocol {
			return
		}
		w.begin(sockDiagByFamily)
		w.b = append(w.b, linux.AF_NETLINK, byte(i.Type), byte(i.Protocol), linux.TCP_CLOSE)
		w.b = append(w.b, words(i.Port, 0, 0, uint32(i.Ino), uint32(i.Ino), uint32(i.Ino>>32))...)
		if show&netlinkShowGroups != 0 && i.Groups != 0 {
			w.attr(netlinkGroups, words(i.Groups, 0))
		}
		if show&netlinkShowMeminfo != 0 {
			w.attr(netlinkMeminfo, words(uint32(i.Queued), i.Receive, 0, i.Send, 0, 0, 0, 0, 0))
		}
		w.end()
	})
	return 0
}

func (w *builder) packetSockets(body []byte, dump bool) linux.Errno {
	switch {
	case len(body) < sizeofOthersRequest || body[1] != 0:
		return linux.EINVAL
	case !dump:
		return linux.EOPNOTSUPP
	}
	show := binary.LittleEndian.Uint32(body[8:])
	packet.Each(func(i packet.Info) {
		w.begin(sockDiagByFamily)
		w.b = append(w.b, linux.AF_PACKET, byte(i.Type))
		w.b = binary.LittleEndian.AppendUint16(w.b, i.Protocol)
		w.b = append(w.b, words(uint32(i.Ino), uint32(i.Ino), uint32(i.Ino>>32))...)
		if show&packetShowInfo != 0 {
			flags := uint32(0)
			if i.Running {
				flags = packetRunning
			}
			w.attr(packetInfo, words(uint32(i.Index), uint32(i.Version), i.Reserve, 0, 0, flags))
			w.attrU32(packetUID, i.UID)
		}
		if show&packetShowMeminfo != 0 {
			w.attr(packetMeminfo, words(uint32(i.Queued), i.Receive, 0, i.Send, 0, 0, 0, 0, 0))
		}
		w.end()
	})
	return 0
}
