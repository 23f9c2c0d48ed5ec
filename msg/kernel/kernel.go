// Package kernel is the driver of package msg for services of the Hardtack kernel that a program
// runs under: devices in /dev/kernel, which carry frames.
//
//	conn, err := klog.New(kernel.Dial(ctx, "log", klog.Interface))
//
// The interfaces are those in idl: process, clusters, names, klog (the service log) and metrics. A
// service answers a few calls of a connection at a time, and the rest waits: who wants to wait for
// something and to ask something else meanwhile makes two connections.
package kernel

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"hardtack/msg"
	"hardtack/msg/internal/stream"
)

// Scheme is what addresses start with; the name of the service follows.
const Scheme = "kernel"

// folder is where the services' devices are.
const folder = "/dev/kernel/"

func init() { msg.Register(driver{}) }

// Options are those of a connection to a service.
func Options() *msg.Options {
	return &msg.Options{Resolver: byAddress{}, Schemes: []string{Scheme}, MaxBody: 16 << 10, Wait: -1}
}

// Dial connects to a service.
func Dial(ctx context.Context, service string, iface *msg.Interface) (*msg.Conn, error) {
	return msg.Dial(ctx, Scheme+":"+service, iface, Options())
}

type driver struct{}

// Scheme implements msg.Driver.
func (driver) Scheme() string { return Scheme }

// Dial implements msg.Driver.
func (driver) Dial(_ context.Context, addr string) (msg.Link, error) {
	name := strings.TrimPrefix(addr, Scheme+":")
	if name == "" || strings.Contains(name, "/") {
		return nil, fmt.Errorf("msg/kernel: %q is not kernel:SERVICE", addr)
	}
	f, err := os.OpenFile(folder+name, os.O_RDWR|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: %s: %w", msg.ErrNoName, addr, err)
	}
	if err != nil {
		return nil, err
	}
	return link{stream.New(f, msg.Peer{Scheme: Scheme, Addr: addr})}, nil
}

// Listen implements msg.Driver: only the kernel has services.
func (driver) Listen(_ context.Context, name, _ string) (msg.Listener, error) {
	return nil, fmt.Errorf("msg/kernel: %s: programs cannot serve there", name)
}

// link is near (msg.Near).
type link struct{ *stream.Link }

func (link) Near() bool { return true }

type byAddress struct{}

func (byAddress) Place(context.Context, string, string) (string, error) { return "", nil }

func (byAddress) Publish(context.Context, string, msg.Endpoint) (func() error, error) {
	return func() error { return nil }, nil
}

// Resolve implements msg.Resolver: a service's name is its address.
func (byAddress) Resolve(_ context.Context, name string, _ bool) (e msg.Endpoint, err error) {
	return msg.Endpoint{Addrs: []string{Scheme + ":" + name}}, nil
}
