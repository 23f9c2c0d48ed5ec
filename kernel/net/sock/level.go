package sock

import "hardtack/abi/linux"

// ForeignLevel says which errors getsockopt and setsockopt give at a level that the
// socket does not have, before they look at any argument; 0 for a level that it has.
func (b *Base) ForeignLevel(level int32) (get, set linux.Errno) {
	if b.hasLevel(level) {
		return 0, 0
	}
	switch b.Domain {
	case linux.AF_UNIX:
		return linux.EOPNOTSUPP, linux.EOPNOTSUPP
	case linux.AF_INET:
		return linux.EOPNOTSUPP, linux.ENOPROTOOPT
	}
	return linux.ENOPROTOOPT, linux.ENOPROTOOPT
}

func (b *Base) hasLevel(level int32) bool {
	if level == linux.SOL_SOCKET {
		return true
	}
	raw := b.Type == linux.SOCK_RAW
	switch b.Domain {
	case linux.AF_INET, linux.AF_INET6:
		six := b.Domain == linux.AF_INET6
		switch level {
		case linux.IPPROTO_IP:
			return !six || !raw
		case linux.IPPROTO_IPV6:
			return six
		case linux.IPPROTO_TCP:
			return b.Type == linux.SOCK_STREAM
		case linux.IPPROTO_UDP, linux.SOL_UDPLITE:
			return b.Type == linux.SOCK_DGRAM && b.Protocol != linux.IPPROTO_ICMP && b.Protocol != linux.IPPROTO_ICMPV6
		case linux.SOL_RAW:
			return raw
		case linux.IPPROTO_ICMPV6:
			return six && raw
		}
		return false
	case linux.AF_NETLINK:
		return level == linux.SOL_NETLINK
	case linux.AF_PACKET:
		return level == linux.SOL_PACKET
	case linux.AF_UNIX:
		return false
	}
	return true
}
