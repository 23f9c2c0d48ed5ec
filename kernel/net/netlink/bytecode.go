package netlink

import (
	"encoding/binary"

	"hardtack/abi/linux"
	"hardtack/kernel/net/inet"
)

// bytecode is a filter of a dump: operations of four bytes (struct inet_diag_bc_op), some
// with an operand behind them. Each says how far to go on if it holds and if not; the end
// of the code accepts, one operation beyond it refuses.
type bytecode []byte

// Operations (INET_DIAG_BC_*). What else Linux has is refused.
const (
	bcNop       = 0
	bcJump      = 1
	bcLocalGE   = 2
	bcLocalLE   = 3
	bcPeerGE    = 4
	bcPeerLE    = 5
	bcLocalCond = 7
	bcPeerCond  = 8
	bcDevice    = 9
	bcLocalEQ   = 11
	bcPeerEQ    = 12

	sizeofOp   = 4
	sizeofCond = 8 // struct inet_diag_hostcond without the address
)

func (c bytecode) yes() int   { return int(c[1]) }
func (c bytecode) no() int    { return int(binary.LittleEndian.Uint16(c[2:])) }
func (c bytecode) port() int  { return int(binary.LittleEndian.Uint16(c[sizeofOp+2:])) }
func (c bytecode) cond() cond { return cond(c[sizeofOp:]) }

// cond is struct inet_diag_hostcond: a prefix of an address and a port.
type cond []byte

func (c cond) family() uint8 { return c[0] }
func (c cond) prefix() int   { return int(c[1]) }
func (c cond) port() int32   { return int32(binary.LittleEndian.Uint32(c[4:])) }

// valid reports whether the code ends, and reads nothing beyond its end.
func (c bytecode) valid() bool {
	if len(c) < sizeofOp {
		return false
	}
	begins := make([]bool, len(c)/sizeofOp+1) // where operations begin
	for at := 0; at < len(c); at += c[at:].yes() {
		if !c[at:].sound() {
			return false
		}
		begins[at/sizeofOp] = true
	}
	for at := 0; at < len(c); at += c[at:].yes() {
		to := at + c[at:].no()
		if c[at] != bcNop && to < len(c) && !begins[to/sizeofOp] {
			return false
		}
	}
	return true
}

// sound reports whether the first operation is complete, and goes on to what is left or,
// if it does not hold, to one operation beyond that at most.
func (c bytecode) sound() bool {
	if len(c) < sizeofOp {
		return false
	}
	size := c.operand()
	if size < 0 || len(c) < sizeofOp+size {
		return false
	}
	yes, no := c.yes(), c.no()
	if c[0] != bcNop && (no < sizeofOp || no > len(c)+sizeofOp || no&3 != 0) {
		return false
	}
	return yes >= sizeofOp+size && yes <= len(c) && yes&3 == 0
}

// operand is how many bytes follow the operation, and -1 for one that there is not.
func (c bytecode) operand() int {
	switch c[0] {
	case bcNop, bcJump:
		return 0
	case bcLocalGE, bcLocalLE, bcPeerGE, bcPeerLE, bcLocalEQ, bcPeerEQ, bcDevice:
		return 4
	case bcLocalCond, bcPeerCond:
		if len(c) < sizeofOp+sizeofCond {
			return -1
		}
		size, ok := map[uint8]int{linux.AF_UNSPEC: 0, linux.AF_INET: 4, linux.AF_INET6: 16}[c.cond().family()]
		if !ok || c.cond().prefix() > 8*size {
			return -1
		}
		return sizeofCond + size
	}
	return -1
}

// matches runs valid code.
func (c bytecode) matches(i *inet.Info) bool {
	for len(c) > 0 {
		n := c.no()
		if c.holds(i) {
			n = c.yes()
		}
		if n > len(c) {
			return false
		}
		c = c[n:]
	}
	return true
}

func (c bytecode) holds(i *inet.Info) bool {
	local, peer := int(portOf(i.Local.B[:])), int(portOf(i.Peer.B[:]))
	switch c[0] {
	case bcJump:
		return false
	case bcLocalEQ:
		return local == c.port()
	case bcLocalGE:
		return local >= c.port()
	case bcLocalLE:
		return local <= c.port()
	case bcPeerEQ:
		return peer == c.port()
	case bcPeerGE:
		return peer >= c.port()
	case bcPeerLE:
		return peer <= c.port()
	case bcDevice:
		return int32(binary.LittleEndian.Uint32(c[sizeofOp:])) == i.Device
	case bcLocalCond:
		return c.cond().fits(addressOf(i.Local.B[:], i.V6), int32(local), i.V6)
	case bcPeerCond:
		return c.cond().fits(addressOf(i.Peer.B[:], i.V6), int32(peer), i.V6)
	}
	return true
}

// fits reports whether an end of a socket has the port and begins with the address.
func (c cond) fits(a [16]byte, port int32, v6 bool) bool {
	if c.port() != -1 && c.port() != port {
		return false
	}
	b := a[:]
	switch family := c.family(); {
	case family == linux.AF_INET && v6:
		if [12]byte(b) != [12]byte{10: 0xff, 11: 0xff} {
			return false
		}
		b = b[12:] // an address of IPv4 in one of IPv6
	case family == linux.AF_INET6 && !v6:
		return false
	}
	whole, bits := c.prefix()/8, c.prefix()%8
	want := c[sizeofCond:]
	for k := range whole {
		if b[k] != want[k] {
			return false
		}
	}
	return bits == 0 || (b[whole]^want[whole])>>(8-bits) == 0
}
