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
	files       []*os.File // the same; nil once sent or adopted
}

// endState is where a session stands.
type endState struct {
	token   token
	dialled bool
	fence   bool
	bulk    uint32 // id of the last bulk pool
	ring    ring.State
}

// Interface returns what the end speaks.
func (e *End) Interface() (name string, f Fingerprint) { return e.name, e.fingerprint }

// End takes the connection out of use and returns its end, to be sent to
// another process. Both owners must have stopped. Messages that have arrived go
// along; a message that is partly received, in bulk memory, or comes with
// descriptors, does not, and gives an error, as does a transport that cannot.
func (c *Conn) End() (*End, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	d, ok := c.cur.link.(Detacher)
	c.inbox.mu.Lock()
	waiting := len(c.inbox.caps) > 0 || len(c.inbox.bulk) > 0
	c.inbox.mu.Unlock()
	c.send.tx.Refill()
	switch {
	case c.err != nil:
		return nil, c.err
	case !ok:
		return nil, fmt.Errorf("%w: ends on %q cannot be moved", ErrNoCaps, c.cur.link.Peer().Scheme)
	case c.pending != nil || c.recv.slow || len(c.recv.frag) > 0 || waiting || !c.send.bulk.empty(c.send.tx):
		return nil, errors.New("msg: the end has messages under way that cannot be moved")
	}
	if c.recv.rx.Flush(true) {
		c.recv.shared.Wake()
	}
	c.err = errMoved // the control goroutine ends without closing anything
	state, files, err := d.Detach()
	if err != nil {
		c.err = nil
		return nil, err
	}
	e := &End{name: c.iface.Name, fingerprint: c.iface.Fingerprint, scheme: c.cur.link.Peer().Scheme, link: state, files: files}
	e.state = endState{token: c.token, dialled: c.dialled, fence: c.cur.fence, bulk: c.lastPool, ring: ring.Save(c.send.tx, c.recv.rx)}
	c.local = true
	c.attn.Or(attnClosed)
	close(c.done)
	leave(c)
	if c.gone != nil {
		c.gone()
	}
	return e, nil
}

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
	link, err := a.Attach(e.link, e.files)
	e.files = nil
	if err != nil {
		return nil, err
	}
	g := greeting{}
	if e.state.fence {
		g.flags = greetFence
	}
	b, err := bind(link, &g)
	if err == nil {
		err = e.state.ring.Restore(b.tx, b.rx)
	}
	if err != nil {
		link.Close()
		return nil, err
	}
	return newConn(iface, opts, b, session{token: e.state.token, lastPool: e.state.bulk, dialled: e.state.dialled, addr: link.Peer().Addr}), nil
}

const endFixed = 1 + 16 + 16 + 1 + 4 + ring.StateBytes + 2

// marshal puts everything but the files into bytes.
func (e *End) marshal() []byte {
	b := make([]byte, 0, endFixed+len(e.name)+len(e.scheme)+len(e.link))
	b = append(b, byte(len(e.name)))
	b = append(b, e.name...)
	b = append(b, byte(len(e.scheme)))
	b = append(b, e.scheme...)
	b = append(b, e.fingerprint[:]...)
	b = append(b, e.state.token[:]...)
	b = append(b, flag(e.state.dialled, 1)|flag(e.state.fence, 2))
	b = binary.LittleEndian.AppendUint32(b, e.state.bulk)
	b = e.state.ring.Append(b)
	return append(b, e.link...)
}

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
		s := string(b[1 : 1+b[0]])
		b = b[1+len(s):]
		return s
	}
	e.name, e.scheme = text(), text()
	if e.name == "" || e.scheme == "" || len(b) < 16+16+1+4+ring.StateBytes {
		return nil, errors.New("a channel end that is none")
	}
	b = b[copy(e.fingerprint[:], b):]
	b = b[copy(e.state.token[:], b):]
	e.state.dialled, e.state.fence = b[0]&1 != 0, b[0]&2 != 0
	e.state.bulk = binary.LittleEndian.Uint32(b[1:])
	e.state.ring.Parse(b[5:])
	e.link = append([]byte(nil), b[5+ring.StateBytes:]...)
	return e, nil
}

// dupFile duplicates a descriptor.
func dupFile(f *os.File) (*os.File, error) {
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
	return os.NewFile(uintptr(fd), f.Name()), nil
}

// Pair makes a connection whose two ends are both here; one of them may be
// sent to another process as a Cap. It uses the first of the schemes that can.
func Pair(ctx context.Context, iface *Interface, o *Options) (a, b *Conn, err error) {
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
		if x, y, err = p.Pair(opts.Pages); err != nil {
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
	return newConn(iface, opts, ends[0], s), newConn(iface, opts, ends[1], s), nil
}

// Pairer is a Driver that makes both ends of a link, which need no address.
type Pairer interface {
	Pair(pages int) (a, b Link, err error)
}
