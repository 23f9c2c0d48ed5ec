package softdev

import "encoding/binary"

// Ring is the device's end of a split queue.
type Ring struct {
	m                 *Machine
	size              uint16
	desc, avail, used []byte
	eventIndex        bool
	lastAvail         uint16 // requests taken
	usedIdx, told     uint16 // completions written; published
}

// Request is a chain of buffers as the driver offered it.
type Request struct {
	Head     uint16
	Out, In  [][]byte // readable; writable
	Indirect bool
}

// Descriptor flags.
const (
	flagNext     = 1
	flagWrite    = 2
	flagIndirect = 4
)

// NewRing returns the device's end of the queue at three physical addresses.
func NewRing(m *Machine, size int, desc, avail, used uint64, eventIndex bool) *Ring {
	return &Ring{
		m: m, size: uint16(size), eventIndex: eventIndex,
		desc:  m.PhysWindow(desc, uint64(16*size)),
		avail: m.PhysWindow(avail, uint64(8+2*size)),
		used:  m.PhysWindow(used, uint64(8+8*size)),
	}
}

// StartAt makes both indexes begin elsewhere than at 0.
func (r *Ring) StartAt(n uint16) {
	r.lastAvail, r.usedIdx, r.told = n, n, n
	storeWord(r.used, uint32(n)<<16)
	r.WantNotify()
}

// Next takes a request. A chain that makes no sense panics: that is what tests
// want to hear.
func (r *Ring) Next() (Request, bool) {
	if uint16(loadWord(r.avail)>>16) == r.lastAvail {
		return Request{}, false
	}
	head := binary.LittleEndian.Uint16(r.avail[4+2*int(r.lastAvail%r.size):])
	r.lastAvail++
	q := Request{Head: head}
	r.walk(&q, r.desc, head, int(r.size))
	return q, true
}

func (r *Ring) walk(q *Request, table []byte, i uint16, limit int) {
	for n := 0; ; n++ {
		if n == limit {
			panic("softdev: endless chain")
		}
		d := table[16*int(i):][:16]
		addr, length := binary.LittleEndian.Uint64(d), binary.LittleEndian.Uint32(d[8:])
		flags, next := binary.LittleEndian.Uint16(d[12:]), binary.LittleEndian.Uint16(d[14:])
		mem := r.m.PhysWindow(addr, uint64(length))
		if mem == nil {
			panic("softdev: buffer outside of memory")
		}
		switch {
		case flags&flagIndirect != 0:
			q.Indirect = true
			r.walk(q, mem, 0, int(length/16))
			return
		case flags&flagWrite != 0:
			q.In = append(q.In, mem)
		case len(q.In) > 0:
			panic("softdev: readable buffer behind a writable one")
		default:
			q.Out = append(q.Out, mem)
		}
		if flags&flagNext == 0 {
			return
		}
		i = next
	}
}

// Push writes a completion; Flush shows it.
func (r *Ring) Push(head uint16, written uint32) {
	r.Poke(r.usedIdx, uint32(head), written)
	r.usedIdx++
}

// Flush publishes the completions and reports whether the driver wants an
// interrupt for them.
func (r *Ring) Flush() bool {
	old := r.told
	if old == r.usedIdx {
		return false
	}
	r.told = r.usedIdx
	storeWord(r.used, uint32(r.usedIdx)<<16)
	if !r.eventIndex {
		return loadWord(r.avail)&1 == 0
	}
	event := uint16(loadWord(r.avail[4+2*int(r.size):]))
	return r.usedIdx-event-1 < r.usedIdx-old
}

// WantNotify asks the driver to notify of its next request, and reports
// whether there is one already.
func (r *Ring) WantNotify() bool {
	r.WantNotifyFrom(r.lastAvail)
	return uint16(loadWord(r.avail)>>16) != r.lastAvail
}

// WantNotifyFrom asks the driver to notify of the request with an index, and does not
// check whether it is there already, as a device should.
func (r *Ring) WantNotifyFrom(idx uint16) {
	storeWord(r.used[4+8*int(r.size):], uint32(idx))
}

// Poke writes a used entry without counting it.
func (r *Ring) Poke(idx uint16, id, written uint32) {
	e := r.used[4+8*int(idx%r.size):]
	storeWord(e, id)
	storeWord(e[4:], written)
}

// PokeIndex publishes any used index.
func (r *Ring) PokeIndex(idx uint16) { storeWord(r.used, uint32(idx)<<16) }

// Bytes joins the readable part of a request.
func (q *Request) Bytes() []byte {
	var b []byte
	for _, s := range q.Out {
		b = append(b, s...)
	}
	return b
}

// Fill copies b into the writable part and returns how much fitted.
func (q *Request) Fill(b []byte) uint32 {
	n := 0
	for _, s := range q.In {
		n += copy(s, b[n:])
	}
	return uint32(n)
}
