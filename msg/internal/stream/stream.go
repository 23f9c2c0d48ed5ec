// Package stream carries frames over a file that is a stream of bytes, such as a channel between
// clusters or one to a service of the kernel.
package stream

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"
	"time"

	"hardtack/msg"
)

// Link implements msg.Link: each frame has its length before it.
type Link struct {
	f   *os.File
	who msg.Peer

	sendMu sync.Mutex
	out    []byte // guarded by sendMu
	broken error  // part of a frame was sent; guarded by sendMu

	in    *bufio.Reader // of Recv, as frame
	frame []byte
}

// New makes a link of a file that does not block; who has its other end.
func New(f *os.File, who msg.Peer) *Link {
	return &Link{f: f, who: who, in: bufio.NewReaderSize(f, 8<<10)}
}

// until has set give up when ctx ends; the function it returns ends that.
func until(ctx context.Context, set func(time.Time) error) func() {
	if ctx.Done() == nil {
		return func() {}
	}
	stop := context.AfterFunc(ctx, func() { set(time.Unix(1, 0)) })
	return func() {
		if !stop() {
			set(time.Time{})
		}
	}
}

// Send implements msg.Link.
func (k *Link) Send(ctx context.Context, frame []byte, files []*os.File) error {
	if len(files) > 0 {
		return msg.ErrNoCaps
	}
	if len(frame) > msg.MaxFrame {
		return fmt.Errorf("msg: a frame of %d bytes", len(frame))
	}
	k.sendMu.Lock()
	defer k.sendMu.Unlock()
	if k.broken != nil {
		return k.broken
	}
	k.out = append(binary.LittleEndian.AppendUint32(k.out[:0], uint32(len(frame))), frame...)
	defer until(ctx, k.f.SetWriteDeadline)()
	n, err := k.f.Write(k.out)
	if err == nil {
		return nil
	}
	if n > 0 {
		k.broken = io.EOF
	}
	return reason(ctx, err)
}

// reason is what an error of the file means for a link.
func reason(ctx context.Context, err error) error {
	switch {
	case errors.Is(err, os.ErrClosed):
		return msg.ErrClosed
	case errors.Is(err, os.ErrDeadlineExceeded) && ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, syscall.EPIPE), errors.Is(err, syscall.ECONNRESET), errors.Is(err, io.ErrUnexpectedEOF):
		return io.EOF
	}
	return err
}

// Recv implements msg.Link.
func (k *Link) Recv(ctx context.Context) ([]byte, []*os.File, error) {
	defer until(ctx, k.f.SetReadDeadline)()
	head, err := k.in.Peek(4)
	if err != nil {
		return nil, nil, reason(ctx, err)
	}
	n := binary.LittleEndian.Uint32(head)
	if n > msg.MaxFrame {
		k.f.Close()
		return nil, nil, &msg.PeerError{Reason: fmt.Sprintf("a frame of %d bytes", n)}
	}
	k.in.Discard(4)
	if cap(k.frame) < int(n) {
		k.frame = make([]byte, n)
	}
	k.frame = k.frame[:n]
	if _, err := io.ReadFull(k.in, k.frame); err != nil {
		k.f.Close() // the rest of the frame would be taken for a length
		return nil, nil, reason(ctx, err)
	}
	return k.frame, nil, nil
}

// CanPass implements msg.Link.
func (k *Link) CanPass() bool { return false }

// Peer implements msg.Link.
func (k *Link) Peer() msg.Peer { return k.who }

// Shared implements msg.Link.
func (k *Link) Shared() msg.Shared { return nil }

// Close implements msg.Link.
func (k *Link) Close() error { return k.f.Close() }
