// Package debug lets others look into a process's connections: where they stand,
// and what passes. A program calls Start; then `hardtack msg top` and `hardtack
// msg trace` of the same user see it.
//
// The process listens on a Unix socket named after its number in a directory of
// its user. A request and its answers are JSON, one value a line: Request, then
// one Snapshot, or a Traced for each message until the asker hangs up. Nothing
// of this runs unless somebody asks, and then in goroutines of its own: counts
// are what the owners of a connection publish anyway. Only tracing costs the
// owners something, a copy of each message; when the asker is slower than the
// messages, records are dropped and counted.
//
// Lock order: hub.mu, then locks of package msg.
package debug

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"hardtack/msg"
	"hardtack/msg/internal/owndir"
)

// Request is what is asked of a process.
type Request struct {
	Trace     bool   // else a Snapshot
	Interface string // trace only connections that speak it; "": all
	Conn      uint64 // trace only this one; 0: all
}

// Snapshot is the state of a process.
type Snapshot struct {
	Time        time.Time
	PID         int
	Command     string
	Connections []Connection
}

// Connection is one of its ends; the counts are those of msg.Stats.
type Connection struct {
	ID         uint64
	Interface  string
	Transport  string
	Peer       string // number of the process, or address
	Sent       uint64
	Arrived    uint64
	Waiting    uint64
	Parked     bool
	PeerParked bool
}

// Traced is a message that passed, or, with Lost, how many could not be told
// before this one.
type Traced struct {
	Time      time.Time
	Conn      uint64
	Interface string
	Out       bool
	Text      string `json:",omitempty"`
	Lost      uint64 `json:",omitempty"`
}

// Directory is where a user's processes have their sockets.
func Directory() string { return filepath.Join(owndir.Default(), "debug") }

const (
	askTime  = 10 * time.Second // how long a request or a line of an answer may take
	maxAsker = 16               // that are served at a time
	backlog  = 4096             // records that wait for an asker
	look     = 100 * time.Millisecond
)

// Start lets others look into this process until stop is called.
func Start() (stop func(), err error) {
	dir := Directory()
	for _, d := range []string{filepath.Dir(dir), dir} {
		if err := owndir.Make(d); err != nil {
			return nil, err
		}
	}
	path := filepath.Join(dir, strconv.Itoa(os.Getpid()))
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err // of a process that had the number before
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	var work sync.WaitGroup
	work.Go(func() { serve(ctx, l, &work) })
	return func() {
		cancel()
		l.Close()
		work.Wait()
	}, nil
}

func serve(ctx context.Context, l *net.UnixListener, work *sync.WaitGroup) {
	room := make(chan struct{}, maxAsker)
	for {
		c, err := l.AcceptUnix()
		if errors.Is(err, net.ErrClosed) {
			return
		} else if err != nil {
			time.Sleep(look) // out of descriptors
			continue
		}
		select {
		case room <- struct{}{}:
		default:
			c.Close()
			continue
		}
		work.Go(func() {
			defer func() { <-room }()
			stop := context.AfterFunc(ctx, func() { c.Close() })
			defer stop()
			defer c.Close()
			answer(ctx, c)
		})
	}
}

// answer serves one asker, who must be this user or root.
func answer(ctx context.Context, c *net.UnixConn) {
	if uid, err := peerUID(c); err != nil || uid != 0 && int(uid) != os.Geteuid() {
		return
	}
	c.SetDeadline(time.Now().Add(askTime))
	lines := bufio.NewReaderSize(c, 4096)
	line, err := lines.ReadSlice('\n') // longer than that is no request
	if err != nil {
		return
	}
	var req Request
	if json.Unmarshal(line, &req) != nil {
		return
	}
	out := json.NewEncoder(c)
	if !req.Trace {
		out.Encode(Look())
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		c.SetReadDeadline(time.Time{})
		lines.ReadByte() // nothing more is said: the asker has gone
		cancel()
	}()
	for t := range records(ctx, req) {
		c.SetWriteDeadline(time.Now().Add(askTime))
		if out.Encode(t) != nil {
			return
		}
	}
}

func peerUID(c *net.UnixConn) (uid uint32, err error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, err
	}
	cerr := raw.Control(func(fd uintptr) {
		var cred *unix.Ucred
		if cred, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED); err == nil {
			uid = cred.Uid
		}
	})
	return uid, errors.Join(err, cerr)
}

// Look describes this process.
func Look() Snapshot {
	s := Snapshot{Time: time.Now(), PID: os.Getpid(), Command: filepath.Base(os.Args[0])}
	for _, c := range msg.Connections() {
		st := c.Stats()
		if st.Closed != nil {
			continue
		}
		peer := st.Peer.Addr
		if st.Peer.PID != 0 {
			peer = strconv.Itoa(st.Peer.PID)
		}
		s.Connections = append(s.Connections, Connection{
			ID: st.ID, Interface: st.Interface, Transport: transport(st.Peer.Scheme), Peer: peer,
			Sent: st.Sent, Arrived: st.Arrived, Waiting: st.Waiting, Parked: st.Parked, PeerParked: st.PeerSleeps,
		})
	}
	return s
}

// transport is the name that people know a driver by.
func transport(scheme string) string {
	if scheme == "unix" {
		return "ump"
	}
	return scheme
}
