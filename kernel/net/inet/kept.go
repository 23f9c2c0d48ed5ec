package inet

import (
	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/creds"
	"hardtack/kernel/net/sock"
)

// keptOption is an int option at IPPROTO_IP or IPPROTO_IPV6 that the socket
// checks and keeps for getsockopt.
type keptOption struct {
	level, name  int32
	least, most  int32 // beyond them EINVAL; a boolean option takes all values
	first        int32 // the value of a new socket
	how          uint8
	firstForFour int32 // the first value is this on a socket of AF_INET
}

// How a keptOption behaves.
const (
	keptBool   uint8 = 1 << iota // any value but 0 counts as 1
	keptByte                     // setsockopt needs at least a byte, at IPPROTO_IP
	keptShort                    // setsockopt takes a value too short for 0, at IPPROTO_IPV6
	keptRaw                      // only of raw sockets
	keptRecord                   // not of streams: EINVAL
	keptPower                    // other than 0 needs CAP_NET_RAW or CAP_NET_ADMIN
	keptDevice                   // an interface's index in network order
	keptSpan                     // two ports of 16 bits, of which 0 is none
)

// No packet of this machine has IP options or is shaped by these, and what
// receivers would be told of them does not occur.
var keptOptions = [...]keptOption{
	{level: linux.IPPROTO_IP, name: linux.IP_RECVOPTS, how: keptBool},
	{level: linux.IPPROTO_IP, name: linux.IP_RETOPTS, how: keptBool},
	{level: linux.IPPROTO_IP, name: linux.IP_PASSSEC, how: keptBool},
	{level: linux.IPPROTO_IP, name: linux.IP_NODEFRAG, how: keptBool | keptRaw},
	{level: linux.IPPROTO_IP, name: linux.IP_CHECKSUM, how: keptBool},
	{level: linux.IPPROTO_IP, name: linux.IP_RECVFRAGSIZE, how: keptBool | keptRecord},
	{level: linux.IPPROTO_IP, name: linux.IP_RECVERR_RFC4884, most: 1},
	{level: linux.IPPROTO_IP, name: linux.IP_MINTTL, most: 255, how: keptByte},
	{level: linux.IPPROTO_IP, name: linux.IP_UNICAST_IF, how: keptDevice},
	{level: linux.IPPROTO_IP, name: linux.IP_LOCAL_PORT_RANGE, how: keptSpan},
	{level: linux.IPPROTO_IP, name: linux.IP_MULTICAST_ALL, most: 1, firstForFour: 1, how: keptByte},
	{level: linux.IPPROTO_IPV6, name: linux.IPV6_2292PKTINFO, how: keptBool},
	{level: linux.IPPROTO_IPV6, name: linux.IPV6_2292HOPOPTS, how: keptBool},
	{level: linux.IPPROTO_IPV6, name: linux.IPV6_2292DSTOPTS, how: keptBool},
	{level: linux.IPPROTO_IPV6, name: linux.IPV6_2292RTHDR, how: keptBool},
	{level: linux.IPPROTO_IPV6, name: linux.IPV6_2292HOPLIMIT, how: keptBool},
	{level: linux.IPPROTO_IPV6, name: linux.IPV6_FLOWINFO, how: keptBool},
	{level: linux.IPPROTO_IPV6, name: linux.IPV6_FLOWINFO_SEND, how: keptBool},
	{level: linux.IPPROTO_IPV6, name: linux.IPV6_ROUTER_ALERT_ISOLATE, how: keptBool},
	{level: linux.IPPROTO_IPV6, name: linux.IPV6_RECVERR_RFC4884, most: 1},
	{level: linux.IPPROTO_IPV6, name: linux.IPV6_RECVHOPOPTS, how: keptBool},
	{level: linux.IPPROTO_IPV6, name: linux.IPV6_RECVRTHDR, how: keptBool},
	{level: linux.IPPROTO_IPV6, name: linux.IPV6_RECVDSTOPTS, how: keptBool},
	{level: linux.IPPROTO_IPV6, name: linux.IPV6_RECVPATHMTU, how: keptBool},
	{level: linux.IPPROTO_IPV6, name: linux.IPV6_DONTFRAG, how: keptBool | keptShort},
	{level: linux.IPPROTO_IPV6, name: linux.IPV6_AUTOFLOWLABEL, first: 1, how: keptBool | keptShort},
	{level: linux.IPPROTO_IPV6, name: linux.IPV6_RECVFRAGSIZE, how: keptBool | keptShort},
	{level: linux.IPPROTO_IPV6, name: linux.IPV6_MINHOPCOUNT, most: 255},
	{level: linux.IPPROTO_IPV6, name: linux.IPV6_UNICAST_IF, how: keptDevice},
	{level: linux.IPPROTO_IPV6, name: linux.IPV6_MULTICAST_ALL, first: 1, how: keptBool},
}

// Places of the options that gates look at.
var (
	keptMinTTL  = keptIndex(linux.IPPROTO_IP, linux.IP_MINTTL)
	keptMinHops = keptIndex(linux.IPPROTO_IPV6, linux.IPV6_MINHOPCOUNT)
	keptAll4    = keptIndex(linux.IPPROTO_IP, linux.IP_MULTICAST_ALL)
	keptAll6    = keptIndex(linux.IPPROTO_IPV6, linux.IPV6_MULTICAST_ALL)
)

// keptIndex returns an option's place in keptOptions, or -1.
func keptIndex(level, name int32) int {
	for i := range keptOptions {
		if k := &keptOptions[i]; k.name == name && k.level == level {
			return i
		}
	}
	return -1
}

// kept are the values; nil while all are the first. Immutable: a change makes a
// copy, so that accepted connections share their listener's.
type kept struct {
	ints     [len(keptOptions)]int32
	fragSize int32                        // IPV6_MTU
	srcPrefs int32                        // IPV6_ADDR_PREFERENCES
	sticky   [linux.SizeofIn6Pktinfo]byte // IPV6_PKTINFO
}

func (s *inetSock) getKept(i int) int32 {
	if k := s.ip.kept; k != nil {
		return k.ints[i]
	}
	return s.firstKept(i)
}

func (s *inetSock) firstKept(i int) int32 {
	if !s.v6 {
		return keptOptions[i].first | keptOptions[i].firstForFour
	}
	return keptOptions[i].first
}

// setKept checks and keeps a value that was given with n bytes; called with mu held.
func (s *inetSock) setKept(c *caller.Ctx, i int, v int32, n int) linux.Errno {
	k := &keptOptions[i]
	switch {
	case k.how&keptRaw != 0 && s.Type != linux.SOCK_RAW:
		return linux.ENOPROTOOPT
	case k.how&keptRecord != 0 && s.Type == linux.SOCK_STREAM,
		k.how&keptByte != 0 && n < 1,
		k.how&(keptDevice|keptSpan) != 0 && n != 4,
		k.level == linux.IPPROTO_IPV6 && k.how&keptShort == 0 && n < 4:
		return linux.EINVAL
	case k.how&keptPower != 0 && v != 0 && !c.Cred().Has(creds.CapNetRaw) && !c.Cred().Has(creds.CapNetAdmin):
		return linux.EPERM
	case k.how&keptBool != 0:
		v = b2i(v != 0)
	case k.how&keptDevice != 0:
		if index := int32(swap32(uint32(v))); index != 0 && s.net.InterfaceByIndex(index) == nil {
			return linux.EADDRNOTAVAIL
		}
	case k.how&keptSpan != 0:
		if lo, hi := uint16(v), uint16(uint32(v)>>16); lo > hi && hi != 0 {
			return linux.EINVAL
		}
	case v < k.least || v > k.most:
		return linux.EINVAL
	}
	if d, ok := s.self.(*Datagram); ok && k.how&keptDevice != 0 {
		d.unicastIf.Store(int32(swap32(uint32(v))))
	}
	s.changeKept(func(k *kept) { k.ints[i] = v })
	if i == keptMinTTL || i == keptMinHops || i == keptAll4 || i == keptAll6 {
		s.regate()
	}
	return 0
}

// changeKept changes what is kept; called with mu held.
func (s *inetSock) changeKept(change func(*kept)) {
	k := new(kept)
	if s.ip.kept != nil {
		*k = *s.ip.kept
	} else {
		for i := range k.ints {
			k.ints[i] = s.firstKept(i)
		}
	}
	change(k)
	s.ip.kept = k
}

func swap32(v uint32) uint32 { return v<<24 | v>>24 | v<<8&0xff0000 | v>>8&0xff00 }

func b2i(b bool) int32 {
	if b {
		return 1
	}
	return 0
}

// putIP encodes an int result of getsockopt at IPPROTO_IP: a small value may be
// a single byte.
func putIP(val []byte, v int32) (int, linux.Errno) {
	if n := len(val); n > 0 && n < 4 && v >= 0 && v <= 255 {
		val[0] = byte(v)
		return 1, 0
	}
	return sock.PutInt(val, v), 0
}
