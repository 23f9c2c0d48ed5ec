package sock

import (
	"sync"
	"sync/atomic"

	"hardtack/abi/linux"
	"hardtack/kernel/base/accounts"
	"hardtack/kernel/base/ledger"
	"hardtack/kernel/base/random"
	"hardtack/kernel/base/uio"
	"hardtack/kernel/fs/vfs"
	"hardtack/kernel/net/bpf"
)

// Ancillary is what a message on a Flow carries besides bytes.
type Ancillary struct {
	Rights  []*vfs.File    // references are the flow's
	User    *accounts.User // who is charged for Rights
	Cred    linux.Ucred    // with Rights the process ID is the sender's in any case
	HasCred bool
}

// Rest is what belongs to the remaining bytes after a part was sent: the files went with
// that part.
func (a *Ancillary) Rest() *Ancillary {
	if a == nil || !a.HasCred {
		return nil
	}
	if len(a.Rights) == 0 {
		return a
	}
	return &Ancillary{Cred: a.Cred, HasCred: true}
}

// same reports whether two parts of a stream have the same sender, as far as it was
// recorded.
func (a *Ancillary) same(b *Ancillary) bool {
	if a == nil || !a.HasCred {
		return b == nil || !b.HasCred
	}
	return b != nil && b.HasCred && a.Cred == b.Cred
}

// record is a message, or the part of a byte stream that something ancillary
// belongs to.
type record struct {
	start, end uint64 // positions in the ring
	anc        *Ancillary
	from       *Name
	cost       int  // of a message: what it takes of the sender's buffer
	urgent     bool // one byte that was sent with MSG_OOB
	taken      bool // it was read with MSG_OOB
}

// Name is the sender's name; a receiver reads it when it takes the message.
type Name = atomic.Pointer[Addr]

// Flow carries bytes or messages one way, from its writers to one reader. It
// announces nothing: methods say what happened, and the sockets notify.
type Flow struct {
	mu     sync.Mutex
	ring            // guarded by mu
	recs   []record // guarded by mu; live from head on
	head   int      // guarded by mu
	packet bool     // immutable: message boundaries are kept
	eof    bool     // guarded by mu: the writer has shut down
	gone   bool     // guarded by mu: the reader has; writes fail
	low    bool     // guarded by mu: a writer found no room
	crowd  bool     // guarded by mu: a writer found the queue too long
	cost   int      // guarded by mu: of the messages that wait
	mark   uint64   // guarded by mu: where the urgent byte ends that waits; 0 for none
	held   int      // guarded by mu: of a stream, bytes at the end that are not to be read yet
}

// messageCost is what a message takes of its sender's buffer. Linux counts the memory
// allocated for the bytes and for the header, so small messages are expensive.
func messageCost(n int) int {
	const header, tail, most = 256, 320, 16 << 10
	linear := min(n, most-tail)
	size := 512
	for size < (linear+63)&^63+tail {
		size *= 2
	}
	return header + size + (n-linear+4095)&^4095
}

// InitFlow readies a zero Flow, whose memory a user is charged for; packet keeps
// message boundaries.
func (f *Flow) InitFlow(u *accounts.User, packet bool) { f.user, f.packet = u, packet }

// Write appends bytes to a stream; limit is how many may wait unread. EAGAIN: no room
// now. EPIPE: nobody will read.
func (f *Flow) Write(v *uio.Vec, limit int, anc *Ancillary) (int, linux.Errno) {
	f.mu.Lock()
	f.held = 0
	n, e := f.write(v, limit, anc)
	f.mu.Unlock()
	return n, e
}

// Message is how WriteMessage sends one.
type Message struct {
	Limit int // the sender's buffer
	Queue int // how many messages may wait; 0 for any number
	Anc   *Ancillary
	From  *Name

	Filter *bpf.Program // of the receiver (SO_ATTACH_FILTER); nil for none
}

// Filtered is WriteMessage's error for a message that the receiver's filter rejects; the
// sender does not learn of it.
const Filtered = linux.ENOMSG

// filtered runs a filter on the bytes from start on, which it may cut; false to drop them.
// Called with mu held.
func (f *Flow) filtered(p *bpf.Program, start uint64) bool {
	var data []byte
	for pos := start; pos < f.w; {
		part := piece(f.mem.b, pos, f.w-pos)
		data = append(data, part...)
		pos += uint64(len(part))
	}
	keep := uint64(p.Run(&bpf.Packet{Data: data, Network: data, Random: uint32(random.Uint64())}))
	f.w = min(f.w, start+keep)
	return keep != 0
}

// WriteMessage appends v as one message. EAGAIN: no room now. EPIPE: nobody will read.
func (f *Flow) WriteMessage(v *uio.Vec, m Message) (int, linux.Errno) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := v.Len()
	if f.gone || f.eof {
		return 0, linux.EPIPE
	}
	if m.Queue > 0 && len(f.recs)-f.head > m.Queue {
		f.low, f.crowd = true, true
		return 0, linux.EAGAIN
	}
	if f.cost >= m.Limit {
		f.low = true
		return 0, linux.EAGAIN
	}
	start := f.w
	if n > 0 {
		if e := f.reserve(n); e == linux.ENOBUFS && f.used() > 0 { // what waits has its memory: after that
			f.low = true
			return 0, linux.EAGAIN
		} else if e != 0 {
			return 0, e
		}
		if _, e := f.copyIn(v, n); e != 0 {
			f.w = start
			return 0, e
		}
	}
	if m.Filter != nil && !f.filtered(m.Filter, start) {
		return n, Filtered
	}
	cost := messageCost(n)
	f.cost += cost
	f.push(record{start: start, end: f.w, anc: m.Anc, from: m.From, cost: cost})
	return n, 0
}

// WriteHeld is Write to a stream that keeps back what does not fill a segment,
// until the next Write, Let or End, or until there is no room. It reports whether
// something is kept back and whether there is something to read.
func (f *Flow) WriteHeld(v *uio.Vec, limit, segment int) (n int, held, now bool, e linux.Errno) {
	f.mu.Lock()
	if n, e = f.write(v, limit, nil); e == 0 {
		f.held = (f.held + n) % segment
	}
	if v.Len() > 0 {
		f.held = 0 // the writer is about to wait for the reader
	}
	held, now = f.held > 0, f.unheld() > 0
	f.mu.Unlock()
	return n, held, now, e
}

// Let gives what was kept back to the reader and reports whether there was any.
func (f *Flow) Let() bool {
	f.mu.Lock()
	was := f.held > 0
	f.held = 0
	f.mu.Unlock()
	return was
}

// unheld is how many bytes a reader may have; called with mu held.
func (f *Flow) unheld() int { return f.used() - f.held }

// write is the part of Write that mu is held for.
func (f *Flow) write(v *uio.Vec, limit int, anc *Ancillary) (int, linux.Errno) {
	n := v.Len()
	if f.gone || f.eof {
		return 0, linux.EPIPE
	}
	if n == 0 {
		return 0, 0
	}
	room := limit - f.used()
	if room <= 0 {
		f.low = true
		return 0, linux.EAGAIN
	}
	n, e := f.reserveSome(min(n, room))
	if e == linux.ENOBUFS && f.used() > 0 { // what waits has its memory: after that
		f.low, e = true, linux.EAGAIN
	}
	if e != 0 {
		return 0, e
	}
	start := f.w
	done, e := f.copyIn(v, n)
	if e != 0 && done == 0 {
		f.w = start
		return 0, e
	}
	if anc != nil {
		f.push(record{start: start, end: f.w, anc: anc})
	}
	return done, 0
}

// Append is WriteMessage of kernel bytes; what the filter does not want is lost.
func (f *Flow) Append(b []byte, limit int, filter *bpf.Program) linux.Errno {
	_, e := f.WriteMessage(uio.Bytes(b), Message{Limit: limit, Filter: filter})
	if e == Filtered {
		return 0
	}
	return e
}

func (f *Flow) push(r record) {
	if f.head > 0 && len(f.recs) == cap(f.recs) {
		f.recs = f.recs[:copy(f.recs, f.recs[f.head:])]
		f.head = 0
	}
	f.recs = append(f.recs, r)
}

func (f *Flow) pop() {
	f.recs[f.head] = record{}
	if f.head++; f.head == len(f.recs) {
		f.recs, f.head = f.recs[:0], 0
	}
}

// Got is what a Read found.
type Got struct {
	N      int  // bytes copied
	Size   int  // the message's length
	Trunc  bool // the message was longer than the place for it
	Anc    *Ancillary
	From   *Name
	Room   bool // writers that found no room should be told
	EOF    bool // nothing more will come
	Packet bool // a message was read (it may be empty)
	Sender bool // of a stream: Anc says who the sender is (nil: it is not known)
}

// Read moves bytes or one message into v. EAGAIN: nothing is there. At the end
// it succeeds with EOF set. With peek everything stays; Anc is then still the
// flow's.
func (f *Flow) Read(v *uio.Vec, limit int, peek bool) (g Got, e linux.Errno) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.packet {
		return f.readPacket(v, limit, peek, 0)
	}
	if !peek {
		e = f.takeBytes(v, limit, &g)
		return g, e
	}
	n := f.unheld()
	if n == 0 {
		if g.EOF = f.eof; g.EOF {
			return g, 0
		}
		return g, linux.EAGAIN
	}
	if g.N, e = f.copyOut(v, f.r, min(n, v.Len())); g.N > 0 {
		e = 0
	}
	return g, e
}

// readPacket takes a message; with peek it leaves it, and looks at what lies from byte
// skip on, counted over all messages.
func (f *Flow) readPacket(v *uio.Vec, limit int, peek bool, skip int) (g Got, e linux.Errno) {
	if f.head == len(f.recs) {
		if f.eof {
			g.EOF = true
			return g, 0
		}
		return g, linux.EAGAIN
	}
	at := f.head
	for ; skip > 0 && at < len(f.recs) && skip >= f.recs[at].size(); at++ {
		skip -= f.recs[at].size()
	}
	if at == len(f.recs) {
		return g, linux.EAGAIN
	}
	rec := f.recs[at]
	size := rec.size() - skip
	n := min(size, v.Len())
	if n > 0 {
		n, e = f.copyOut(v, rec.start+uint64(skip), n)
	}
	g = Got{N: n, Size: size, Trunc: n < size && e == 0, Anc: rec.anc, From: rec.from, Packet: true}
	if peek {
		return g, e
	}
	f.r = rec.end
	f.cost -= rec.cost
	f.pop()
	g.Room = f.writersDue(limit)
	return g, e
}

func (r *record) size() int { return int(r.end - r.start) }

// writersDue decides after a read whether to notify waiting writers: when a good part of the
// buffer is free, so they do not wake for every few bytes.
func (f *Flow) writersDue(limit int) bool {
	if f.used() == 0 {
		f.idle()
	}
	if f.low && (f.crowd || f.writable(limit)) {
		f.low, f.crowd = false, false
		return true
	}
	return false
}

// writable reports whether there is enough room for waiting writers; called with mu held.
func (f *Flow) writable(limit int) bool {
	if f.packet {
		return f.cost <= limit/4
	}
	return f.used() <= limit/2
}

// Discard drops up to n bytes of a stream (with peek it only counts them).
func (f *Flow) Discard(n int, peek bool) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n = min(n, f.unheld())
	if !peek {
		if f.r += uint64(n); f.mark <= f.r {
			f.mark = 0
		}
		f.writersDue(1 << maxRingShift)
	}
	return n
}

// NextLen returns how many bytes a read would find: all of a stream, the first
// message of a message flow (SIOCINQ).
func (f *Flow) NextLen() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.packet {
		if f.head == len(f.recs) {
			return 0
		}
		return int(f.recs[f.head].end - f.recs[f.head].start)
	}
	return f.unheld()
}

// Used returns how many bytes wait.
func (f *Flow) Used() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.used()
}

// Readable reports whether a read would return at once, and whether the end
// has been announced.
func (f *Flow) Readable() (now, eof bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.packet {
		return f.head < len(f.recs) || f.eof, f.eof
	}
	return f.unheld() > 0 || f.eof, f.eof
}

// Writable reports whether writers have room (or would fail at once).
func (f *Flow) Writable(limit int) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.gone || f.eof {
		return true
	}
	if f.writable(limit) {
		return true
	}
	f.low = true
	return false
}

// Crowded reports whether more than queue messages wait.
func (f *Flow) Crowded(queue int) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.recs)-f.head <= queue || f.gone || f.eof {
		return false
	}
	f.low, f.crowd = true, true
	return true
}

// End announces that nothing more will be written (shutdown or close of the writer).
func (f *Flow) End() {
	f.mu.Lock()
	f.eof, f.held = true, 0
	f.mu.Unlock()
}

// Stop announces that nobody will read any more, and with purge drops what waits. It
// returns how many bytes or messages were lost, and the files they carried, whose
// references are the caller's.
func (f *Flow) Stop(purge bool) (lost int, rights []*Ancillary) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.gone = true
	if !purge {
		return 0, nil
	}
	return f.purge()
}

func (f *Flow) purge() (lost int, rights []*Ancillary) {
	lost = f.used()
	for i := f.head; i < len(f.recs); i++ {
		if a := f.recs[i].anc; a != nil && len(a.Rights) > 0 {
			rights = append(rights, a)
		}
		if f.packet {
			lost++
		}
	}
	f.recs, f.head, f.held, f.cost, f.mark = nil, 0, 0, 0, 0
	f.r = f.w
	f.drop()
	return lost, rights
}

// Purge drops what waits but lets writers go on. It returns what Stop returns.
func (f *Flow) Purge() (lost int, rights []*Ancillary) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.purge()
}

// Gone reports whether the reader is gone.
func (f *Flow) Gone() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.gone
}

// EachRight calls fn for every file that waits in the flow.
func (f *Flow) EachRight(fn func(*vfs.File)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := f.head; i < len(f.recs); i++ {
		if a := f.recs[i].anc; a != nil {
			for _, r := range a.Rights {
				fn(r)
			}
		}
	}
}

// Holds adds the memory of what waits in the flow, but for files: EachRights.
func (f *Flow) Holds(s *ledger.Sum) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := ledger.Array[record](cap(f.recs))
	if f.mem != nil {
		n += ledger.Of[ringMem]() + ledger.Size(int64(len(f.mem.b)))
	}
	for i := f.head; i < len(f.recs); i++ {
		if a := f.recs[i].anc; a != nil {
			n += ancillaryBytes + ledger.Array[*vfs.File](cap(a.Rights))
		}
	}
	s.Add(ledger.Messages, n)
}

var ancillaryBytes = ledger.Of[Ancillary]()

// EachRights calls fn for every message that carries files. The flow is locked meanwhile.
func (f *Flow) EachRights(fn func(*Ancillary)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := f.head; i < len(f.recs); i++ {
		if a := f.recs[i].anc; a != nil && len(a.Rights) > 0 {
			fn(a)
		}
	}
}
