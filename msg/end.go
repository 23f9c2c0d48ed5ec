package msg

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"hardtack/msg/internal/ring"
)

// Detacher is a Link whose end can be moved to another process while it is in
// use. Detach stops Recv and Park and gives up the link without closing it: the
// files are what another process needs, state what it must know besides.
type Detacher interface {
	Detach() (state []byte, files []*os.File, err error)
}

// Attacher is a Driver that takes up what Detach gave. The files become its.
type Attacher interface {
	Attach(state []byte, files []*os.File) (Link, error)
}

// End is an end of a connection on its way: it can be sent as a Cap, or taken
// up with Adopt.
type End struct {
	name        string
	fingerprint Fingerprint
	scheme      string
	state       endState
	link        []byte     // what Detach gave
	files       []*os.File // the same, then the send pool's, then those of frames; nil once sent or adopted
	nlink       int        // how many files are the link's
	bulk        []byte     // the send pool, if it holds bodies, as endBulk has it
	frames      []endFrame // came, and were not used yet
}

// endFrame is a frame of the control channel that the next owner still needs.
type endFrame struct {
	b     []byte
	files int // how many files are its
}

// endState is where a session stands.
type endState struct {
	token   token
	dialled bool
	fence   bool
	hands   bool
	calls   bool
	bulk    uint32 // id of the last bulk pool
	ring    ring.State
}

// Interface returns what the end speaks.
func (e *End) Interface() (name string, f Fingerprint) { return e.name, e.fingerprint }

// End takes the connection out of use and returns its end, to be sent to
// another process. Both owners must have stopped. What has arrived goes along:
// messages, also one that is partly received, bulk memory and descriptors, as
// does bulk memory that the peer has not read yet. A transport that cannot move
// gives an error, and the connection stays.
func (c *Conn) End() (*End, error) {
	c.made("End of")
	c.release()
	d, err := c.endable()
	if err != nil {
		return nil, err
	}
	b := c.cur
	c.recv.rx.Rewind(len(c.recv.frag) / SlotBytes) // the next owner takes them again
	c.recv.frag = c.recv.frag[:0]
	if c.recv.rx.Flush(true) {
		c.recv.shared.Wake()
	}
	state, files, err := d.Detach()
	if err != nil {
		c.mu.Lock()
		c.err = nil
		c.mu.Unlock()
		return nil, err
	}
	<-b.ended.done // now nothing is added to what has come
	e := &End{name: c.iface.Name, fingerprint: c.iface.Fingerprint, scheme: b.link.Peer().Scheme, link: state, files: files, nlink: len(files)}
	e.state = endState{token: c.token, dialled: c.dialled, fence: b.fence, hands: b.hands != nil, calls: c.calls, bulk: c.lastPool, ring: ring.Save(c.send.tx, c.recv.rx)}
	if s := &c.send; !s.bulk.empty(s.tx) {
		e.bulk = s.bulk.appendState(nil)
		e.files = append(e.files, s.bulk.file)
		s.bulk.file = nil
	}
	if err := c.inbox.take(e); err != nil {
		e.Close()
		return nil, err
	}
	c.mu.Lock()
	c.local = true
	c.mu.Unlock()
	c.attn.Or(attnClosed)
	close(c.done)
	leave(c)
	if c.gone != nil {
		c.gone()
	}
	return e, nil
}

// endable reports whether the end can be moved, and if so closes the connection
// for all others.
func (c *Conn) endable() (Detacher, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	d, ok := c.cur.link.(Detacher)
	c.inbox.mu.Lock()
	movable := len(c.inbox.caps) <= endCaps
	for _, p := range c.inbox.bulk {
		movable = movable && p.file != nil
	}
	c.inbox.mu.Unlock()
	c.send.tx.Refill()
	movable = movable && (c.send.bulk.empty(c.send.tx) || c.send.bulk.file != nil)
	switch {
	case c.err != nil:
		return nil, c.err
	case !ok:
		return nil, fmt.Errorf("%w: ends on %q cannot be moved", ErrNoCaps, c.cur.link.Peer().Scheme)
	case c.pending != nil || c.moving > 0:
		return nil, errors.New("msg: the end is being bound anew")
	case !movable:
		return nil, errors.New("msg: the end has more under way than can be moved")
	}
	c.err = errMoved // the control goroutine ends without closing anything
	return d, nil
}

// endCaps is how many messages with descriptors may wait in an end that moves.
const endCaps = 16

var errMoved = fmt.Errorf("%w: this end was moved", ErrClosed)

// sent forgets the files, which the receiver now has.
func (e *End) sent() { e.Close() }

// Close gives up an end that was neither sent nor adopted; for the peer the
// connection is closed.
func (e *End) Close() error {
	for _, f := range e.files {
		f.Close()
	}
	e.files = nil
	return nil
}

// Adopt makes a connection of an end that speaks iface.
func Adopt(e *End, iface *Interface, o *Options) (*Conn, error) {
	if e == nil || e.scheme == "" {
		panic("msg: Adopt of an End that is nil or zero: it is what a cap that arrived holds")
	}
	opts, err := o.fill()
	if err != nil {
		return nil, err
	}
	if err := iface.check(); err != nil {
		return nil, err
	}
	if e.fingerprint != iface.Fingerprint {
		return nil, &MismatchError{OurName: iface.Name, PeerName: e.name, Ours: iface.Fingerprint, Peers: e.fingerprint}
	}
	d, err := driver(e.scheme)
	if err != nil {
		return nil, err
	}
	a, ok := d.(Attacher)
	if !ok || e.files == nil {
		return nil, errors.New("msg: this end cannot be taken up")
	}
	files := e.files[e.nlink:]
	link, err := a.Attach(e.link, e.files[:e.nlink:e.nlink])
	e.files = nil
	if err != nil {
		closeFiles(files)
		return nil, err
	}
	g := greeting{}
	if e.state.fence {
		g.flags |= greetFence
	}
	if e.state.hands {
		g.flags |= greetHands
	}
	if e.state.calls {
		g.flags |= greetCalls
	}
	b, err := bind(link, &g)
	if err == nil {
		err = e.state.ring.Restore(b.tx, b.rx)
	}
	if err == nil && len(e.bulk) > 0 {
		err = e.adoptBulk(b, files[0])
		files = files[1:]
	}
	if err != nil {
		closeFiles(files)
		link.Close()
		return nil, err
	}
	s := session{token: e.state.token, lastPool: e.state.bulk, dialled: e.state.dialled, addr: link.Peer().Addr, pool: b.bulk.pool()}
	c := newConn(iface, &opts, b, s)
	c.replay(b, e.frames, files)
	c.start(b)
	return c, nil
}

// adoptBulk takes up the send pool, as appendState wrote it. The file becomes
// the binding's.
func (e *End) adoptBulk(b *binding, file *os.File) error {
	r, err := b.shared.MapSend(file, bulkStateSize(e.bulk))
	if err != nil {
		file.Close()
		return err
	}
	if r.File == nil {
		r.File = file
	} else {
		file.Close()
	}
	return b.bulk.restore(e.bulk, r, b.tx)
}

// replay takes in the frames that had come before the end was moved.
func (c *Conn) replay(b *binding, frames []endFrame, files []*os.File) {
	var last byte
	for _, f := range frames {
		own := files[:f.files]
		files = files[f.files:]
		if err := c.frame(b, f.b, own, &last); err != nil {
			closeFiles(own)
			c.fail(&PeerError{"a moved end: " + err.Error()})
		}
	}
}

func closeFiles(files []*os.File) {
	for _, f := range files {
		if f != nil {
			f.Close()
		}
	}
}

// marshal puts everything but the files into bytes:
//
//	length and name of the interface, length and scheme
//	fingerprint, token
//	flags      endDialled, endFence, endMore, endHands, endCalls
//	bulk       number of the last pool made, 32 bits
//	ring       where both rings stand
//	with endMore, 0xff, which no link's state starts with, then
//	  the number of the link's files, one byte
//	  length (16 bits) and state of the send pool
//	  number of frames (16 bits); for each its length (16), number of files (8), bytes
//	the link's state
func (e *End) marshal() []byte {
	var b []byte
	b = append(b, byte(len(e.name)))
	b = append(b, e.name...)
	b = append(b, byte(len(e.scheme)))
	b = append(b, e.scheme...)
	b = append(b, e.fingerprint[:]...)
	b = append(b, e.state.token[:]...)
	more := len(e.bulk) > 0 || len(e.frames) > 0
	b = append(b, flag(e.state.dialled, endDialled)|flag(e.state.fence, endFence)|flag(e.state.hands, endHands)|flag(e.state.calls, endCalls)|flag(more, endMore))
	b = binary.LittleEndian.AppendUint32(b, e.state.bulk)
	b = e.state.ring.Append(b)
	if more {
		b = append(b, 0xff, byte(e.nlink))
		b = binary.LittleEndian.AppendUint16(b, uint16(len(e.bulk)))
		b = append(b, e.bulk...)
		b = binary.LittleEndian.AppendUint16(b, uint16(len(e.frames)))
		for _, f := range e.frames {
			b = binary.LittleEndian.AppendUint16(b, uint16(len(f.b)))
			b = append(append(b, byte(f.files)), f.b...)
		}
	}
	return append(b, e.link...)
}

const (
	endDialled = 1 << iota
	endFence
	endMore
	endHands
	endCalls
)

func flag(v bool, bit byte) byte {
	if v {
		return bit
	}
	return 0
}

// unmarshalEnd is the inverse; the sender is not trusted. Only Restore and
// Attach can judge the numbers.
func unmarshalEnd(b []byte, files []*os.File) (*End, error) {
	e := &End{files: files}
	text := func() string {
		if len(b) == 0 || int(b[0]) >= len(b) {
			b = nil
			return ""
		}
		s := string(b[1 : 1+int(b[0])])
		b = b[1+len(s):]
		return s
	}
	e.name, e.scheme = text(), text()
	if e.name == "" || e.scheme == "" || len(b) < 16+16+1+4+ring.StateBytes {
		return nil, errors.New("a channel end that is none")
	}
	b = b[copy(e.fingerprint[:], b):]
	b = b[copy(e.state.token[:], b):]
	flags := b[0]
	e.state.dialled, e.state.fence, e.state.hands = flags&endDialled != 0, flags&endFence != 0, flags&endHands != 0
	e.state.calls = flags&endCalls != 0
	e.state.bulk = binary.LittleEndian.Uint32(b[1:])
	e.state.ring.Parse(b[5:])
	b = b[5+ring.StateBytes:]
	e.nlink = len(files)
	if flags&endMore != 0 {
		var err error
		if b, err = e.unmarshalMore(b); err != nil {
			return nil, err
		}
	}
	e.link = append([]byte(nil), b...)
	return e, nil
}

// unmarshalMore reads what endMore announces, and returns what follows.
func (e *End) unmarshalMore(b []byte) ([]byte, error) {
	bad := errors.New("a channel end that is none")
	piece := func(n int) []byte { // nil if there is less
		if n > len(b) {
			b = nil
			return nil
		}
		p := b[:n:n]
		b = b[n:]
		return p
	}
	head := piece(4)
	if head == nil || head[0] != 0xff || int(head[1]) > len(e.files) {
		return nil, bad
	}
	e.nlink = int(head[1])
	left := len(e.files) - e.nlink
	if e.bulk = piece(int(binary.LittleEndian.Uint16(head[2:]))); len(e.bulk) > 0 {
		left--
	}
	count := piece(2)
	if count == nil {
		return nil, bad
	}
	for range binary.LittleEndian.Uint16(count) {
		h := piece(3)
		if h == nil {
			return nil, bad
		}
		f := endFrame{piece(int(binary.LittleEndian.Uint16(h))), int(h[2])}
		if left -= f.files; f.b == nil || left < 0 {
			return nil, bad
		}
		e.frames = append(e.frames, f)
	}
	if left != 0 || len(e.bulk) > 0 && !bulkStateSound(e.bulk) {
		return nil, bad
	}
	return b, nil
}

// dupNamed duplicates a descriptor.
func dupNamed(f *os.File, name string) (*os.File, error) {
	raw, err := f.SyscallConn()
	if err != nil {
		return nil, err
	}
	fd, derr := -1, error(nil)
	err = raw.Control(func(p uintptr) { fd, derr = unix.FcntlInt(p, unix.F_DUPFD_CLOEXEC, 0) })
	if err == nil {
		err = derr
	}
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), name), nil
}

// Pair makes a connection whose two ends are both here; one of them may be
// sent to another process as a Cap. It uses the first of the schemes that can.
func Pair(ctx context.Context, iface *Interface, o *Options) (a, b *Conn, err error) {
	needContext(ctx, "Pair")
	opts, err := o.fill()
	if err != nil {
		return nil, nil, err
	}
	if err := iface.check(); err != nil {
		return nil, nil, err
	}
	var x, y Link
	if d, derr := driver("unix"); derr == nil && opts.Schemes[0] != "inproc" {
		p, ok := d.(Pairer)
		if !ok {
			return nil, nil, errors.New("msg: the driver makes no pairs")
		}
		if x, y, err = p.Pair(opts.rings(iface)); err != nil {
			return nil, nil, err
		}
	} else {
		x, y = inprocPair("", opts.Pages)
	}
	g := newGreeting(frameHello, iface, token{}, x)
	s := session{token: newToken()}
	var ends [2]*binding
	for i, link := range []Link{x, y} {
		if ends[i], err = bind(link, &g); err != nil {
			x.Close()
			y.Close()
			return nil, nil, err
		}
	}
	a, b = newConn(iface, &opts, ends[0], s), newConn(iface, &opts, ends[1], s)
	a.start(ends[0])
	b.start(ends[1])
	return a, b, nil
}

// Pairer is a Driver that makes both ends of a link, which need no address.
type Pairer interface {
	Pair(r Rings) (a, b Link, err error)
}
