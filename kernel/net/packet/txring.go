package packet

import (
	"encoding/binary"
	"sync/atomic"

	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/net/inet"
)

// sendRing sends the frames of the ring that the program has filled, and returns how many
// bytes those were. The program may fill them as fast as they are sent, so a signal ends
// it too.
func (s *Sock) sendRing(c *caller.Ctx, t target) (int, linux.Errno) {
	sent := 0
	for {
		b, at, e := s.nextToSend(t)
		switch {
		case e != 0:
			return 0, e
		case b == nil:
			return sent, 0
		case c.Interrupted():
			s.frameStatus(at, linux.TP_STATUS_SEND_REQUEST, false)
			if sent > 0 {
				return sent, 0
			}
			return 0, linux.ERESTARTSYS
		}
		if e := s.sendFrame(t, b); e != 0 {
			s.frameStatus(at, linux.TP_STATUS_SEND_REQUEST, false)
			if sent > 0 {
				return sent, 0
			}
			return 0, e
		}
		sent += len(b)
		if s.Type != linux.SOCK_RAW {
			sent -= inet.LinkHeaderLen
		}
		s.frameStatus(at, linux.TP_STATUS_AVAILABLE, true)
	}
}

// nextToSend takes the next frame that the program wants sent; none without one. Bad ones
// are passed over with PACKET_LOSS, one round of the ring at most, and are an error
// without.
func (s *Sock) nextToSend(t target) (frame []byte, at int, e linux.Errno) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for passed := 0; ; passed++ {
		r := s.txRing
		if r == nil || passed == r.frames || r.sendStatus(r.head) != linux.TP_STATUS_SEND_REQUEST {
			return nil, 0, 0
		}
		at = r.head
		data, e := s.readFrame(r, t, at)
		if e == 0 {
			frame, e = s.framed(t, data)
		}
		switch {
		case e == 0:
			r.setStatus(at, linux.TP_STATUS_SENDING)
			return frame, at, 0
		case s.flags[linux.PACKET_LOSS] == 0:
			r.setStatus(at, linux.TP_STATUS_WRONG_FORMAT)
			return nil, 0, e
		}
		r.setStatus(at, linux.TP_STATUS_AVAILABLE)
		r.head = (r.head + 1) % r.frames
	}
}

// readFrame copies a packet out of the ring; called with mu held.
func (s *Sock) readFrame(r *ring, t target, i int) ([]byte, linux.Errno) {
	at := r.offset(i)
	var h [linux.SizeofTpacket3Hdr]byte
	r.read(h[:], at)
	lenAt, macAt := 8, 16
	switch r.version {
	case linux.TPACKET_V2:
		lenAt, macAt = 4, 12
	case linux.TPACKET_V3:
		lenAt, macAt = 16, 24
		if binary.LittleEndian.Uint32(h[:]) != 0 {
			return nil, linux.EINVAL
		}
	}
	n, off := int64(int32(binary.LittleEndian.Uint32(h[lenAt:]))), headerLen(r.version)
	most := min(r.size-off, t.i.CurrentMTU()+inet.LinkHeaderLen+4)
	if s.Type != linux.SOCK_RAW {
		most = min(r.size-off, t.i.CurrentMTU()+4)
	}
	if n < 0 || n > int64(most) {
		return nil, linux.EMSGSIZE
	}
	if s.flags[linux.PACKET_TX_HAS_OFF] != 0 {
		if s.Type != linux.SOCK_RAW {
			macAt += 2
		}
		want := int(binary.LittleEndian.Uint16(h[macAt:]))
		if want < off || want > r.size-int(n) {
			return nil, linux.EINVAL
		}
		off = want
	}
	b := make([]byte, n)
	r.read(b, at+off)
	return b, 0
}

// frameStatus says what has become of a frame, and goes on to the next if it is done.
func (s *Sock) frameStatus(at int, status uint32, done bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.txRing
	if r == nil || at >= r.frames {
		return
	}
	r.setStatus(at, status)
	if done && at == r.head {
		r.head = (r.head + 1) % r.frames
	}
}

// statusPlace is the word with a frame's status, and the bits that it has there.
func (r *ring) statusPlace(i int) (word *uint64, shift uint) {
	at := r.offset(i)
	if r.version == linux.TPACKET_V3 {
		return r.word(at + 16), 32
	}
	return r.word(at), 0
}

// sendStatus is a frame's status in the ring to send.
func (r *ring) sendStatus(i int) uint32 {
	w, shift := r.statusPlace(i)
	return uint32(atomic.LoadUint64(w) >> shift)
}

func (r *ring) setStatus(i int, status uint32) {
	w, shift := r.statusPlace(i)
	for {
		old := atomic.LoadUint64(w)
		v := old&^(uint64(1<<32-1)<<shift) | uint64(status)<<shift
		if r.version == linux.TPACKET_V1 {
			v = uint64(status)
		}
		if atomic.CompareAndSwapUint64(w, old, v) {
			return
		}
	}
}
