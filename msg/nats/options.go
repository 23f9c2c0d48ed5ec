package nats

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"hardtack/msg"
)

// Environment variables that stand in for empty Options.
const (
	URLVariable    = "HARDTACK_NATS"        // URL
	ListenVariable = "HARDTACK_NATS_LISTEN" // Listen
)

// Options for Open. The zero value is right for programs of one machine.
type Options struct {
	// URL of the servers to join, several with commas in between:
	// nats://host:4222, nats://secret@host, tls://…. "": $HARDTACK_NATS; if
	// that is empty too, a server of the machine's own.
	URL string
	// Listen is where a server of the machine's own listens, host:port;
	// "": $HARDTACK_NATS_LISTEN, or 127.0.0.1:4222. With an address that other
	// machines reach, they join by URL nats://SECRET@host:port.
	Listen string
	// Dir is where such a server keeps its secret and its state, a directory
	// for this user alone; "": hardtack/nats in the user's state directory.
	Dir string
	// Prefix begins all subjects; "hardtack". Nodes with different ones do not
	// see each other.
	Prefix string
	// Replicas of the bucket of names in a cluster; 1.
	Replicas int
	// Lease is how long the entries of a killed process may stay in listings of
	// names; 5 s. (Who looks up one name, asks for its process.)
	Lease time.Duration
	// TLS for the connection, and for a server of the machine's own.
	TLS *tls.Config
	// NATS are further options of the connection: credentials, keys, ….
	NATS []nats.Option
	// Server, if not nil, may change the options of a server of the machine's
	// own before it starts: to join a cluster, say.
	Server func(*server.Options)
	// OnLost, if not nil, is told when an entry of a Bucket could not be kept.
	OnLost func(name string, err error)
}

func (o Options) fill() (Options, error) {
	if o.URL == "" {
		o.URL = os.Getenv(URLVariable)
	}
	if o.Listen == "" {
		o.Listen = os.Getenv(ListenVariable)
	}
	if o.Listen == "" {
		o.Listen = "127.0.0.1:4222"
	}
	if o.Prefix == "" {
		o.Prefix = "hardtack"
	}
	if !isToken(o.Prefix) || strings.ContainsAny(o.Prefix, "./") {
		return o, fmt.Errorf("nats: prefix %q: letters, digits, - and _ are allowed", o.Prefix)
	}
	if o.Replicas == 0 {
		o.Replicas = 1
	}
	if o.Lease == 0 {
		o.Lease = 5 * time.Second
	}
	if o.Lease < time.Second {
		return o, fmt.Errorf("nats: a lease of %v is shorter than a second", o.Lease)
	}
	if o.Dir == "" {
		state := os.Getenv("XDG_STATE_HOME")
		if state == "" {
			home, err := os.UserHomeDir()
			if err != nil {
				state = filepath.Join(os.TempDir(), "hardtack-"+strconv.Itoa(os.Getuid()))
			} else {
				state = filepath.Join(home, ".local", "state")
			}
		}
		o.Dir = filepath.Join(state, "hardtack", "nats")
	}
	return o, nil
}

// Open attaches the process to the servers.
func Open(ctx context.Context, opts Options) (*Node, error) {
	opts, err := opts.fill()
	if err != nil {
		return nil, err
	}
	n := &Node{
		opts: opts, process: randomID(),
		stopped: make(chan struct{}), kick: make(chan struct{}, 1),
		links: map[string]*link{}, peers: map[string]*presence{}, listeners: map[*listener]struct{}{},
	}
	url := opts.URL
	more := []nats.Option{
		nats.Name("hardtack " + filepath.Base(os.Args[0]) + " " + strconv.Itoa(os.Getpid())),
		nats.MaxReconnects(-1),
		nats.CustomReconnectDelay(func(attempts int) time.Duration {
			return min(time.Duration(attempts)*20*time.Millisecond, 500*time.Millisecond)
		}),
		nats.ReconnectBufSize(-1), // links know better what to send again
		nats.PingInterval(5 * time.Second),
		nats.MaxPingsOutstanding(2),
		nats.Timeout(5 * time.Second),
		nats.DisconnectErrHandler(func(*nats.Conn, error) { n.disconnected() }),
		nats.ReconnectHandler(func(*nats.Conn) { n.reconnected() }),
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}), // what is dropped is sent again
	}
	if opts.TLS != nil {
		more = append(more, nats.Secure(opts.TLS))
	}
	if url == "" {
		if n.embedded, err = newEmbedder(opts); err != nil {
			return nil, err
		}
		url = "nats://" + n.embedded.address
		more = append(more, nats.SetCustomDialer(n.embedded), nats.Token(n.embedded.secret))
	}
	if n.nc, err = connect(ctx, url, append(more, opts.NATS...)); err != nil {
		if n.embedded != nil {
			n.embedded.close()
		}
		return nil, err
	}
	if most := n.nc.MaxPayload(); most < maxPacket {
		n.nc.Close()
		return nil, fmt.Errorf("nats: the server takes messages of %d bytes, %d are needed (max_payload)", most, maxPacket)
	}
	if err := n.start(); err != nil {
		n.nc.Close()
		return nil, fmt.Errorf("nats: %w", err)
	}
	return n, nil
}

// connect is nats.Connect with a context. The library's own time-out ends it.
func connect(ctx context.Context, url string, opts []nats.Option) (*nats.Conn, error) {
	type result struct {
		nc  *nats.Conn
		err error
	}
	done := make(chan result, 1)
	go func() {
		nc, err := nats.Connect(url, opts...)
		done <- result{nc, err}
	}()
	select {
	case r := <-done:
		if r.err != nil {
			return nil, fmt.Errorf("nats: %w", r.err)
		}
		return r.nc, nil
	case <-ctx.Done():
		go func() {
			if r := <-done; r.nc != nil {
				r.nc.Close()
			}
		}()
		return nil, ctx.Err()
	}
}

var (
	_ msg.Driver   = (*Node)(nil)
	_ msg.Link     = (*link)(nil)
	_ msg.Listener = (*listener)(nil)
)

var errNoSecret = errors.New("nats: the file with the server's secret is empty")
