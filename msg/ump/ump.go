// Package ump is the driver for two processes of one machine, after
// Barrelfish's user-level message passing: messages travel in memory that both
// have mapped, without the kernel. Importing it registers the driver under the
// scheme "unix".
//
// A link is a Unix socket of packets and a memory file with the two rings. The
// socket carries what is rare: the files of the rings and of bulk pools,
// descriptors, the first wakes, and the news that the peer has closed or died,
// which the kernel gives at once. A receiver that is woken more often gets a
// bell, a pair of sockets: on one it waits through Go's poller, the other is the
// peer's. So an idle connection costs a descriptor,
// two pages and a goroutine in each process.
//
// Frames of the driver itself start with a byte from 0xf0 on:
//
//	memory  pages of a ring, 8 bits; with the memory file. First, from the
//	        end that dialled, whose sending ring comes first in the file
//	wake    look again
//	bell    with a socket; from now on send a byte there instead of wakes
//	place   with the notification at which this end naps (lmp.go)
//
// The peer's files are checked before they are mapped: they must be memory
// files of the right size, on small pages, sealed so that they cannot shrink.
package ump

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"hardtack/msg"
)

const scheme = "unix"

func init() { msg.Register(Driver{}) }

// Driver is the driver; it has no state.
type Driver struct{}

// Scheme is "unix": an address is that and the path of a socket.
func (Driver) Scheme() string { return scheme }

// setupTime is how long a peer may take to send the memory.
const setupTime = 5 * time.Second

// Dial connects to the socket at addr and makes the memory.
func (d Driver) Dial(ctx context.Context, addr string) (msg.Link, error) {
	return d.DialRings(ctx, addr, msg.Rings{Pages: 1})
}

// DialRings is Dial for rings of choice.
func (Driver) DialRings(ctx context.Context, addr string, r msg.Rings) (msg.Link, error) {
	path, ok := strings.CutPrefix(addr, scheme+":")
	if !ok {
		return nil, fmt.Errorf("ump: %q is not an address of mine", addr)
	}
	var d net.Dialer
	c, err := d.DialContext(ctx, "unixpacket", path)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ECONNREFUSED) {
			err = fmt.Errorf("%w: %w", msg.ErrNoName, err)
		}
		return nil, err
	}
	l, err := newLink(c.(*net.UnixConn), addr)
	if err != nil {
		return nil, err
	}
	if err := l.offer(ctx, r); err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}

// Listen makes the socket that hint says, or one in the directory for temporary
// files. A socket at which nobody listens any more is replaced.
func (Driver) Listen(_ context.Context, name, hint string) (msg.Listener, error) {
	path := hint
	if path == "" {
		sweepOnce()
		dir, err := os.MkdirTemp("", temporary+"*")
		if err != nil {
			return nil, err
		}
		path = dir + "/" + socketName // the name may have slashes, or be longer than a path can be
	}
	addr := &net.UnixAddr{Name: path, Net: "unixpacket"}
	l, err := net.ListenUnix("unixpacket", addr)
	if errors.Is(err, unix.EADDRINUSE) {
		c, derr := net.DialUnix("unixpacket", nil, addr)
		switch {
		case derr == nil:
			c.Close()
			return nil, fmt.Errorf("%w: somebody listens at %s", msg.ErrTaken, path)
		case !errors.Is(derr, unix.ECONNREFUSED):
			return nil, derr
		}
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		l, err = net.ListenUnix("unixpacket", addr)
	}
	if err != nil {
		return nil, err
	}
	ln := &listener{l: l, path: path, addr: scheme + ":" + path, temporary: hint == "", links: make(chan *link), done: make(chan struct{})}
	thePorter() // its descriptor is there from now on
	go ln.run()
	return ln, nil
}

// Pair makes both ends of a link.
func (Driver) Pair(r msg.Rings) (a, b msg.Link, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	var ends [2]*link
	for i, fd := range fds {
		if ends[i], err = fileLink(os.NewFile(uintptr(fd), "pair"), ""); err != nil {
			break
		}
	}
	if err == nil {
		err = ends[0].offer(context.Background(), r)
	}
	if err == nil {
		err = ends[1].accept(context.Background())
	}
	if err != nil {
		for _, l := range ends {
			if l != nil {
				l.Close()
			}
		}
		return nil, nil, err
	}
	return ends[0], ends[1], nil
}

// listener accepts sockets and waits for the memory of each beside the others.
type listener struct {
	l         *net.UnixListener
	path      string
	addr      string
	temporary bool
	links     chan *link
	done      chan struct{}
}

func (n *listener) Addr() string { return n.addr }

func (n *listener) run() {
	defer close(n.done)
	for wait := time.Millisecond; ; {
		c, err := n.l.AcceptUnix()
		if err != nil {
			if errors.Is(err, net.ErrClosed) {
				return
			}
			time.Sleep(wait) // out of descriptors or memory; others may give some back
			wait = min(2*wait, time.Second)
			continue
		}
		wait = time.Millisecond
		go func() {
			l, err := newLink(c, "")
			if err != nil {
				return
			}
			ctx, cancel := context.WithTimeout(context.Background(), setupTime)
			defer cancel()
			if l.accept(ctx) != nil {
				l.Close()
				return
			}
			l.peer.Addr, l.accepted = n.addr, true
			select {
			case n.links <- l:
			case <-n.done:
				l.Close()
			}
		}()
	}
}

// OpenToUsers implements msg.Opener. A directory that was not made here is its maker's
// to open.
func (n *listener) OpenToUsers() error {
	if n.temporary {
		if err := os.Chmod(filepath.Dir(n.path), 0o711); err != nil {
			return err
		}
	}
	return os.Chmod(n.path, 0o666)
}

func (n *listener) Accept(ctx context.Context) (msg.Link, error) {
	select {
	case l := <-n.links:
		return l, nil
	case <-n.done:
		return nil, msg.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (n *listener) Close() error {
	err := n.l.Close()
	<-n.done
	if n.temporary {
		os.Remove(filepath.Dir(n.path))
	}
	return err
}
