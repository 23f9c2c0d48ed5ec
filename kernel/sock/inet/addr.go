package inet

import (
	"math/rand/v2"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"

	"hardtack/abi/linux"
	"hardtack/kernel/sock"
)

func randSourceUint32() uint32 { return rand.Uint32() }

// parseAddr decodes sockaddr_in or sockaddr_in6. An unspecified address has
// length 0, as netstack wants it; a v4-mapped one becomes IPv4.
func parseAddr(a *sock.Addr, v6 bool) (fa tcpip.FullAddress, e linux.Errno) {
	b := a.Bytes()
	least, family := linux.SizeofSockaddrIn, linux.AF_INET
	if v6 {
		least, family = linux.SizeofSockaddrIn6-4, linux.AF_INET6 // without sin6_scope_id, as in RFC 2133
	}
	if len(b) < least {
		return fa, linux.EINVAL
	}
	if a.Family() != family {
		return fa, linux.EAFNOSUPPORT
	}
	fa.Port = uint16(b[2])<<8 | uint16(b[3])
	if !v6 {
		if ip := [4]byte(b[4:8]); ip != [4]byte{} {
			fa.Addr = tcpip.AddrFrom4(ip)
		}
		return fa, 0
	}
	ip := [16]byte(b[8:24])
	if ip != [16]byte{} {
		fa.Addr = tcpip.AddrFrom16(ip)
	}
	if len(b) >= linux.SizeofSockaddrIn6 && ip[0] == 0xfe && ip[1]&0xc0 == 0x80 {
		scope, _ := sock.Int(b[24:])
		fa.NIC = tcpip.NICID(scope)
	}
	return fa, 0
}

// unmap turns a v4-mapped address into IPv4.
func unmap(a tcpip.Address) tcpip.Address {
	if a.Len() == 16 && header.IsV4MappedAddress(a) {
		b := a.As16()
		return tcpip.AddrFrom4([4]byte(b[12:]))
	}
	return a
}

// putAddr encodes an address for a socket of the family.
func putAddr(a *sock.Addr, fa tcpip.FullAddress, v6 bool) {
	if !v6 {
		var b [linux.SizeofSockaddrIn]byte
		b[0] = linux.AF_INET
		b[2], b[3] = byte(fa.Port>>8), byte(fa.Port)
		if fa.Addr.Len() == 4 {
			ip := fa.Addr.As4()
			copy(b[4:], ip[:])
		}
		a.Set(b[:])
		return
	}
	var b [linux.SizeofSockaddrIn6]byte
	b[0] = linux.AF_INET6
	b[2], b[3] = byte(fa.Port>>8), byte(fa.Port)
	switch fa.Addr.Len() {
	case 4:
		b[18], b[19] = 0xff, 0xff
		ip := fa.Addr.As4()
		copy(b[20:], ip[:])
	case 16:
		ip := fa.Addr.As16()
		copy(b[8:], ip[:])
		if ip[0] == 0xfe && ip[1]&0xc0 == 0x80 {
			sock.PutInt(b[24:], int32(fa.NIC))
		}
	}
	a.Set(b[:])
}
