package packet

import (
	"encoding/binary"
	"sync/atomic"

	"hardtack/abi/linux"
	"hardtack/kernel/base/accounts"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/ledger"
	"hardtack/kernel/base/mem"
	"hardtack/kernel/mm/vm"
	"hardtack/kernel/net/sock"
)

// area is the memory of a socket's rings, which the program maps as one: that of the ring
// to receive, then that of the ring to send.
type area struct {
	obj   *vm.Shared     // immutable: what is mapped
	pages []mem.Frame    // immutable: each with a reference
	user  *accounts.User // who is charged; immutable
}

// ring is what PACKET_RX_RING and PACKET_TX_RING make: frames of one size. A frame begins
// with a word that says whose it is: the kernel fills one of its own and gives it to the
// program, which gives it back. The lock is Sock.mu.
type ring struct {
	area    *area
	first   int   // the area's page where it begins
	count   int   // its pages; immutable
	size    int   // of a frame; immutable
	frames  int   // immutable
	perPage int   // immutable: frames of a block
	block   int   // bytes of a block; immutable
	version int32 // TPACKET_V1, V2 or V3; immutable
	reserve int   // PACKET_RESERVE; immutable
	head    int   // the frame that is next
	blocks  *blocks
}

// ringPool is the pages of all rings.
var ringPool = accounts.LatePool{Make: func() *accounts.Pool { return accounts.NewPool(int64(max(mem.Total()/8, 256))) }}

// headerLen is the length of a frame's header in a version.
func headerLen(version int32) int {
	if version == linux.TPACKET_V3 {
		return linux.SizeofTpacket3Hdr
	}
	return linux.SizeofTpacketHdr
}

// firstMAC is where a frame's packet begins at the earliest, before alignment and the
// link header: behind the header and a struct sockaddr_ll.
func firstMAC(version int32) int { return headerLen(version) + linux.SizeofSockaddrLl }

func align(n int) int { return (n + linux.TPACKET_ALIGNMENT - 1) &^ (linux.TPACKET_ALIGNMENT - 1) }

// setRing is PACKET_RX_RING and PACKET_TX_RING with a struct tpacket_req or, in version 3,
// a struct tpacket_req3; no blocks end the ring.
func (s *Sock) setRing(c *caller.Ctx, val []byte, sends bool) linux.Errno {
	s.mu.Lock()
	defer s.mu.Unlock()
	version := s.flags[linux.PACKET_VERSION]
	size := linux.SizeofTpacketReq
	if version == linux.TPACKET_V3 {
		size = linux.SizeofTpacketReq3
	}
	if len(val) < size {
		return linux.EINVAL
	}
	at := &s.ring
	if sends {
		at = &s.txRing
	}
	none := binary.LittleEndian.Uint32(val[4:]) == 0
	switch {
	case s.area != nil && s.area.obj.Mappings().Mapped():
		return linux.EBUSY
	case none && binary.LittleEndian.Uint32(val[12:]) != 0:
		return linux.EINVAL
	case !none && *at != nil:
		return linux.EBUSY
	}
	var r *ring
	if !none {
		var e linux.Errno
		if r, e = newRing(val, version, int(s.flags[linux.PACKET_RESERVE]), sends); e != 0 {
			return e
		}
	}
	old := *at
	*at = r
	if e := s.layOut(c.User()); e != 0 {
		*at = old
		return e
	}
	if r != nil && r.blocks != nil {
		s.openBlock(r)
	}
	if !sends {
		s.queue, s.used = nil, 0
	}
	return 0
}

// newRing checks what a program asks for.
func newRing(val []byte, version int32, reserve int, sends bool) (*ring, linux.Errno) {
	u32 := func(at int) uint32 { return binary.LittleEndian.Uint32(val[at:]) }
	blockSize, blocks, frameSize, frames := u32(0), u32(4), u32(8), u32(12)
	least := uint64(firstMAC(version)) + uint64(reserve)
	three := version == linux.TPACKET_V3
	switch {
	case int32(blockSize) <= 0 || blockSize%mem.PageSize != 0,
		three && uint64(blockSize) < blockStart(uint64(u32(20)))+least,
		uint64(frameSize) < least || frameSize%linux.TPACKET_ALIGNMENT != 0,
		blockSize/frameSize == 0 || blocks > ^uint32(0)/(blockSize/frameSize),
		blockSize/frameSize*blocks != frames,
		three && sends && (u32(16) != 0 || u32(20) != 0 || u32(24) != 0):
		return nil, linux.EINVAL
	}
	pages := uint64(blockSize/mem.PageSize) * uint64(blocks)
	if pages > uint64(mem.Total()) {
		return nil, linux.ENOMEM
	}
	r := &ring{
		size: int(frameSize), frames: int(frames), perPage: int(blockSize / frameSize), block: int(blockSize),
		version: version, reserve: reserve, count: int(pages),
	}
	if three && !sends {
		r.blocks = newBlocks(int(blocks), u32(16), u32(20), u32(24))
	}
	return r, 0
}

// layOut gives the rings an area, with what the one that stays had in it. Called with mu
// held.
func (s *Sock) layOut(user *accounts.User) linux.Errno {
	n := 0
	for _, r := range []*ring{s.ring, s.txRing} {
		if r != nil {
			n += r.count
		}
	}
	var a *area
	if n > 0 {
		var e linux.Errno
		if a, e = newArea(user, n); e != 0 {
			return e
		}
	}
	old := s.area
	s.area, n = a, 0
	for _, r := range []*ring{s.ring, s.txRing} {
		if r == nil {
			continue
		}
		if r.area != nil {
			for i := range r.count {
				copy(a.pages[n+i].Bytes()[:mem.PageSize], r.area.pages[r.first+i].Bytes()[:mem.PageSize])
			}
		}
		r.area, r.first = a, n
		n += r.count
	}
	if old != nil {
		old.free()
	}
	return 0
}

// newArea makes memory for rings.
func newArea(user *accounts.User, n int) (*area, linux.Errno) {
	if n > mem.Total() || !ringPool.Get().Charge(user, int64(n)) {
		return nil, linux.ENOMEM
	}
	a := &area{obj: vm.NewShared(uint64(n)), user: user}
	for i := range n {
		f, e := a.obj.Page(uint64(i), true)
		if e != 0 {
			a.drop(int64(n))
			return nil, linux.ENOMEM
		}
		a.pages = append(a.pages, f)
	}
	return a, 0
}

// free gives the memory back that is not mapped.
func (a *area) free() { a.drop(int64(len(a.pages))) }

func (a *area) drop(charged int64) {
	mem.PutBatch(a.pages)
	a.pages = nil
	a.obj.Detach()
	ringPool.Get().Release(a.user, charged)
}

// offset is where a frame begins.
func (r *ring) offset(i int) int { return i/r.perPage*r.block + i%r.perPage*r.size }

// word is the aligned 8 bytes at an offset.
func (r *ring) word(at int) *uint64 {
	return &r.area.pages[r.first+at/mem.PageSize].Words()[at%mem.PageSize/8]
}

// copy writes bytes at an offset.
func (r *ring) copy(at int, b []byte) {
	for len(b) > 0 {
		page := r.area.pages[r.first+at/mem.PageSize].Bytes()[:mem.PageSize]
		n := copy(page[at%mem.PageSize:], b)
		at, b = at+n, b[n:]
	}
}

// read reads bytes at an offset.
func (r *ring) read(b []byte, at int) {
	for len(b) > 0 {
		page := r.area.pages[r.first+at/mem.PageSize].Bytes()[:mem.PageSize]
		n := copy(b, page[at%mem.PageSize:])
		at, b = at+n, b[n:]
	}
}

// filled reports whether the program has a frame to look at: the last one that the
// kernel gave it.
func (r *ring) filled() bool {
	if r.blocks != nil {
		return r.blockFilled()
	}
	i := r.head - 1
	if i < 0 {
		i = r.frames - 1
	}
	return r.status(i) != 0
}

// status is the first word of a frame, as long as it is in this version.
func (r *ring) status(i int) uint64 {
	w := atomic.LoadUint64(r.word(r.offset(i)))
	if r.version == linux.TPACKET_V1 {
		return w
	}
	return w & (1<<32 - 1)
}

// places returns where in a frame the link header and the network header of a packet lie.
func (r *ring) places(m *message, raw bool) (mac, net int) {
	first := firstMAC(r.version)
	if !raw {
		net = align(first) + 16 + r.reserve
		return net, net
	}
	net = align(first+16) + r.reserve
	return net - m.net, net
}

// put fills the next frame; false if it is the program's.
func (r *ring) put(m *message, data []byte, raw bool) bool {
	if r.status(r.head) != 0 {
		return false
	}
	at := r.offset(r.head)
	mac, net := r.places(m, raw)
	snap := min(len(data), max(r.size-mac, 0))
	h := make([]byte, firstMAC(r.version))
	put32, put16 := binary.LittleEndian.PutUint32, binary.LittleEndian.PutUint16
	ns := m.when % 1e9
	first := uint64(m.status)
	if r.version == linux.TPACKET_V2 {
		first |= uint64(m.length) << 32
		put32(h[8:], uint32(snap))
		put16(h[12:], uint16(mac))
		put16(h[14:], uint16(net))
		put32(h[16:], uint32(m.when/1e9))
		put32(h[20:], uint32(ns))
	} else {
		put32(h[8:], uint32(m.length))
		put32(h[12:], uint32(snap))
		put16(h[16:], uint16(mac))
		put16(h[18:], uint16(net))
		put32(h[20:], uint32(m.when/1e9))
		put32(h[24:], uint32(ns/1000))
	}
	copy(h[linux.SizeofTpacketHdr:], m.from.Bytes())
	r.copy(at+8, h[8:])
	r.copy(at+mac, data[:snap])
	atomic.StoreUint64(r.word(at), first) // last: now it is the program's
	if r.head++; r.head == r.frames {
		r.head = 0
	}
	return true
}

// MapWhole gives the rings to mmap(2), which takes all of them or nothing.
func (s *Sock) MapWhole(off, length uint64) (mem.Object, linux.Errno) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if off != 0 || s.area == nil || length != uint64(len(s.area.pages))*mem.PageSize {
		return nil, linux.EINVAL
	}
	return s.area.obj, 0
}

// Holds adds the socket with its queue, and its rings' pages.
func (s *Sock) Holds(sum *ledger.Sum) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sum.Add(ledger.Sockets, ledger.Of[Sock]()+ledger.Map[int32, int32](len(s.flags)))
	s.Opt.Holds(sum)
	n := ledger.Array[*message](cap(s.queue))
	for _, m := range s.queue {
		n += ledger.Of[message]() + ledger.Size(int64(cap(m.data)))
	}
	sum.Add(ledger.Messages, n)
	if s.area != nil {
		sum.Add(ledger.Sockets, ledger.Of[area]()+ledger.Array[mem.Frame](cap(s.area.pages)))
		sum.Add(ledger.FilePages, int64(len(s.area.pages))*mem.PageSize)
	}
}

var _ sock.Socket = (*Sock)(nil)
