package packet

import (
	"encoding/binary"
	"sync/atomic"

	"hardtack/abi/linux"
	"hardtack/kernel/base/accounts"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/mem"
	"hardtack/kernel/fs/vfs"
	"hardtack/kernel/mm/vm"
	"hardtack/kernel/net/sock"
)

// ring is what PACKET_RX_RING makes: memory that the program maps, in frames of one
// size. A frame begins with a word that says whose it is: the kernel fills one of its
// own and gives it to the program, which gives it back. The lock is Sock.mu.
type ring struct {
	obj     *vm.Shared     // immutable: what is mapped
	pages   []mem.Frame    // immutable: each with a reference
	size    int            // of a frame; immutable
	frames  int            // immutable
	perPage int            // immutable: frames of a block
	block   int            // bytes of a block; immutable
	version int32          // TPACKET_V1 or V2; immutable
	reserve int            // PACKET_RESERVE; immutable
	head    int            // the frame that is next
	user    *accounts.User // who is charged; immutable
}

// ringPool is the pages of all rings.
var ringPool = accounts.LatePool{Make: func() *accounts.Pool { return accounts.NewPool(int64(max(mem.Total()/8, 256))) }}

// firstMAC is where a frame's packet begins at the earliest, before alignment and the
// link header: behind the header and a struct sockaddr_ll.
const firstMAC = linux.SizeofTpacketHdr + linux.SizeofSockaddrLl

// setRing is PACKET_RX_RING with a struct tpacket_req; no blocks end the ring.
func (s *Sock) setRing(c *caller.Ctx, val []byte) linux.Errno {
	if len(val) < linux.SizeofTpacketReq {
		return linux.EINVAL
	}
	blockSize, blocks := binary.LittleEndian.Uint32(val), binary.LittleEndian.Uint32(val[4:])
	frameSize, frames := binary.LittleEndian.Uint32(val[8:]), binary.LittleEndian.Uint32(val[12:])
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.ring
	switch {
	case old != nil && old.obj.Mappings().Mapped():
		return linux.EBUSY
	case blocks == 0:
		if frames != 0 {
			return linux.EINVAL
		}
		s.ring = nil
		if old != nil {
			old.free()
		}
		return 0
	case old != nil:
		return linux.EBUSY
	case int32(blockSize) <= 0 || blockSize%mem.PageSize != 0,
		uint64(frameSize) < firstMAC+uint64(s.flags[linux.PACKET_RESERVE]) || frameSize%linux.TPACKET_ALIGNMENT != 0,
		blockSize/frameSize == 0 || blocks > ^uint32(0)/(blockSize/frameSize),
		blockSize/frameSize*blocks != frames:
		return linux.EINVAL
	}
	r := &ring{
		size: int(frameSize), frames: int(frames), perPage: int(blockSize / frameSize), block: int(blockSize),
		version: s.flags[linux.PACKET_VERSION], reserve: int(s.flags[linux.PACKET_RESERVE]), user: c.User(),
	}
	if e := r.alloc(uint64(blockSize/mem.PageSize) * uint64(blocks)); e != 0 {
		return e
	}
	s.ring, s.queue, s.used = r, nil, 0
	return 0
}

// alloc makes the ring's memory.
func (r *ring) alloc(pages uint64) linux.Errno {
	if pages > uint64(mem.Total()) || !ringPool.Get().Charge(r.user, int64(pages)) {
		return linux.ENOMEM
	}
	r.obj = vm.NewShared(pages)
	for i := range pages {
		f, e := r.obj.Page(i, true)
		if e != 0 {
			r.drop(int64(pages))
			return linux.ENOMEM
		}
		r.pages = append(r.pages, f)
	}
	return 0
}

// free gives the memory back that is not mapped.
func (r *ring) free() { r.drop(int64(len(r.pages))) }

func (r *ring) drop(charged int64) {
	mem.PutBatch(r.pages)
	r.pages = nil
	r.obj.Detach()
	ringPool.Get().Release(r.user, charged)
}

// offset is where a frame begins.
func (r *ring) offset(i int) int { return i/r.perPage*r.block + i%r.perPage*r.size }

// word is the aligned 8 bytes at an offset.
func (r *ring) word(at int) *uint64 {
	return &r.pages[at/mem.PageSize].Words()[at%mem.PageSize/8]
}

// copy writes bytes at an offset.
func (r *ring) copy(at int, b []byte) {
	for len(b) > 0 {
		page := r.pages[at/mem.PageSize].Bytes()[:mem.PageSize]
		n := copy(page[at%mem.PageSize:], b)
		at, b = at+n, b[n:]
	}
}

// filled reports whether the program has a frame to look at: the last one that the
// kernel gave it.
func (r *ring) filled() bool {
	i := r.head - 1
	if i < 0 {
		i = r.frames - 1
	}
	return r.status(i) != 0
}

// status is the first word of a frame, as long as it is in this version.
func (r *ring) status(i int) uint64 {
	w := atomic.LoadUint64(r.word(r.offset(i)))
	if r.version == linux.TPACKET_V2 {
		return w & (1<<32 - 1)
	}
	return w
}

// put fills the next frame; false if it is the program's.
func (r *ring) put(m *message, data []byte, raw bool) bool {
	if r.status(r.head) != 0 {
		return false
	}
	at := r.offset(r.head)
	align := func(n int) int { return (n + linux.TPACKET_ALIGNMENT - 1) &^ (linux.TPACKET_ALIGNMENT - 1) }
	net := align(firstMAC+16) + r.reserve
	mac := net - m.net
	if !raw {
		net = align(firstMAC) + 16 + r.reserve
		mac = net
	}
	snap := min(len(data), max(r.size-mac, 0))
	var h [firstMAC]byte
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

// Map gives the ring to mmap(2).
func (s *Sock) Map(*caller.Ctx, *vfs.File) (mem.Object, linux.Errno) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ring == nil {
		return nil, linux.EINVAL
	}
	return s.ring.obj, 0
}

var _ sock.Socket = (*Sock)(nil)
