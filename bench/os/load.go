package osbench

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// A Load drives a server in a guest from the host.
type Load struct {
	Name, Title string
	Port        int // in the guest
	Clients     int
	// session returns what makes one exchange on a connection, and how many
	// requests that is.
	session func(c net.Conn) (exchange func() error, requests int)
	fresh   bool // a new connection for each exchange
}

// Loads are the rows of the table of times.
var Loads = []Load{
	{"redis", "Redis SET/s, 10 clients", 6379, 10, redisSession(1), false},
	{"redis16", "Redis SET/s, 10 clients, pipelined ×16", 6379, 10, redisSession(16), false},
	{"nginx", "NGINX requests/s, 8 connections", 80, 8, httpSession("keep-alive"), false},
	{"nginxconn", "NGINX requests/s, connection each", 80, 8, httpSession("close"), true},
}

func redisSession(depth int) func(net.Conn) (func() error, int) {
	batch := []byte(strings.Repeat("*3\r\n$3\r\nSET\r\n$9\r\nkey:00001\r\n$3\r\nxxx\r\n", depth))
	want := []byte(strings.Repeat("+OK\r\n", depth))
	return func(c net.Conn) (func() error, int) {
		got := make([]byte, len(want))
		return func() error {
			if _, err := c.Write(batch); err != nil {
				return err
			}
			if _, err := io.ReadFull(c, got); err != nil {
				return err
			}
			if !bytes.Equal(got, want) {
				return fmt.Errorf("redis answered %.60q", got)
			}
			return nil
		}, depth
	}
}

func httpSession(connection string) func(net.Conn) (func() error, int) {
	request := []byte("GET /index.html HTTP/1.1\r\nHost: guest\r\nConnection: " + connection + "\r\n\r\n")
	return func(c net.Conn) (func() error, int) {
		r := bufio.NewReader(c)
		return func() error {
			if _, err := c.Write(request); err != nil {
				return err
			}
			length := -1
			for first := true; ; first = false {
				line, err := r.ReadSlice('\n')
				if err != nil {
					return err
				}
				if first && !bytes.HasPrefix(line, []byte("HTTP/1.1 200 ")) {
					return fmt.Errorf("nginx answered %.60q", line)
				}
				if v, ok := bytes.CutPrefix(line, []byte("Content-Length: ")); ok {
					if length, err = strconv.Atoi(strings.TrimSpace(string(v))); err != nil {
						return err
					}
				}
				if len(line) <= 2 {
					break
				}
			}
			if length < 0 {
				return fmt.Errorf("nginx gave no length")
			}
			_, err := r.Discard(length)
			return err
		}, 1
	}
}

// connectionLimit is NGINX's keepalive_requests: open again before it closes.
const connectionLimit = 1000

// Run loads a server for a while and returns how many requests were served and
// how long that took. ports are the host's ports that lead to it, one a client:
// QEMU's user network listens with a backlog of one, and of clients that share
// a port and connect at the same time some wait for seconds, until a lost
// packet of the handshake is sent again.
func (l Load) Run(ports []int, d time.Duration) (int64, time.Duration, error) {
	var total atomic.Int64
	var mu sync.Mutex
	var failed error
	var wg sync.WaitGroup
	began := time.Now()
	deadline := began.Add(d)
	client := func(i int) error {
		addr := "127.0.0.1:" + strconv.Itoa(ports[i%len(ports)])
		for time.Now().Before(deadline) {
			c, err := dial(addr, i, l.Clients)
			if err != nil {
				return err
			}
			c.SetDeadline(deadline.Add(10 * time.Second))
			exchange, requests := l.session(c)
			for n := 0; n < connectionLimit && time.Now().Before(deadline); n++ {
				if err := exchange(); err != nil {
					c.Close()
					return err
				}
				total.Add(int64(requests))
				if l.fresh {
					break
				}
			}
			c.Close()
		}
		return nil
	}
	for i := range l.Clients {
		wg.Go(func() {
			if err := client(i); err != nil {
				mu.Lock()
				failed = fmt.Errorf("%s: %w", l.Name, err)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return total.Load(), time.Since(began), failed
}

// The guest sees the client's own port as the other end of a connection,
// whichever port of the host it came by. So two clients must not use the same
// one at the same time, which the host's kernel would let them: they take turns
// in a range below the one from which it picks.
const (
	firstSource = 12000
	sources     = 20000
)

var nextSource atomic.Uint32

// dial connects client i of some.
func dial(addr string, i, clients int) (c net.Conn, err error) {
	d := net.Dialer{Control: func(_, _ string, raw syscall.RawConn) error {
		var opt error
		err := raw.Control(func(fd uintptr) {
			opt = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1)
		})
		return errors.Join(err, opt)
	}}
	for range 1000 { // some are taken, or were lately
		turn := int(nextSource.Add(1))
		d.LocalAddr = &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: firstSource + turn%(sources/clients)*clients + i}
		c, err = d.Dial("tcp", addr)
		if !errors.Is(err, syscall.EADDRINUSE) && !errors.Is(err, syscall.EADDRNOTAVAIL) {
			return c, err
		}
	}
	return nil, err
}

// Clients returns how many clients a server of the guest gets at once.
func Clients(guest int) int {
	n := 1
	for _, l := range Loads {
		if l.Port == guest {
			n = max(n, l.Clients)
		}
	}
	return n
}
