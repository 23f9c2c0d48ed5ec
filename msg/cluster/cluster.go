// Package cluster is the transport between processes of different clusters of a machine,
// each of which has a kernel of its own (docs/clusters.md). Addresses are
// cluster:NUMBER/NAME. Frames travel through both kernels, which bound what waits, and
// descriptors cannot be sent. Messages pass in rings that both processes map, if no message of
// the interface can be long (msg.BulkBytes) and the kernels have memory for them; else in frames.
//
// Import it for its effect on msg. A machine without /dev/cluster has one cluster only; then
// dialling and listening fail.
package cluster

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	abi "hardtack/abi/cluster"
	"hardtack/msg"
	"hardtack/msg/internal/stream"
)

// Scheme is what addresses start with.
const Scheme = "cluster"

func init() { msg.Register(driver{}) }

type driver struct{}

// Scheme implements msg.Driver.
func (driver) Scheme() string { return Scheme }

// Dial implements msg.Driver.
func (d driver) Dial(ctx context.Context, addr string) (msg.Link, error) {
	return d.DialRings(ctx, addr, msg.Rings{Long: true})
}

// DialRings implements msg.Ringed.
func (driver) DialRings(_ context.Context, addr string, r msg.Rings) (msg.Link, error) {
	number, name, ok := strings.Cut(strings.TrimPrefix(addr, Scheme+":"), "/")
	n, err := strconv.ParseUint(number, 10, 32)
	if err != nil || !ok {
		return nil, fmt.Errorf("msg/cluster: %q is not cluster:NUMBER/NAME", addr)
	}
	f, err := open()
	if err != nil {
		return nil, err
	}
	pages := min(r.Pages, abi.MaxRingPages)
	if r.Long {
		pages = 0
	}
	if err := call(f, uint32(n), name, pages); err != nil {
		f.Close()
		switch {
		case errors.Is(err, syscall.ENOENT), errors.Is(err, syscall.ENODEV):
			return nil, fmt.Errorf("%w: %s: %w", msg.ErrNoName, addr, err)
		}
		return nil, fmt.Errorf("%s: %w", addr, err)
	}
	return newLink(f, addr, true)
}

// Listen implements msg.Driver.
func (driver) Listen(_ context.Context, name, _ string) (msg.Listener, error) {
	f, err := open()
	if err != nil {
		return nil, err
	}
	if err := request(f, abi.Listen, 0, name, 0); err != nil {
		f.Close()
		if errors.Is(err, syscall.EADDRINUSE) {
			err = fmt.Errorf("%w: %s", msg.ErrTaken, name)
		}
		return nil, err
	}
	p, err := whoIs(f)
	if err != nil {
		f.Close()
		return nil, err
	}
	return &listener{f: f, addr: fmt.Sprintf("%s:%d/%s", Scheme, p.Own, name)}, nil
}

// Own returns the number of the cluster that the caller is in.
func Own() (int, error) {
	f, err := open()
	if err != nil {
		return 0, err
	}
	defer f.Close()
	p, err := whoIs(f)
	return int(p.Own), err
}

func open() (*os.File, error) { return os.OpenFile(abi.Device, os.O_RDWR|syscall.O_NONBLOCK, 0) }

// call connects to a name, with rings of so many pages if that is not 0.
func call(f *os.File, cluster uint32, name string, pages int) error {
	if pages > 0 {
		return request(f, abi.ConnectRings, cluster, name, pages)
	}
	return request(f, abi.Connect, cluster, name, 0)
}

// request makes a request that takes an address.
func request(f *os.File, request uint, cluster uint32, name string, pages int) error {
	var b [abi.RingAddressSize]byte
	if name == "" || len(name) > abi.AddressSize-4 {
		return fmt.Errorf("msg/cluster: the name %q has not 1 to 64 bytes", name)
	}
	binary.LittleEndian.PutUint32(b[:], cluster)
	copy(b[4:], name)
	binary.LittleEndian.PutUint32(b[abi.AddressSize:], uint32(pages))
	return ioctl(f, request, b[:])
}

func whoIs(f *os.File) (p abi.Peer, err error) {
	var b [abi.PeerSize]byte
	if err = ioctl(f, abi.WhoIs, b[:]); err == nil {
		word := func(i int) uint32 { return binary.LittleEndian.Uint32(b[4*i:]) }
		p = abi.Peer{Own: word(0), Cluster: word(1), PID: word(2), UID: word(3), GID: word(4)}
	}
	return p, err
}

type listener struct {
	f    *os.File
	addr string
}

// Accept waits for the next channel.
func (l *listener) Accept(ctx context.Context) (msg.Link, error) {
	for {
		l.f.SetReadDeadline(time.Time{})
		stop := context.AfterFunc(ctx, func() { l.f.SetReadDeadline(time.Unix(1, 0)) })
		fd, err := accept(l.f)
		stop()
		switch {
		case err == nil:
			k, err := newLink(os.NewFile(uintptr(fd), abi.Device), l.addr, false)
			if err != nil {
				continue // it has ended
			}
			return k, nil
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case errors.Is(err, os.ErrClosed):
			return nil, msg.ErrClosed
		case errors.Is(err, os.ErrDeadlineExceeded): // of the call before
		default:
			return nil, err
		}
	}
}

// Addr implements msg.Listener.
func (l *listener) Addr() string { return l.addr }

// Close implements msg.Listener.
func (l *listener) Close() error { return l.f.Close() }

// newLink takes a channel, and its rings if it has some.
func newLink(f *os.File, addr string, dialled bool) (msg.Link, error) {
	p, err := whoIs(f)
	if err != nil {
		f.Close()
		return nil, err
	}
	k := stream.New(f, msg.Peer{PID: int(p.PID), UID: int(p.UID), GID: int(p.GID), Scheme: Scheme, Addr: addr})
	pages, err := number(f, abi.RingPages, 0)
	if err == nil && pages > 0 {
		return newRings(k, f, pages, dialled)
	}
	return k, nil
}

// Resolver finds names in all clusters: first where base finds them, and then by asking the
// other clusters in turn. A name is published with base, for its own cluster, and listens for
// the others if the Schemes of the Options have "cluster".
func Resolver(base msg.Resolver) msg.Resolver { return resolver{base} }

type resolver struct{ msg.Resolver }

// maxClusters is how many a machine can have.
const maxClusters = 16

// Resolve implements msg.Resolver. It does not wait: who connects tries again.
func (r resolver) Resolve(ctx context.Context, name string, _ bool) (msg.Endpoint, error) {
	e, err := r.Resolver.Resolve(ctx, name, false)
	if !errors.Is(err, msg.ErrNoName) {
		return e, err
	}
	own, err2 := Own()
	if err2 != nil { // the machine has one cluster
		return e, err
	}
	for i := range maxClusters {
		if i != own {
			e.Addrs = append(e.Addrs, fmt.Sprintf("%s:%d/%s", Scheme, i, name))
		}
	}
	return e, nil
}

// ByAddress is a resolver without names of its own: services are dialled by address.
var ByAddress msg.Resolver = nobody{}

type nobody struct{}

func (nobody) Place(context.Context, string, string) (string, error) { return "", nil }

func (nobody) Publish(context.Context, string, msg.Endpoint) (func() error, error) {
	return func() error { return nil }, nil
}

func (nobody) Resolve(_ context.Context, name string, _ bool) (e msg.Endpoint, err error) {
	return e, fmt.Errorf("%w: %s", msg.ErrNoName, name)
}
