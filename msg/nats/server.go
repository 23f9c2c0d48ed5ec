package nats

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"golang.org/x/sys/unix"
)

// embedder dials the machine's own server, and starts it inside this process if
// there is none: at the first connection, and whenever the process that had it
// has ended. The right to be the server is a lock on a file, which the kernel
// takes back from a process that dies.
type embedder struct {
	opts    Options
	address string // to dial
	host    string // to listen
	port    int
	secret  string

	mu     sync.Mutex
	srv    *server.Server // guarded by mu
	lock   *os.File       // held while srv runs; guarded by mu
	closed bool           // guarded by mu
}

func newEmbedder(opts Options) (*embedder, error) {
	host, portText, err := net.SplitHostPort(opts.Listen)
	if err != nil {
		return nil, fmt.Errorf("nats: listen at %q: %w", opts.Listen, err)
	}
	port, err := strconv.ParseUint(portText, 10, 16)
	if err != nil || port == 0 {
		return nil, fmt.Errorf("nats: listen at %q: the port must be 1 to 65535", opts.Listen)
	}
	e := &embedder{opts: opts, host: host, port: int(port)}
	dial := host
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		dial = "127.0.0.1"
	}
	e.address = net.JoinHostPort(dial, portText)
	if err := os.MkdirAll(opts.Dir, 0o700); err != nil {
		return nil, err
	}
	e.secret, err = Secret(opts.Dir)
	return e, err
}

// Secret is what a server of the machine's own asks for, kept in dir; it is made
// when there is none. Other machines put it into their URL.
func Secret(dir string) (string, error) {
	path := filepath.Join(dir, "secret")
	for range 100 {
		b, err := os.ReadFile(path)
		if err == nil && len(b) > 0 {
			return strings.TrimSpace(string(b)), nil
		}
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return "", err
		}
		if err != nil {
			var fresh [16]byte
			rand.Read(fresh[:])
			f, err := os.CreateTemp(dir, "secret-*") // for this user alone
			if err != nil {
				return "", err
			}
			_, err = f.WriteString(hex.EncodeToString(fresh[:]) + "\n")
			if cerr := f.Close(); err == nil {
				err = cerr
			}
			if err == nil {
				err = os.Link(f.Name(), path) // fails if another was faster
			}
			os.Remove(f.Name())
			if err != nil && !errors.Is(err, os.ErrExist) {
				return "", err
			}
		}
		time.Sleep(time.Millisecond)
	}
	return "", fmt.Errorf("%w: %s", errNoSecret, path)
}

// Dial implements nats.CustomDialer.
func (e *embedder) Dial(network, address string) (net.Conn, error) {
	for end := time.Now().Add(5 * time.Second); ; {
		c, err := net.DialTimeout(network, e.address, 2*time.Second)
		if err == nil || !errors.Is(err, syscall.ECONNREFUSED) || time.Now().After(end) {
			return c, err
		}
		if err := e.serve(); err != nil {
			return nil, err
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// serve starts the server, unless another process has the right to.
func (e *embedder) serve() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return net.ErrClosed
	}
	if e.srv != nil {
		if e.srv.Running() {
			return nil
		}
		e.stop()
	}
	lock, err := os.OpenFile(filepath.Join(e.opts.Dir, strconv.Itoa(e.port)+".lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		lock.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil // it is about to listen
		}
		return err
	}
	opts := &server.Options{
		ServerName: "hardtack", Host: e.host, Port: e.port, Authorization: e.secret,
		NoLog: true, NoSigs: true,
		// Names live in its memory; the directory is for what users store.
		JetStream: true, StoreDir: e.opts.Dir,
		JetStreamMaxMemory: 64 << 20, JetStreamMaxStore: 64 << 20,
		TLSConfig: e.opts.TLS, TLS: e.opts.TLS != nil,
	}
	if e.opts.Server != nil {
		e.opts.Server(opts)
	}
	srv, err := server.NewServer(opts)
	if err != nil {
		lock.Close()
		return fmt.Errorf("nats: server: %w", err)
	}
	e.srv, e.lock = srv, lock
	srv.Start()
	if !srv.ReadyForConnections(10 * time.Second) {
		e.stop()
		return fmt.Errorf("nats: a server could not listen at %s", e.opts.Listen)
	}
	return nil
}

// stop needs mu.
func (e *embedder) stop() {
	if e.srv != nil {
		e.srv.Shutdown()
		e.srv.WaitForShutdown()
		e.lock.Close()
		e.srv, e.lock = nil, nil
	}
}

func (e *embedder) close() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.closed = true
	e.stop()
}

// Serving says whether the server runs in this process.
func (n *Node) Serving() bool {
	if n.embedded == nil {
		return false
	}
	n.embedded.mu.Lock()
	defer n.embedded.mu.Unlock()
	return n.embedded.srv != nil && n.embedded.srv.Running()
}

// URL is where other machines reach the servers that this node uses, with the
// secret if it is the machine's own server.
func (n *Node) URL() string {
	if n.embedded == nil {
		return n.nc.ConnectedUrlRedacted()
	}
	return "nats://" + n.embedded.secret + "@" + n.embedded.address
}
