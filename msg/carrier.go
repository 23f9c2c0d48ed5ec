package msg

import (
	"context"
	"encoding/binary"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"hardtack/msg/internal/ring"
)

// carrier moves messages between a connection's rings and a link without common
// memory: it plays the peer at the other ends of the rings. One goroutine reads
// what the connection sends and puts it into frames; the link's control
// goroutine writes what frames bring.
//
// A frame of messages is a piece of a stream of records: the length of a body
// in 32 bits, the number of the message and its place in the session in 16 bits
// each, and the body. A frame of acknowledgement is the number of messages
// delivered, 64 bits. What the connection sent is acknowledged in its ring only
// when the peer's application has had it, so that the ring holds what would
// have to be sent again.
type carrier struct {
	link     Link
	maxFrame int      // of what is sent
	maxBody  int      // of what comes
	peer     *local   // the end of the rings that the carrier plays
	mine     *ring.Rx // the connection's, of which only Told is read
	ctx      context.Context
	cancel   context.CancelFunc

	acked atomic.Uint64 // messages that the peer has had

	// The sending goroutine's.
	rx      *ring.Rx
	pending []carried
	told    uint64        // messages that the peer was told we have had
	asked   atomic.Uint32 // how often drain was called
	empty   atomic.Uint32 // what asked was when nothing was left

	// The control goroutine's.
	tx   *ring.Tx
	bulk bulkTx
	part []byte // of the stream: a record that is not complete
	in   *inbox

	mu    sync.Mutex
	pools map[uint32]Region // guarded by mu
}

// carried is a message sent and not acknowledged: its number, and where the
// ring stands after it.
type carried struct {
	seq   uint64
	count uint32
}

// carrierPool numbers the pools of all carriers.
var carrierPool atomic.Uint32

// carrierPages makes rings that cover the delay of a network: 508 slots.
const carrierPages = ring.MaxBytes / ring.PageBytes

// nearFrame is the longest frame that a carrier makes for a Near link.
const nearFrame = 8 << 10

const recordBytes = 8

// newCarrier makes a carrier and the connection's end of its rings.
func newCarrier(link Link, peerHas uint64) (*carrier, *local) {
	pages, frame := carrierPages, MaxFrame
	if n, ok := link.(Near); ok && n.Near() {
		pages, frame = 1, nearFrame
	}
	mine, theirs := newLocal(pages)
	k := &carrier{link: link, peer: theirs, maxFrame: frame, maxBody: MaxBody, pools: make(map[uint32]Region)}
	k.ctx, k.cancel = context.WithCancel(context.Background())
	k.tx, k.rx, _ = ring.Open(theirs.tx, theirs.rx) // they are of the right size
	k.rx.Hold = true
	k.acked.Store(peerHas)
	k.rx.Start(peerHas)
	return k, mine
}

func (k *carrier) start(c *Conn, mine *ring.Rx) {
	k.mine, k.in, k.maxBody = mine, c.inbox, max(c.opts.MaxBody, failedBytes+MaxErrorText)
	go k.send()
}

// stop ends the sending goroutine.
func (k *carrier) stop() {
	k.cancel()
	k.peer.gate.kick()
}

func (k *carrier) stopped() bool { return k.ctx.Err() != nil }

// pool says which memory a bulk pool of the connection is.
func (k *carrier) pool(id uint32, r Region) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.pools = map[uint32]Region{id: r} // an earlier one is empty
}

// drain waits until the peer has had everything, but not longer than grace.
func (k *carrier) drain(grace time.Duration) {
	end, asked := time.Now().Add(grace), k.asked.Add(1)
	for wait := 50 * time.Microsecond; time.Now().Before(end) && !k.stopped() && k.empty.Load() != asked; wait = min(2*wait, 5*time.Millisecond) {
		k.peer.gate.kick()
		time.Sleep(wait)
	}
}

// due reports whether the peer is to be told what the connection has had.
func (k *carrier) due() bool { return atomic.LoadUint64(&k.mine.Told) > k.told }

// send reads the connection's ring and sends frames until stopped.
func (k *carrier) send() {
	frame := make([]byte, 0, k.maxFrame)
	news := func() bool {
		if asked := k.asked.Load(); asked != k.empty.Load() && !k.rx.Ready() && len(k.pending) == 0 {
			k.empty.Store(asked)
		}
		return k.stopped() || k.rx.Ready() || k.due() || len(k.pending) > 0 && k.pending[0].seq < k.acked.Load()
	}
	asleep := func() bool {
		if news() {
			return true
		}
		k.rx.SetParked(true)
		k.tx.SetBlocked(true) // the connection's acknowledgements wake us too
		k.peer.Barrier()
		return news()
	}
	for {
		k.peer.gate.park(asleep)
		if k.stopped() {
			return
		}
		if err := k.step(frame); err != nil {
			k.link.Close() // which ends the control goroutine
			return
		}
	}
}

// step does what there is to do.
func (k *carrier) step(frame []byte) error {
	if n := atomic.LoadUint64(&k.mine.Told); n > k.told {
		if err := k.link.Send(k.ctx, binary.LittleEndian.AppendUint64([]byte{frameAck}, n), nil); err != nil {
			return err
		}
		k.told = n
	}
	for has := k.acked.Load(); len(k.pending) > 0 && k.pending[0].seq < has; k.pending = k.pending[1:] {
		if k.rx.Acknowledge(k.pending[0].count) {
			k.peer.Wake()
		}
	}
	frame = append(frame[:0], frameSlots)
	for k.rx.Ready() {
		h, _ := k.rx.Peek()
		d, _ := ring.Split(h)
		body := k.rx.Body()[:min(d.N, SlotBytes)]
		if d.Flags&ring.Cont == 0 { // the start of a message: its length
			n, long, err := k.length(d, body)
			if err != nil {
				return err
			}
			frame = binary.LittleEndian.AppendUint32(frame, uint32(n))
			frame = binary.LittleEndian.AppendUint16(frame, d.Num)
			frame = binary.LittleEndian.AppendUint16(frame, uint16(ring.Number(h)))
			if long != nil {
				body = long
			}
		}
		var err error
		if frame, err = k.append(frame, body); err != nil {
			return err
		}
		k.rx.Consume(h)
		if d.Flags&ring.More == 0 {
			k.pending = append(k.pending, carried{ring.Full(h, k.acked.Load()), k.rx.Count})
		}
	}
	if len(frame) > 1 {
		return k.link.Send(k.ctx, frame, nil)
	}
	return nil
}

// length is the length of the message that begins with a slot, and its body if
// that is in bulk memory.
func (k *carrier) length(d ring.Head, body []byte) (n int, long []byte, err error) {
	switch {
	case d.Flags&ring.Bulk != 0:
		k.mu.Lock()
		r := k.pools[binary.LittleEndian.Uint32(body)]
		k.mu.Unlock()
		b := bulkRx{mem: r.Mem}
		long, bad := b.find(body)
		if bad != "" {
			return 0, nil, fmt.Errorf("msg: %s", bad)
		}
		return len(long), long, nil
	case d.Flags&ring.More != 0: // all fragments are there, or soon will be
		return k.rx.Whole(), nil, nil
	}
	return d.N, nil, nil
}

// append adds b to the stream, sending the frame whenever it is full.
func (k *carrier) append(frame, b []byte) ([]byte, error) {
	for len(b) > 0 {
		n := min(len(b), k.maxFrame-len(frame))
		frame, b = append(frame, b[:n]...), b[n:]
		if len(frame) > k.maxFrame-SlotBytes-recordBytes {
			if err := k.link.Send(k.ctx, frame, nil); err != nil {
				return nil, err
			}
			frame = frame[:1]
		}
	}
	return frame, nil
}

// frame takes a frame in. The control goroutine calls it.
func (k *carrier) frame(b []byte) error {
	if b[0] == frameAck {
		if len(b) != 9 {
			return &PeerError{"an acknowledgement of another length"}
		}
		if n := binary.LittleEndian.Uint64(b[1:]); n > k.acked.Load() {
			k.acked.Store(n)
			k.peer.gate.kick()
		}
		return nil
	}
	b = b[1:]
	for !k.stopped() && (len(b) > 0 || len(k.part) > 0) {
		if len(k.part) > 0 { // complete it as far as possible
			need := recordBytes
			if len(k.part) >= recordBytes {
				need += int(binary.LittleEndian.Uint32(k.part))
			}
			n := min(need-len(k.part), len(b))
			k.part, b = append(k.part, b[:n]...), b[n:]
			if len(k.part) < need {
				return nil
			}
			if need == recordBytes && binary.LittleEndian.Uint32(k.part) > 0 {
				if binary.LittleEndian.Uint32(k.part) > uint32(k.maxBody) {
					return &PeerError{"a record that is too long"}
				}
				if len(b) == 0 {
					return nil
				}
				continue
			}
			if err := k.deliver(k.part); err != nil {
				return err
			}
			k.part = k.part[:0]
			continue
		}
		if len(b) < recordBytes {
			k.part = append(k.part[:0], b...)
			return nil
		}
		n := binary.LittleEndian.Uint32(b)
		if n > uint32(k.maxBody) {
			return &PeerError{"a record that is too long"}
		}
		if len(b) < recordBytes+int(n) {
			k.part = append(k.part[:0], b...)
			return nil
		}
		if err := k.deliver(b[:recordBytes+n]); err != nil {
			return err
		}
		b = b[recordBytes+n:]
	}
	return nil
}

// deliver writes a record into the connection's ring, waiting for room.
func (k *carrier) deliver(rec []byte) error {
	num, seq, body := binary.LittleEndian.Uint16(rec[4:]), binary.LittleEndian.Uint16(rec[6:]), rec[recordBytes:]
	if _, own := ownLimit(num); num == 0 || num > MaxMessages && !own {
		return &PeerError{fmt.Sprintf("message number %d", num)}
	}
	k.tx.SetSeq(uint64(seq))
	bulk := len(body) >= BulkBytes
	slots := max(1, (len(body)+SlotBytes-1)/SlotBytes)
	if bulk {
		slots = 1
	}
	room := func() bool {
		k.tx.SetBlocked(true)
		k.peer.Barrier()
		k.tx.Refill()
		return k.stopped() || k.tx.Room >= slots && (!bulk || k.bulk.fits(k.tx, len(body)) || len(body) > len(k.bulk.mem) && k.bulk.empty(k.tx))
	}
	if k.tx.Room < slots || bulk {
		k.peer.gate.park(room)
	}
	if k.stopped() {
		return nil // the connection has left
	}
	wake := false
	if bulk {
		if len(body) > len(k.bulk.mem) {
			r, _, _ := k.peer.NewBulk(poolSize(len(body), k.maxBody))
			k.bulk.replace(carrierPool.Add(1)|1<<31, r) // no peer on another link uses that number
			k.in.mu.Lock()
			k.in.add(&bulkRx{id: k.bulk.id, mem: r.Mem, keep: r.Keep, link: k.link})
			k.in.tell()
			k.in.mu.Unlock()
			k.bulk.fits(k.tx, len(body))
		}
		copy(k.bulk.at(len(body)), body)
		k.bulk.put(k.tx, k.tx.Body(), len(body))
		wake = k.tx.Publish(num, ring.Bulk, bulkRefBytes)
	}
	for at := 0; !bulk && (at < len(body) || at == 0); {
		n := copy(k.tx.Body()[:], body[at:])
		var f uint8
		if at > 0 {
			f |= ring.Cont
		}
		if at += n; at < len(body) {
			f |= ring.More
		}
		wake = k.tx.Publish(num, f, n)
		if n == 0 {
			break
		}
	}
	if wake {
		wakePeer(k.tx, k.peer, nil)
	}
	return nil
}
