package msg

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"time"
)

// inbox is what the control goroutine of a link has received for the receiving
// owner: descriptors and bulk pools, each announced before the slot that needs
// it was published.
type inbox struct {
	mu    sync.Mutex
	caps  []capsOf
	files int           // of caps
	bulk  []*bulkRx     // the newest last; a few, for a binding that is left
	news  chan struct{} // closed when something comes; nil if nobody waits
	ended bool
}

// capsOf is what comes with message number seq of the session.
type capsOf struct {
	seq   uint64
	caps  []Cap
	files int // that the frame brought
}

// Bounds of an inbox. A peer may announce what it then does not send; it gets
// no further than this.
const (
	maxCapsQueued  = 4096
	maxFilesQueued = 256 // more than an honest peer has under way: see maxFilesOut
	bulkKept       = 8
)

// tell wakes who waits. The lock is held.
func (b *inbox) tell() {
	if b.news != nil {
		close(b.news)
		b.news = nil
	}
}

// add adds a bulk pool. The lock is held.
func (b *inbox) add(p *bulkRx) {
	if b.bulk = append(b.bulk, p); len(b.bulk) > bulkKept {
		b.bulk = b.bulk[1:]
	}
}

// take gives what is in the inbox to an end that moves, as the frames that
// brought it.
func (b *inbox) take(e *End) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	size := 0
	add := func(frame []byte, files []*os.File) {
		e.frames = append(e.frames, endFrame{frame, len(files)})
		e.files = append(e.files, files...)
		size += len(frame)
	}
	for _, p := range b.bulk {
		add(bulkFrame(p.id, len(p.mem)), []*os.File{p.file})
		p.file = nil
	}
	for _, k := range b.caps {
		frame, files, err := capsFrame(k.seq, k.caps)
		if err != nil {
			return err
		}
		add(frame, files)
	}
	b.bulk, b.caps, b.files = nil, nil, 0
	if size > MaxFrame/2 {
		return errors.New("msg: the end had more under way than can be moved")
	}
	return nil
}

// end closes what nobody will receive.
func (b *inbox) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ended = true
	b.tell()
}

// drop closes the descriptors that nobody has taken.
func (b *inbox) drop() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ended = true
	for _, k := range b.caps {
		closeAll(k.caps)
	}
	b.caps, b.files = nil, 0
	b.tell()
}

func closeAll(caps []Cap) {
	for _, k := range caps {
		k.Close()
	}
}

// await waits until found reports true, which it is asked with the lock held.
func (b *inbox) await(ctx context.Context, c *Conn, found func() bool) error {
	for {
		b.mu.Lock()
		ok, ended := found(), b.ended
		if b.news == nil && !ok {
			b.news = make(chan struct{})
		}
		news := b.news
		b.mu.Unlock()
		switch {
		case ok:
			return nil
		case c.bindWaits():
			return errAgain
		case ended:
			return &PeerError{"what came with a message is missing"}
		}
		select {
		case <-news:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// errAgain: look again, in another ring.
var errAgain = errors.New("msg: bound anew")

// bindWaits reports whether the receiving owner is to take up a new binding.
func (c *Conn) bindWaits() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.nextRecv() != nil
}

// awaitBulk returns bulk pool id. Pools of several links come in any order.
func (c *Conn) awaitBulk(ctx context.Context, id uint32) (b *bulkRx, err error) {
	in := c.inbox
	err = in.await(ctx, c, func() bool {
		for i, p := range in.bulk {
			if p.id == id { // those that came before on that link are not needed again
				b = p
				before := slices.DeleteFunc(in.bulk[:i], func(q *bulkRx) bool { return q.link == p.link })
				in.bulk = slices.Delete(in.bulk, len(before), i)
				return true
			}
		}
		return false
	})
	return b, err
}

// recvCaps returns what came with a message.
func (c *Conn) recvCaps(ctx context.Context, m *Message) (caps []Cap, err error) {
	in := c.inbox
	seq := c.recv.rx.Seq
	err = in.await(ctx, c, func() bool {
		found := false
		in.caps = slices.DeleteFunc(in.caps, func(k capsOf) bool {
			switch {
			case k.seq < seq || k.seq == seq && found: // of a message that came twice
				closeAll(k.caps)
			case k.seq == seq:
				caps, found = k.caps, true
			default: // of a later message, over another link
				return false
			}
			in.files -= k.files
			return true
		})
		return found
	})
	if err == nil && len(caps) != m.Caps {
		closeAll(caps)
		return nil, &PeerError{fmt.Sprintf("%d caps with %s, not %d", len(caps), m.Name, m.Caps)}
	}
	nameCaps(caps, m.CapNames)
	return caps, err
}

// nameCaps has files called by the fields that they came in. They were opened before
// their message was known, and a File cannot be renamed.
func nameCaps(caps []Cap, names []string) {
	for i := range min(len(caps), len(names)) {
		f := caps[i].File
		if f == nil {
			continue
		}
		if named, err := dupNamed(f, names[i]); err == nil { // else without
			f.Close()
			caps[i].File = named
		}
	}
}

// errLeft: the peer has left a link, but this end has not, for the bind failed
// after the peer had done its part.
var errLeft = errors.New("msg: the peer has left this link")

// control receives the frames of a link until it ends, as the link's one
// receiver. With a notifier it returns when there are none and is called again
// when there are.
func (c *Conn) control(b *binding, n Notifier) {
	for {
		var frame []byte
		var files []*os.File
		var err error
		if n != nil {
			frame, files, err = n.TryRecv()
		} else {
			frame, files, err = b.link.Recv(context.Background())
		}
		if err == ErrNoFrame {
			if n.Notify(nil) {
				return
			}
			n = nil
			continue
		}
		if err == nil {
			if err = c.frame(b, frame, files, &b.last); err == nil {
				continue
			}
			for _, f := range files {
				f.Close()
			}
		}
		c.afterLink(b, err)
		close(b.ended.done)
		return
	}
}

// afterLink does what the end of a link demands, which may take until another is
// there.
func (c *Conn) afterLink(b *binding, err error) {
	b.ended.broken = b.last == 0 && !errors.Is(err, io.EOF)
	if b.last == 0 && !b.bound {
		b.ended.before = b.before
	}
	moved := c.left(b)
	if !moved && b.last == 0 && errors.Is(err, io.EOF) {
		moved, err = c.hungUp(b)
	}
	var wrong *PeerError
	switch {
	case moved: // nothing on this link matters any more
	case errors.As(err, &wrong):
		c.fail(err)
	case b.last == frameBye:
		c.fail(ErrPeerClosed)
	case errors.Is(err, errLeft): // which stays open: that the peer has this one tells it that we are there
		c.lost(b.link, err)
		b.link.Close()
		return
	case errors.Is(err, io.EOF) && b.last != frameLeft:
		c.fail(ErrPeerGone)
	default:
		b.ended.broken = true // perhaps hungUp says so
		b.link.Close()
		c.lost(b.link, err)
		return
	}
	b.link.Close()
	if !moved {
		c.inbox.end()
	}
}

// hungUp says what it means that the peer has ended link b: that it is gone,
// io.EOF, unless it may have given up a bind that this end took for made, and
// will bind again. Then it still has the link before, or that was broken. It may
// also have closed there, which is read first.
func (c *Conn) hungUp(b *binding) (moved bool, err error) {
	c.mu.Lock()
	change, dialled := c.nextBind(), c.dialled
	moved = c.cur != b
	c.mu.Unlock()
	if moved || dialled || b.bound && !b.mute || b.before == nil {
		return moved, io.EOF
	}
	limit := time.NewTimer(c.opts.Grace)
	defer limit.Stop()
	for at := b.before; at != nil; at = at.before {
		select {
		case <-at.done:
			if b.mute {
				break
			}
			if at.broken {
				err = errors.New("a bind was not made")
				return c.left(b), err
			}
			continue // if that was not made either, to the one before
		case <-change:
		case <-c.done:
		case <-limit.C:
		}
		break
	}
	return c.left(b), io.EOF
}

// frame handles one frame. On an error the files are still the caller's.
func (c *Conn) frame(b *binding, frame []byte, files []*os.File, last *byte) error {
	if len(frame) == 0 {
		return &PeerError{"an empty frame"}
	}
	if *last != 0 {
		return &PeerError{"a frame after the last"}
	}
	if len(files) > 0 && frame[0] != frameCaps && frame[0] != frameBulk {
		return &PeerError{"descriptors that belong to nothing"}
	}
	switch frame[0] {
	case frameCaps:
		return c.inbox.takeCaps(frame, files)
	case frameBulk:
		return c.takeBulk(b, frame, files)
	case frameBye:
		*last = frameBye
		// What was sent before is in the ring. Nothing more comes but the end
		// of the link.
		c.closedOn(b)
	case frameLeft:
		*last = frameLeft
		if c.left(b) {
			return io.EOF
		}
		return errLeft
	case frameBound:
		b.bound = true
	case frameMove:
		c.moveTo(string(frame[1:]))
	case frameSlots, frameAck:
		if b.car == nil {
			return &PeerError{"messages in a frame on a link with common memory"}
		}
		return b.car.frame(frame)
	default:
		return &PeerError{fmt.Sprintf("frame of kind %d", frame[0])}
	}
	return nil
}

// takeCaps queues the descriptors of a message that is still to come.
func (in *inbox) takeCaps(frame []byte, files []*os.File) error {
	seq, caps, err := parseCaps(frame, files)
	if err != nil {
		return &PeerError{"caps: " + err.Error()}
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	if len(in.caps) >= maxCapsQueued || in.files+len(files) > maxFilesQueued {
		return &PeerError{"too many caps without their messages"}
	}
	in.caps = append(in.caps, capsOf{seq, caps, len(files)})
	in.files += len(files)
	in.tell()
	return nil
}

// takeBulk maps a pool for large bodies.
func (c *Conn) takeBulk(b *binding, frame []byte, files []*os.File) error {
	id, n, err := parseBulk(frame)
	if err != nil {
		return &PeerError{"bulk pool: " + err.Error()}
	}
	if len(files) > 1 || n > 2*alignLine(c.opts.MaxBody)+MinBulk {
		return &PeerError{"bulk pool: too large, or too many files"}
	}
	var file *os.File
	if len(files) == 1 {
		file = files[0]
	}
	region, err := b.shared.MapBulk(file, n)
	if err != nil {
		return &PeerError{"bulk pool: " + err.Error()}
	}
	if file != nil {
		file.Close()
	}
	in := c.inbox
	in.mu.Lock()
	defer in.mu.Unlock()
	in.add(&bulkRx{id: id, mem: region.Mem, keep: region.Keep, link: b.link, file: region.File})
	in.tell()
	return nil
}
