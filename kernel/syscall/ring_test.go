package syscall_test

import (
	"fmt"

	"golang.org/x/sys/unix"

	"hardtack/abi/linux"
)

// packetSocket opens a packet socket that hears IPv4 on lo.
func (p *prog) packetSocket() uint64 {
	defer p.cut()()
	fd := p.must(linux.SYS_socket, unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_NONBLOCK, 0)
	p.must(linux.SYS_bind, fd, p.give(linkAddr(8, 1)), 20)
	return fd
}

// linkAddr is a struct sockaddr_ll.
func linkAddr(proto uint16, index uint32) []byte {
	b := le.AppendUint16(nil, unix.AF_PACKET)
	b = le.AppendUint32(le.AppendUint16(b, proto), index)
	return append(b, 0, 0, 0, 6, 0, 0, 0, 0, 0, 0, 0, 0)
}

// chatter sends n datagrams over lo.
func (p *prog) chatter(n int) {
	defer p.cut()()
	s := p.must(linux.SYS_socket, unix.AF_INET, unix.SOCK_DGRAM, 0)
	r := p.must(linux.SYS_socket, unix.AF_INET, unix.SOCK_DGRAM, 0)
	to := p.give(sockaddr(1, 7301))
	p.must(linux.SYS_bind, r, to, 16)
	for range n {
		p.must(linux.SYS_sendto, s, p.str("12345678"), 8, 0, to, 16)
		p.must(linux.SYS_poll, p.ints(uint32(r), unix.POLLIN), 1, 5000)
		p.must(linux.SYS_recvfrom, r, p.room(16), 16, 0, 0, 0)
	}
	p.close(s, r)
}

// fanouts are groups of packet sockets.
func fanouts(p *prog) {
	p.loopback()
	const fanout, data = unix.PACKET_FANOUT, unix.PACKET_FANOUT_DATA
	join := func(what string, fd uint64, id, typ uint32) {
		p.do(what, linux.SYS_setsockopt, fd, unix.SOL_PACKET, fanout, p.ints(id|typ<<16), 4)
	}
	one := p.must(linux.SYS_socket, unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_NONBLOCK, 0)
	join("not bound", one, 1, 0)
	p.close(one)
	for typ := range uint32(6) {
		a, b := p.packetSocket(), p.packetSocket()
		join(fmt.Sprint("kind ", typ), a, 10+typ, typ)
		join("again", a, 10+typ, typ)
		join("another kind", b, 10+typ, typ^1)
		join("other flags", b, 10+typ, typ|0x80<<8)
		join("second", b, 10+typ, typ)
		if typ != 4 { // the queue of a packet differs
			p.chatter(8)
		}
		v, n := p.room(16), p.ints(4)
		p.do("which", linux.SYS_getsockopt, a, unix.SOL_PACKET, fanout, v, n)
		p.note("%#x", p.u32(v))
		total := uint32(0)
		for _, fd := range []uint64{a, b} {
			p.must(linux.SYS_getsockopt, fd, unix.SOL_PACKET, unix.PACKET_STATISTICS, v, p.ints(8))
			total += p.u32(v)
		}
		p.note("both have %v", total > 0)
		p.close(a)
		p.chatter(1)
		p.close(b)
	}
	a, b := p.packetSocket(), p.packetSocket()
	p.do("short", linux.SYS_setsockopt, a, unix.SOL_PACKET, fanout, p.ints(1), 3)
	p.do("between", linux.SYS_setsockopt, a, unix.SOL_PACKET, fanout, p.ints(1, 0), 6)
	join("unknown kind", a, 1, 99)
	join("unique with a number", a, 1, 0x20<<8)
	p.do("most", linux.SYS_setsockopt, a, unix.SOL_PACKET, fanout, p.ints(50, 1), 8)
	join("full", b, 50, 0)
	p.do("other most", linux.SYS_setsockopt, b, unix.SOL_PACKET, fanout, p.ints(50, 7), 8)
	join("by program", b, 60, 6)
	ret := []byte{6, 0, 0, 0, 1, 0, 0, 0}
	for _, n := range []uint64{1, 0, 5000} {
		p.do(fmt.Sprint("program of ", n), linux.SYS_setsockopt, b, unix.SOL_PACKET, data, p.words(n, p.give(ret)), 16)
	}
	p.do("short program", linux.SYS_setsockopt, b, unix.SOL_PACKET, data, p.words(1, p.give(ret)), 8)
	p.do("of another kind", linux.SYS_setsockopt, a, unix.SOL_PACKET, data, p.words(1, p.give(ret)), 16)
	p.chatter(2)
	p.do("bind in a group", linux.SYS_bind, b, p.give(linkAddr(8, 1)), 20)
	p.close(a, b)
}

// rings are packet sockets' rings of each version, in both directions.
func rings(p *prog) {
	p.loopback()
	const size, blocks, frame = 4096, 4, 512
	for version := range uint32(3) {
		for _, out := range []bool{false, true} {
			fd := p.packetSocket()
			name := uint64(unix.PACKET_RX_RING)
			if out {
				name = unix.PACKET_TX_RING
			}
			p.do(fmt.Sprint("version ", version, " out ", out), linux.SYS_setsockopt, fd, unix.SOL_PACKET, unix.PACKET_VERSION, p.ints(version), 4)
			wait := uint32(10) // milliseconds until a block of version 3 is handed over
			if out {
				wait = 0
			}
			req := p.ints(size, blocks, frame, size/frame*blocks, wait, 0, 0)
			n := uint64(16)
			if version == 2 {
				p.do("short request", linux.SYS_setsockopt, fd, unix.SOL_PACKET, name, req, 16)
				n = 28
			}
			p.do("ring", linux.SYS_setsockopt, fd, unix.SOL_PACKET, name, req, n)
			p.do("version now", linux.SYS_setsockopt, fd, unix.SOL_PACKET, unix.PACKET_VERSION, p.ints(1), 4)
			p.do("reserve now", linux.SYS_setsockopt, fd, unix.SOL_PACKET, unix.PACKET_RESERVE, p.ints(8), 4)
			for _, length := range []uint64{size, 2 * size * blocks} {
				p.mapAndUnmap("map another length", length, fd, 0)
			}
			p.mapAndUnmap("map from another place", size*blocks, fd, size)
			m := p.ok("map", linux.SYS_mmap, 0, size*blocks, 3, unix.MAP_SHARED, fd, 0)
			p.do("ring while mapped", linux.SYS_setsockopt, fd, unix.SOL_PACKET, name, p.ints(0, 0, 0, 0, 0, 0, 0), n)
			if _, bad := failed(m); !bad {
				if out {
					p.sendRing(fd, m, version)
				} else {
					p.receiveRing(fd, m, version)
				}
				p.do("unmap", linux.SYS_munmap, m, size*blocks)
			}
			p.do("no ring", linux.SYS_setsockopt, fd, unix.SOL_PACKET, name, p.ints(0, 0, 0, 0, 0, 0, 0), n)
			p.close(fd)
		}
	}
}

// mapAndUnmap notes whether a ring can be mapped so.
func (p *prog) mapAndUnmap(what string, length, fd, off uint64) {
	m := p.ok(what, linux.SYS_mmap, 0, length, 3, unix.MAP_SHARED, fd, off)
	if _, bad := failed(m); !bad {
		p.must(linux.SYS_munmap, m, length)
	}
}

// receiveRing looks at packets that a ring got.
func (p *prog) receiveRing(fd, m uint64, version uint32) {
	p.chatter(3)
	p.do("wait", linux.SYS_poll, p.ints(uint32(fd), unix.POLLIN), 1, 5000)
	switch version {
	case 0:
		p.note("status %d length %d of %d", p.u64(m)&1, p.u32(m+12), p.u32(m+8))
		p.write(m, make([]byte, 8))
	case 1:
		p.note("status %d length %d of %d", p.u32(m)&1, p.u32(m+8), p.u32(m+4))
		p.write(m, make([]byte, 4))
	case 2:
		p.note("block %d status %d first at %d", p.u32(m), p.u32(m+8)&1, p.u32(m+16))
		p.write(m+8, make([]byte, 4))
	}
	p.do("receive", linux.SYS_recvfrom, fd, p.room(64), 64, unix.MSG_DONTWAIT, 0, 0)
}

// sendRing sends what a ring holds.
func (p *prog) sendRing(fd, m uint64, version uint32) {
	frame := func(i, status, length uint32) {
		at := m + uint64(i)*512
		switch version {
		case 0:
			p.write(at+8, le.AppendUint32(nil, length))
			p.write(at, le.AppendUint64(nil, uint64(status)))
		case 1:
			p.write(at+4, le.AppendUint32(nil, length))
			p.write(at, le.AppendUint32(nil, status))
		case 2:
			p.write(at+12, le.AppendUint32(nil, length))
			p.write(at+20, le.AppendUint32(nil, status))
		}
	}
	status := func(i uint64) uint32 {
		if version == 2 {
			return p.u32(m + i*512 + 20)
		}
		return p.u32(m + i*512)
	}
	to := p.give(linkAddr(8, 1))
	p.do("send nothing", linux.SYS_sendto, fd, 0, 0, unix.MSG_DONTWAIT, 0, 0)
	frame(0, 1, 60)
	frame(1, 1, 40)
	p.do("send", linux.SYS_sendto, fd, 0, 0, unix.MSG_DONTWAIT, to, 20)
	p.note("status %d %d", status(0), status(1))
	frame(2, 1, 100000)
	p.do("send a long one", linux.SYS_sendto, fd, 0, 0, unix.MSG_DONTWAIT, to, 20)
	p.note("status %d", status(2))
	p.do("send to none", linux.SYS_sendto, fd, 0, 0, unix.MSG_DONTWAIT, p.give(linkAddr(8, 99)), 20)
}
