// Package ring is one direction of a connection: a ring of 64-byte slots that
// one thread writes and another reads, perhaps in another process.
//
// The memory is a number of pages. Four lines of control words come first, one
// line each so that nobody's word shares a line with another writer's; the rest
// are slots, 60 in a ring of one page.
//
//	line 0  Ack      receiver writes: slots consumed, modulo 2^32
//	line 1  Parked   receiver writes: 1 if it sleeps, or is about to, and must
//	                 be woken through the link; 2 if it naps in futex(2) here,
//	                 3 at a notification that the sender was given (Handed)
//	line 2  Blocked  sender writes: 1 if it sleeps for want of room
//	line 3  CPU      sender writes: 1 and the processor on which it last waited
//	line 4… slots    sender writes
//
// A slot is 56 bytes of body and a header word, stored last and with release
// meaning:
//
//	bits  0-15  lap    how often the sender has come round, from 1; a slot
//	                   is full when this is the lap the receiver expects
//	bits 16-27  num    number of the message
//	bits 28-31  flags  More, Cont, Bulk, Caps
//	bits 32-47  ack    slots consumed of the other direction, modulo 2^16
//	bits 48-53  n      bytes of body, at most 56
//	bits 54-63  seq    number of the message, modulo 2^10, for sending again
//
// The owner of a slot is the sender until the header is stored, the receiver
// until it has acknowledged the slot: in the ack bits of the other direction's
// slots, and in the Ack word when nothing flows there. What is not acknowledged
// is never overwritten, so the ring is also what a session sends again.
//
// Sleeping: who wants to sleep stores its flag, has the link's barrier order
// that against the peer's stores (membarrier(2)), looks once more, and sleeps.
// The peer stores, then loads the flag, without a barrier of its own.
//
// The peer may write anything anywhere at any time. A word is loaded once and
// then checked; a wrong one is an error, never a fault.
package ring

import (
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"

	"hardtack/lock"
	"hardtack/lock/core"
	"hardtack/msg/internal/barrier"
)

// Sizes in bytes.
const (
	BodyBytes    = 56
	SlotBytes    = 64
	ControlBytes = 4 * SlotBytes
	PageBytes    = 4096
	MaxBytes     = 8 * PageBytes // fewer slots than half of what seq can distinguish
)

// Flags of a slot.
const (
	More = 1 << iota // the message goes on in the next slot
	Cont             // the message began in an earlier slot
	Bulk             // the body is where in the bulk pool the message is
	Caps             // descriptors come with it
)

const (
	lapMask  = 0xffff
	numShift = 16
	numMask  = 0xfff
	flShift  = 28
	flMask   = 0xf
	ackShift = 32
	lenShift = 48
	lenMask  = 0x3f
	seqShift = 54
	seqMask  = 0x3ff
	// plain selects the lap and the flags: equal to the lap if there are none.
	plain = lapMask | flMask<<flShift
)

// Slot is a slot as it is in memory.
type Slot struct {
	Body [BodyBytes]byte
	Hdr  uint64
}

// Control is the head of a ring as it is in memory.
type Control struct {
	Ack     uint32
	_       [15]uint32
	Parked  uint32
	_       [15]uint32
	Blocked uint32
	_       [15]uint32
	CPU     uint32
	_       [15]uint32
}

// Head is a header word, taken apart.
type Head struct {
	Num   uint16
	Flags uint8
	N     int
}

// Split takes the header word apart and says whether it is sound.
func Split(h uint64) (Head, bool) {
	d := Head{Num: uint16(h >> numShift & numMask), Flags: uint8(h >> flShift & flMask), N: int(h >> lenShift & lenMask)}
	return d, d.N <= BodyBytes
}

var errSize = errors.New("ring: memory must be 1 to 8 whole pages")

// Tx is the sending end. It belongs to one goroutine at a time, but for
// the fields that say otherwise. Positions are indices rather than pointers:
// storing a pointer costs a look at the collector's write barrier.
type Tx struct {
	ring  []Slot
	at    int    // the next slot to fill; the sender's while Room > 0
	Room  int    // free slots known of
	head  uint64 // the lap and the number of the next message, as in a header
	ctl   *Control
	their *uint32 // slots consumed of the other direction (Rx.consumed)
	told  uint32  // what of that the headers have said; atomic
	limit uint32  // slots published and Room together, modulo 2^32

	_       [8]uint64
	acked   uint32 // slots of ours that headers have acknowledged; the receiving goroutine stores it
	seqTold uint64 // Seq as of the last Refill; atomic
}

// Rx is the receiving end. It belongs to one goroutine at a time, except for the
// fields that say otherwise.
type Rx struct {
	ring    []Slot
	at      int    // the next slot
	want    uint64 // lap expected there
	quarter uint32 // Count at which to say so
	Count   uint32 // slots consumed, modulo 2^32
	Seq     uint64 // messages delivered in the session
	seen    uint16 // the ack bits of the last header
	cpu     uint32 // what SameCPU said last
	// Hold: slots go back to the sender by Acknowledge only. Immutable.
	Hold bool
	Skip bool // the message was delivered before: Seq does not count it
	// Fence: the sender's barrier, before it looks for room for the last time, does not reach
	// this process. So Flush has one of its own, lest neither sees the other. Immutable.
	Fence bool
	ctl   *Control
	tx    *Tx

	Told     uint64 // Seq as of the last Flush; atomic
	consumed uint32 // Count as told to Tx; atomic
}

// Open makes both ends' private state over a pair of rings.
func Open(txMem, rxMem []byte) (*Tx, *Rx, error) {
	for _, m := range [][]byte{txMem, rxMem} {
		if len(m) == 0 || len(m)%PageBytes != 0 || len(m) > MaxBytes {
			return nil, nil, errSize
		}
	}
	t, r := new(Tx), new(Rx)
	t.ctl, t.ring = view(txMem)
	r.ctl, r.ring = view(rxMem)
	t.head, t.Room, t.limit, r.want = 1, len(t.ring), uint32(len(t.ring)), 1
	t.their, r.tx = &r.consumed, t
	r.quarter = uint32(len(r.ring) / 4)
	return t, r, nil
}

// Slots is how many slots the ring has.
func (t *Tx) Slots() int { return len(t.ring) }

// Body is the memory of the next slot to fill, the sender's while Room > 0.
func (t *Tx) Body() *[BodyBytes]byte { return &t.ring[t.at].Body }

// Sent is how many slots were published, modulo 2^32.
func (t *Tx) Sent() uint32 { return t.limit - uint32(t.Room) }

// Acked is how many of them were acknowledged as of the last Refill, modulo 2^32.
func (t *Tx) Acked() uint32 { return t.limit - uint32(len(t.ring)) }

// Seq is how many messages were published in the session.
func (t *Tx) Seq() uint64 { return Full(t.head, t.seqTold) }

// SetSeq says that seq messages were.
func (t *Tx) SetSeq(seq uint64) {
	t.head = t.head&lapMask | seq<<seqShift
	lock.StoreRelease64(&t.seqTold, seq)
}

// ahead is how many slots before it fills one the sender asks for its line.
const ahead = 4

// Publish hands the next slot to the receiver: a body of n bytes of message
// num, with flags. It reports whether the receiver sleeps.
func (t *Tx) Publish(num uint16, flags uint8, n int) (parked bool) {
	ack := atomic.LoadUint32(t.their)
	h := t.head | uint64(num)<<numShift | uint64(flags)<<flShift | uint64(uint16(ack))<<ackShift | uint64(n)<<lenShift
	next := t.at + ahead
	if next >= len(t.ring) {
		next -= len(t.ring)
	}
	if t.Room > ahead {
		core.PublishAhead64(&t.ring[t.at].Hdr, h, &t.ring[next].Body[0])
	} else {
		lock.StoreRelease64(&t.ring[t.at].Hdr, h)
	}
	t.Room--
	t.head += (1 - uint64(flags&More)) << seqShift
	if t.at++; t.at == len(t.ring) {
		t.at = 0
		t.head = t.head&^lapMask | (t.head+1)&lapMask
	}
	if ack != t.told {
		lock.StoreRelease32(&t.told, ack)
	}
	return atomic.LoadUint32(&t.ctl.Parked) != 0
}

// Last is the body of the slot published last.
func (t *Tx) Last() *[BodyBytes]byte {
	return &t.ring[(t.at+len(t.ring)-1)%len(t.ring)].Body
}

// Refill looks how much room there is, and returns it.
func (t *Tx) Refill() (int, error) {
	n, sent := uint32(len(t.ring)), t.Sent()
	out := sent - atomic.LoadUint32(&t.acked)
	if w := sent - atomic.LoadUint32(&t.ctl.Ack); w < out {
		out = w
	}
	if out > n {
		return 0, fmt.Errorf("acknowledged %d slots of %d sent", sent-out, sent)
	}
	t.Room = int(n - out)
	t.limit = sent + uint32(t.Room)
	if seq := t.Seq(); seq != t.seqTold {
		lock.StoreRelease64(&t.seqTold, seq)
	}
	return t.Room, nil
}

// SetBlocked says whether the sender sleeps until there is room.
func (t *Tx) SetBlocked(v bool) { lock.StoreRelease32(&t.ctl.Blocked, word(v)) }

// Parked reports whether the receiver sleeps.
func (t *Tx) Parked() bool { return atomic.LoadUint32(&t.ctl.Parked) != 0 }

// How a receiver sleeps, and so who has to wake it.
type Sleep uint32

const (
	Awake  Sleep = iota // it need not be woken, or was woken in its futex
	Linked              // through the link
	naps                // in futex(2) on the word
	Handed              // at its notification
)

// TakeParked wakes the receiver if it naps in futex(2), and says how it must be
// woken if not; once for each time that it said it would sleep.
func (t *Tx) TakeParked() Sleep {
	if atomic.LoadUint32(&t.ctl.Parked) == 0 {
		return Awake
	}
	switch s := Sleep(atomic.SwapUint32(&t.ctl.Parked, 0)); s {
	case Awake, Handed:
		return s
	case naps:
		futexWake(&t.ctl.Parked)
		return Awake
	}
	return Linked
}

// SameCPU says on which processor this end is about to wait, and reports whether
// the peer last waited on the same.
func (r *Rx) SameCPU() bool {
	cpu := core.CPU() + 1
	if r.cpu != cpu {
		r.cpu = cpu
		lock.StoreRelease32(&r.tx.ctl.CPU, cpu)
	}
	return atomic.LoadUint32(&r.ctl.CPU) == cpu
}

// Nap waits in futex(2) until ready or woken, at most about d, and reports
// whether a slot is full. The peer may fail to wake it if both look at the same
// moment, which they cannot on one processor.
func (r *Rx) Nap(d time.Duration, ready func() bool) bool {
	atomic.StoreUint32(&r.ctl.Parked, uint32(naps))
	if !ready() {
		futexWait(&r.ctl.Parked, uint32(naps), d)
	}
	r.SetParked(false)
	return r.Ready()
}

// HandNap is Nap at a notification, in which await sleeps. A wake may be left
// there from an earlier nap: then nobody has taken the word, and it sleeps on.
func (r *Rx) HandNap(d time.Duration, ready func() bool, await func(time.Duration)) bool {
	atomic.StoreUint32(&r.ctl.Parked, uint32(Handed))
	for range 2 {
		if ready() {
			break
		}
		await(d)
		if atomic.LoadUint32(&r.ctl.Parked) != uint32(Handed) {
			break
		}
	}
	r.SetParked(false)
	return r.Ready()
}

// Rewind goes back by n slots, which were consumed and not given back.
func (r *Rx) Rewind(n int) {
	r.Count -= uint32(n)
	if r.at -= n; r.at < 0 {
		r.at += len(r.ring)
		r.want = (r.want - 1) & lapMask
	}
}

// Rouse ends a Nap. Anybody may call it.
func (r *Rx) Rouse() {
	if atomic.CompareAndSwapUint32(&r.ctl.Parked, uint32(naps), 0) {
		futexWake(&r.ctl.Parked)
	}
}

// Start says that seq messages were delivered before this ring.
func (r *Rx) Start(seq uint64) {
	r.Seq = seq
	lock.StoreRelease64(&r.Told, seq)
}

// Ready reports whether a slot is full.
func (r *Rx) Ready() bool { return atomic.LoadUint64(&r.ring[r.at].Hdr)&lapMask == r.want }

// Peek loads the header of the next slot, if that is full.
func (r *Rx) Peek() (h uint64, ok bool) {
	h = atomic.LoadUint64(&r.ring[r.at].Hdr)
	return h, h&lapMask == r.want
}

// PeekPlain is Peek for a slot that holds a whole message without flags.
func (r *Rx) PeekPlain() (h uint64, ok bool) {
	h = atomic.LoadUint64(&r.ring[r.at].Hdr)
	return h, h&plain == r.want
}

// Body is the memory of the next slot; the peer may change it at any time.
func (r *Rx) Body() *[BodyBytes]byte { return &r.ring[r.at].Body }

// Consume moves on from the slot whose header was h. At the end of a message
// the slots go back to the sender, now and then in one go; Consume reports
// whether that must be woken.
func (r *Rx) Consume(h uint64) (wake bool) {
	r.Count++
	if r.at++; r.at == len(r.ring) {
		r.at = 0
		r.want = (r.want + 1) & lapMask
	}
	if a := uint16(h >> ackShift); a != r.seen {
		r.ack(a)
	}
	if h>>flShift&More != 0 {
		return false
	}
	if !r.Skip {
		r.Seq++
	}
	if int32(r.Count-r.quarter) >= 0 && !r.Hold {
		return r.Flush(false)
	}
	return false
}

// ack notes what a header acknowledged. More than was sent is found by Refill.
func (r *Rx) ack(a uint16) {
	d := a - r.seen
	r.seen = a
	lock.StoreRelease32(&r.tx.acked, r.tx.acked+uint32(d))
}

// Flush tells the sender what was consumed: in the headers that go the other
// way, and in the Ack word if those lag behind or now is set. It reports
// whether the sender must be woken.
func (r *Rx) Flush(now bool) (wake bool) {
	r.quarter = r.Count + uint32(len(r.ring)/4)
	if r.Told != r.Seq {
		lock.StoreRelease64(&r.Told, r.Seq)
	}
	if r.consumed != r.Count {
		lock.StoreRelease32(&r.consumed, r.Count)
	}
	if blocked := atomic.LoadUint32(&r.ctl.Blocked) != 0; !now && !blocked && r.Count-atomic.LoadUint32(&r.tx.told) < uint32(len(r.ring)/2) {
		return false
	}
	if atomic.LoadUint32(&r.ctl.Ack) != r.Count {
		lock.StoreRelease32(&r.ctl.Ack, r.Count)
	}
	if r.Fence {
		barrier.Self()
	}
	return r.takeBlocked()
}

// takeBlocked reports whether the sender must be woken now, once for each time
// that it said it would sleep.
func (r *Rx) takeBlocked() bool {
	return atomic.LoadUint32(&r.ctl.Blocked) != 0 && atomic.SwapUint32(&r.ctl.Blocked, 0) != 0
}

// Acknowledge gives the slots up to count back to the sender, and reports
// whether that must be woken.
func (r *Rx) Acknowledge(count uint32) (wake bool) {
	lock.StoreRelease32(&r.consumed, count)
	lock.StoreRelease32(&r.ctl.Ack, count)
	return r.takeBlocked()
}

// Whole is the length of the message whose first fragment is the next slot. Its
// sender, which must be trusted, publishes all fragments without waiting.
func (r *Rx) Whole() (n int) {
	at := *r
	for {
		h, ok := at.Peek()
		if !ok {
			runtime.Gosched()
			continue
		}
		d, _ := Split(h)
		n += d.N
		if d.Flags&More == 0 {
			return n
		}
		if at.at++; at.at == len(at.ring) {
			at.at = 0
			at.want = (at.want + 1) & lapMask
		}
	}
}

// Here reports whether a whole message is there that is in slots only: nothing in bulk
// memory, no descriptors. The sender need not be trusted.
func (r *Rx) Here() bool {
	at := *r
	for range r.ring {
		h, ok := at.Peek()
		if !ok {
			return false
		}
		d, _ := Split(h)
		switch {
		case d.Flags&(Bulk|Caps) != 0:
			return false
		case d.Flags&More == 0:
			return true
		}
		if at.at++; at.at == len(at.ring) {
			at.at = 0
			at.want = (at.want + 1) & lapMask
		}
	}
	return false
}

// Number is the number of a header's message, modulo 2^10; Full is the number
// itself, which is near and not before has.
func Number(h uint64) uint64           { return h >> seqShift & seqMask }
func Full(h uint64, has uint64) uint64 { return has + (Number(h)-has)&seqMask }

// SetParked says whether the receiver sleeps until a slot is full.
func (r *Rx) SetParked(v bool) { lock.StoreRelease32(&r.ctl.Parked, word(v)) }

func word(v bool) uint32 {
	if v {
		return 1
	}
	return 0
}

// Unread calls f for the slots of the messages from number seq on that still
// are in the ring of a sender, in order, with the number of their message, and
// returns the number of the message after the last whole one. Those before the
// first were acknowledged. Anybody may call it while the sender publishes at
// most one message more; whether that one is seen, its sender must find out.
//
// seq may be older than what numbers modulo 2^10 can tell, because the peer said
// it and messages went on; so they are counted from what the sender last told,
// which is at most a ring away from each slot.
func (t *Tx) Unread(seq uint64, f func(seq uint64, h Head, body *[BodyBytes]byte)) (next uint64) {
	told := atomic.LoadUint64(&t.seqTold)
	next = max(told, seq)
	slots := t.collect()
	n := len(slots)
	numbers := make([]uint64, n) // of the slots' messages; none if older than seq
	const none = ^uint64(0)
	start, least := -1, uint64(none)
	for i := range slots {
		h := slots[i].Hdr
		numbers[i] = none
		d := (Number(h) - told) & seqMask
		number := told + d
		if d > seqMask/2 {
			number -= seqMask + 1
		}
		if h == 0 || int64(number-seq) < 0 {
			continue
		}
		numbers[i] = number
		if Flags(h)&Cont == 0 && number < least {
			start, least = i, number
		}
	}
	if start < 0 {
		return next
	}
	last := least
	for k := range n {
		i := (start + k) % n
		if numbers[i] == none || numbers[i] < last {
			break
		}
		last = numbers[i]
		h, _ := Split(slots[i].Hdr)
		f(last, h, &slots[i].Body)
		if h.Flags&More == 0 { // all of it was seen
			next = max(next, last+1)
		}
	}
	return next
}

// collect copies the slots as they were at one moment: it copies them until
// no header has changed meanwhile. (Without that, one message of several slots,
// published while they are copied, looks as if it followed the oldest slots, and
// hides what is between.) A header that is the same may belong to a body that
// is being overwritten; then its message was acknowledged.
func (t *Tx) collect() []Slot {
	slots := make([]Slot, len(t.ring))
	for {
		for i := range slots {
			slots[i].Hdr = atomic.LoadUint64(&t.ring[i].Hdr)
			slots[i].Body = snapshot(&t.ring[i])
			if looked != nil {
				looked()
			}
		}
		same := true
		for i := range slots {
			same = same && slots[i].Hdr == atomic.LoadUint64(&t.ring[i].Hdr)
		}
		if same {
			return slots
		}
	}
}

// looked is for tests: called between two slots.
var looked func()

// snapshot copies a body that its owner may be overwriting. It does so only if
// the message was acknowledged; then the receiver knows its number and drops it,
// torn or not. The race detector is not told of such a copy.
//
//go:norace
//go:noinline
func snapshot(s *Slot) (body [BodyBytes]byte) {
	for i := range body {
		body[i] = s.Body[i]
	}
	return body
}

// Behind reports how a header's message relates to the message expected, number
// seq: old if it was delivered before, ahead if some are missing.
func Behind(h, seq uint64) (old, ahead bool) {
	d := (h>>seqShift - seq) & seqMask
	return d > seqMask/2, d != 0 && d <= seqMask/2
}

// Flags are the flags of a header word.
func Flags(h uint64) uint8 { return uint8(h >> flShift & flMask) }

// State is where the two owners of an end stand, for moving it to another
// process.
type State struct {
	txSent, txAcked     uint32
	txAt, rxAt          uint32
	rxCount             uint32
	rxSeen, txLap, want uint16
	txSeq, rxSeq        uint64
}

// StateBytes is the length of a State in bytes.
const StateBytes = 5*4 + 3*2 + 2*8

// Save returns where the owners stand. Neither may be at work.
func Save(t *Tx, r *Rx) State {
	return State{t.Sent(), atomic.LoadUint32(&t.acked), uint32(t.at), uint32(r.at), r.Count, r.seen, uint16(t.head), uint16(r.want), t.Seq(), r.Seq}
}

// Restore puts the owners where others stood. The numbers may come from anybody.
func (s *State) Restore(t *Tx, r *Rx) error {
	if int(s.txAt) >= len(t.ring) || int(s.rxAt) >= len(r.ring) {
		return errors.New("ring: a position beyond the ring")
	}
	t.at, t.Room, t.limit, t.head = int(s.txAt), 0, s.txSent, uint64(s.txLap)
	t.SetSeq(s.txSeq)
	t.told = s.rxCount
	lock.StoreRelease32(&t.acked, s.txAcked)
	r.Count, r.seen, r.want, r.at = s.rxCount, s.rxSeen, uint64(s.want), int(s.rxAt)
	r.quarter = r.Count + uint32(len(r.ring)/4)
	lock.StoreRelease32(&r.consumed, r.Count)
	r.Start(s.rxSeq)
	return nil
}

// Append puts the state into bytes.
func (s *State) Append(b []byte) []byte {
	for _, v := range []uint32{s.txSent, s.txAcked, s.txAt, s.rxAt, s.rxCount} {
		b = binary.LittleEndian.AppendUint32(b, v)
	}
	for _, v := range []uint16{s.rxSeen, s.txLap, s.want} {
		b = binary.LittleEndian.AppendUint16(b, v)
	}
	return binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(b, s.txSeq), s.rxSeq)
}

// Parse is the inverse of Append, for at least StateBytes bytes.
func (s *State) Parse(b []byte) {
	for i, p := range []*uint32{&s.txSent, &s.txAcked, &s.txAt, &s.rxAt, &s.rxCount} {
		*p = binary.LittleEndian.Uint32(b[4*i:])
	}
	for i, p := range []*uint16{&s.rxSeen, &s.txLap, &s.want} {
		*p = binary.LittleEndian.Uint16(b[20+2*i:])
	}
	s.txSeq, s.rxSeq = binary.LittleEndian.Uint64(b[26:]), binary.LittleEndian.Uint64(b[34:])
}

// The rest is for lookers-on; anybody may call it.

// Published is how many messages were sent in the session.
func (t *Tx) Published() uint64 { return newest(t.ring, atomic.LoadUint64(&t.seqTold)) }

// Arrived is how many messages of the session have arrived, received or not.
func (r *Rx) Arrived() uint64 { return newest(r.ring, atomic.LoadUint64(&r.Told)) }

// newest is the number after the newest message in a ring, which is near and
// not before has.
func newest(ring []Slot, has uint64) uint64 {
	n := has
	for i := range ring {
		h := atomic.LoadUint64(&ring[i].Hdr)
		if after := Full(h, has-seqMask/2) + 1; h != 0 && after > n && after-has <= seqMask/2 && Flags(h)&More == 0 {
			n = after
		}
	}
	return n
}

// Parked reports whether the receiver sleeps.
func (r *Rx) Parked() bool { return atomic.LoadUint32(&r.ctl.Parked) != 0 }
