package trace

import "hardtack/abi/linux"

// addressArg writes a socket address. What a call fills in has its length behind it.
func (c *call) addressArg(a *arg, i int, v uint64) {
	n := c.length(a)
	if a.ref == noLength {
		b := c.load(c.args[i+1], 4)
		if b == nil {
			c.pointer(v)
			return
		}
		n = uint64(le.Uint32(b))
	}
	c.address(v, int(min(n, 128)))
}

// address writes a socket address of n bytes.
func (c *call) address(addr uint64, n int) {
	if addr == 0 {
		c.text("NULL")
		return
	}
	b := c.load(addr, min(n, 128))
	if len(b) < 2 {
		c.pointer(addr)
		return
	}
	family := le.Uint16(b)
	c.text("{sa_family=")
	c.choice(uint64(family), familyNames)
	switch {
	case family == linux.AF_INET && len(b) >= 8:
		c.text(", sin_port=htons(")
		c.unsigned(uint64(b[2])<<8 | uint64(b[3]))
		c.text(`), sin_addr=inet_addr("`)
		c.ipv4(b[4:8])
		c.text(`")`)
	case family == linux.AF_INET6 && len(b) >= 28:
		c.text(", sin6_port=htons(")
		c.unsigned(uint64(b[2])<<8 | uint64(b[3]))
		c.text(`), sin6_addr="`)
		c.ipv6(b[8:24])
		c.text(`", sin6_scope_id=`)
		c.unsigned(uint64(le.Uint32(b[24:])))
	case family == linux.AF_UNIX && len(b) > 2:
		c.unixPath(b[2:])
	case family == linux.AF_NETLINK && len(b) >= 12:
		c.text(", nl_pid=")
		c.unsigned(uint64(le.Uint32(b[4:])))
		c.text(", nl_groups=")
		c.hex(uint64(le.Uint32(b[8:])))
	}
	c.byte('}')
}

func (c *call) unixPath(b []byte) {
	c.text(", sun_path=")
	if b[0] == 0 { // an abstract name
		c.byte('@')
		b = b[1:]
	} else if n := zero(b); n >= 0 {
		b = b[:n]
	}
	c.quoted(b, false)
}

func (c *call) ipv4(b []byte) {
	for i, x := range b {
		if i > 0 {
			c.byte('.')
		}
		c.unsigned(uint64(x))
	}
}

// ipv6 writes an address with its longest run of zeros left out (RFC 5952).
func (c *call) ipv6(b []byte) {
	at, long := -1, 1
	for i := 0; i < 8; i++ {
		n := 0
		for i+n < 8 && b[2*(i+n)] == 0 && b[2*(i+n)+1] == 0 {
			n++
		}
		if n > long {
			at, long = i, n
		}
	}
	for i := 0; i < 8; i++ {
		if i == at {
			c.text("::")
			i += long - 1
			continue
		}
		if i > 0 && i != at+long {
			c.byte(':')
		}
		c.number(uint64(b[2*i])<<8|uint64(b[2*i+1]), 16, 1)
	}
}
