package packet

import (
	"encoding/binary"
	"sync/atomic"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip"

	"hardtack/abi/linux"
	"hardtack/kernel/base/clocks"
	"hardtack/kernel/base/wait"
)

// blocks are a receive ring of version 3: packets of any length are in a block one behind
// the other, and the program gets a whole block, when it is full or some time after its
// first packet.
type blocks struct {
	n      int           // how many; immutable
	priv   int           // bytes at each one's start for the program; immutable
	keep   time.Duration // how long a block with packets waits for more; immutable
	hash   bool          // a hash of the flow goes with each packet; immutable
	now    int           // the block that is filled
	open   bool          // it is the kernel's; not while the program has all
	seq    uint64        // of the block
	count  uint32        // packets in it
	next   int           // where the next one goes, from the block's start
	last   int           // where the last one lies
	ended  int64         // when the last one came
	frozen uint32        // how often the program had all, since PACKET_STATISTICS asked
	timer  tcpip.Timer   // nil until it is needed
}

// keepBlock is how long a block waits where the program does not say.
const keepBlock = 8 * time.Millisecond

func newBlocks(n int, keep, priv, features uint32) *blocks {
	b := &blocks{n: n, priv: int(priv), keep: time.Duration(keep) * time.Millisecond, hash: features&linux.TP_FT_REQ_FILL_RXHASH != 0}
	if keep == 0 {
		b.keep = keepBlock
	}
	return b
}

// blockStart is where a block's packets begin: behind its header and what is the program's.
func blockStart(priv uint64) uint64 { return linux.SizeofTpacketBlockDesc + (priv+7)&^7 }

// start is blockStart of the ring.
func (b *blocks) start() int { return int(blockStart(uint64(b.priv))) }

// statusAt is where in a block its status lies, with the number of packets behind it,
// and lengthAt where its length does.
const statusAt, lengthAt = 8, 20

// put32 writes a number at an offset.
func (r *ring) put32(at int, v uint32) {
	var b [4]byte
	binary.LittleEndian.PutUint32(b[:], v)
	r.copy(at, b[:])
}

// blockStatus is whose a block is: 0 for the kernel's.
func (r *ring) blockStatus(i int) uint32 {
	return uint32(atomic.LoadUint64(r.word(i*r.block + statusAt)))
}

// blockFilled reports whether the program has the block before the one that is filled.
func (r *ring) blockFilled() bool {
	return r.blockStatus((r.blocks.now+r.blocks.n-1)%r.blocks.n) != 0
}

// openBlock begins to fill the block that is next; called with mu held.
func (s *Sock) openBlock(r *ring) {
	b := r.blocks
	b.open, b.count, b.next, b.last = true, 0, b.start(), 0
	b.seq++
	var h [linux.SizeofTpacketBlockDesc]byte
	put32 := binary.LittleEndian.PutUint32
	now := clocks.Realtime()
	put32(h[0:], linux.TPACKET_V3)
	put32(h[4:], linux.SizeofTpacketBlockDesc)
	put32(h[16:], uint32(b.start()))
	put32(h[lengthAt:], uint32(b.start()))
	binary.LittleEndian.PutUint64(h[24:], b.seq)
	put32(h[32:], uint32(now/1e9))
	put32(h[36:], uint32(now%1e9))
	r.copy(b.now*r.block, h[:])
}

// closeBlock gives the block to the program and begins the next, if that is the kernel's.
// Called with mu held.
func (s *Sock) closeBlock(r *ring, why uint32) {
	b, at := r.blocks, r.blocks.now*r.block
	if b.count > 0 {
		r.put32(at+b.last, 0) // no packet follows
	} else {
		b.ended = clocks.Realtime()
	}
	r.put32(at+40, uint32(b.ended/1e9))
	r.put32(at+44, uint32(b.ended%1e9))
	atomic.StoreUint64(r.word(at+statusAt), uint64(linux.TP_STATUS_USER|why)|uint64(b.count)<<32)
	b.now = (b.now + 1) % b.n
	if b.open = r.blockStatus(b.now) == 0; b.open {
		s.openBlock(r)
	} else {
		b.frozen++
	}
	s.Q.Notify(wait.In | wait.RdNorm)
}

// putBlock puts a packet into a block; false if there is none to fill. Called with mu held.
func (s *Sock) putBlock(r *ring, m *message, data []byte, flow uint32) bool {
	b := r.blocks
	if !b.open {
		if r.blockStatus(b.now) != 0 {
			return false
		}
		s.openBlock(r)
	}
	mac, net := r.places(m, s.Type == linux.SOCK_RAW)
	room := r.block - b.start()
	snap := min(len(data), max(room-mac, 0))
	mac = min(mac, room)
	size := (mac + snap + 7) &^ 7
	if b.next+size >= r.block && b.count > 0 {
		s.closeBlock(r, 0)
		if !b.open {
			return false
		}
	}
	size = min(size, r.block-b.next)
	h := make([]byte, firstMAC(r.version))
	put32, put16 := binary.LittleEndian.PutUint32, binary.LittleEndian.PutUint16
	put32(h[0:], uint32(size))
	put32(h[4:], uint32(m.when/1e9))
	put32(h[8:], uint32(m.when%1e9))
	put32(h[12:], uint32(snap))
	put32(h[16:], uint32(m.length))
	put32(h[20:], m.status)
	put16(h[24:], uint16(mac))
	put16(h[26:], uint16(net))
	if b.hash {
		put32(h[28:], flow)
	}
	copy(h[linux.SizeofTpacket3Hdr:], m.from.Bytes())
	at := b.now*r.block + b.next
	r.copy(at, h)
	r.copy(at+mac, data[:snap])
	b.last, b.next, b.ended = b.next, b.next+size, m.when
	b.count++
	r.put32(b.now*r.block+statusAt+4, b.count)
	r.put32(b.now*r.block+lengthAt, uint32(b.next))
	if b.count == 1 {
		s.armBlock(r)
	}
	return true
}

// armBlock has the block that has its first packet given away after a time. There is no
// timer while the block is empty. Called with mu held.
func (s *Sock) armBlock(r *ring) {
	b := r.blocks
	if b.timer == nil {
		b.timer = s.net.AfterFunc(b.keep, func() { s.blockTime(r) })
		return
	}
	b.timer.Reset(b.keep)
}

// blockTime is what the timer does.
func (s *Sock) blockTime(r *ring) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ring == r && r.blocks.open && r.blocks.count > 0 {
		s.closeBlock(r, linux.TP_STATUS_BLK_TMO)
	}
}
