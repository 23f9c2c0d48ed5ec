package osbench

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
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

// connectionLimit is NGINX's keepalive_requests: open anew before it closes.
const connectionLimit = 1000

// Run loads 127.0.0.1:port for a while and returns requests per second.
func (l Load) Run(port int, d time.Duration) (float64, error) {
	addr := "127.0.0.1:" + strconv.Itoa(port)
	var total atomic.Int64
	var mu sync.Mutex
	var failed error
	var wg sync.WaitGroup
	began := time.Now()
	deadline := began.Add(d)
	client := func() error {
		for time.Now().Before(deadline) {
			c, err := net.Dial("tcp", addr)
			if err != nil {
				return err
			}
			c.SetDeadline(deadline.Add(10 * time.Second))
			exchange, requests := l.session(c)
			for i := 0; i < connectionLimit && time.Now().Before(deadline); i++ {
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
	for range l.Clients {
		wg.Go(func() {
			if err := client(); err != nil {
				mu.Lock()
				failed = fmt.Errorf("%s: %w", l.Name, err)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return float64(total.Load()) / time.Since(began).Seconds(), failed
}
