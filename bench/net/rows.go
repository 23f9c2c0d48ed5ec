package netbench

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// Ports of guest/net.c.
const (
	portControl = 7000 + iota
	portUDPEcho
	portUDPSink
	portUDPSource
	portEcho
	portOnce
	portSink
	portSource

	portRedis = 6379
	portHTTP  = 80
)

const (
	batch   = 32 // datagrams of guest/net.c
	mib     = 1 << 20
	patient = 20 * time.Second
)

// A Row is something that the peer does with the guest.
type Row struct {
	Name, Title string
	Turns       int // in a measurement
	// start returns what does a turn, and how many operations that is.
	start func(p *Peer) (turn func() error, operations int, err error)
}

// Rows are those of the table, in its order.
var Rows = []Row{
	{"rx64", "packet received, 64 B (UDP)", 40, udpSink(64)},
	{"rx1448", "packet received, 1,448 B", 40, udpSink(1448)},
	{"tx64", "packet sent, 64 B (UDP)", 40, udpSource(64)},
	{"tx1448", "packet sent, 1,448 B", 40, udpSource(1448)},
	{"udpecho", "UDP echo, 64 B", 500, udpEcho},
	{"tcpecho", "TCP round trip of one byte", 500, tcpEcho},
	{"tcponce", "connection: accepted, a byte read and written, closed", 300, tcpOnce},
	{"tcpin", "1 MiB received, a segment of 1,448 B", 3, tcpIn},
	{"tcpout", "1 MiB sent, a segment of 1,448 B", 3, tcpOut},
	{"redis", "Redis SET, 10 clients", 60, redis(10, 1)},
	{"redis16", "Redis SET, 10 clients, pipelined × 16", 20, redis(10, 16)},
	{"nginx", "NGINX, 8 connections kept, 612 B", 40, httpKept(8, "index.html", 612)},
	{"nginxconn", "NGINX, a connection each, 8 at once", 20, httpEach(8, "index.html", 612)},
	{"nginx32k", "NGINX, 8 connections kept, 32 KiB", 10, httpKept(8, "file", 32<<10)},
}

func udpSink(size int) func(*Peer) (func() error, int, error) {
	return func(p *Peer) (func() error, int, error) {
		port, data := p.listen(), make([]byte, size)
		return func() error {
			p.udp[port] = p.udp[port][:0]
			for range batch {
				p.Send(port, portUDPSink, data)
			}
			return p.Wait(patient, func() bool { return len(p.udp[port]) > 0 })
		}, batch, nil
	}
}

func udpSource(size int) func(*Peer) (func() error, int, error) {
	return func(p *Peer) (func() error, int, error) {
		port := p.listen()
		return func() error {
			p.udp[port] = p.udp[port][:0]
			p.Send(port, portUDPSource, []byte{byte(size >> 8), byte(size)})
			return p.Wait(patient, func() bool { return len(p.udp[port]) >= batch })
		}, batch, nil
	}
}

func udpEcho(p *Peer) (func() error, int, error) {
	port, data := p.listen(), make([]byte, 64)
	return func() error {
		got, err := p.Exchange(port, portUDPEcho, data, patient)
		if err == nil && len(got) != len(data) {
			err = fmt.Errorf("%d bytes came back", len(got))
		}
		return err
	}, 1, nil
}

// listen gives a port whose datagrams are kept.
func (p *Peer) listen() uint16 {
	port := p.port()
	p.udp[port] = nil
	return port
}

// open opens some connections to a port, at once.
func (p *Peer) open(n int, port uint16) ([]*Conn, error) {
	conns := make([]*Conn, n)
	for i := range conns {
		conns[i] = p.Dial(port)
	}
	err := p.Wait(patient, func() bool {
		for _, c := range conns {
			if !c.Open {
				return false
			}
		}
		return true
	})
	return conns, err
}

func (p *Peer) openOne(port uint16) (*Conn, error) {
	c, err := p.open(1, port)
	return c[0], err
}

func tcpEcho(p *Peer) (func() error, int, error) {
	c, err := p.openOne(portEcho)
	return func() error {
		c.Data = c.Data[:0]
		c.Write([]byte("x"))
		return p.Wait(patient, func() bool { return len(c.Data) > 0 })
	}, 1, err
}

// tcpOnce acknowledges the handshake with the request's own segment.
func tcpOnce(p *Peer) (func() error, int, error) {
	return func() error {
		c, err := p.openOne(portOnce)
		if err != nil {
			return err
		}
		c.Acknowledge()
		c.Write([]byte("x"))
		if err := p.Wait(patient, func() bool { return c.Finished }); err != nil {
			return err
		}
		c.Close()
		defer c.Forget()
		return p.Wait(patient, func() bool { return c.acked == c.sent })
	}, 1, nil
}

func tcpIn(p *Peer) (func() error, int, error) {
	c, err := p.openOne(portSink)
	data := make([]byte, 16*segmentSize)
	return func() error {
		c.Data = c.Data[:0]
		for left := mib; left > 0; {
			n := min(left, len(data), max(c.Room(), 0)/segmentSize*segmentSize)
			if n < min(left, segmentSize) {
				acked, window := c.acked, c.window
				if err := p.Wait(patient, func() bool { return c.acked != acked || c.window != window }); err != nil {
					return err
				}
				continue
			}
			c.Write(data[:n])
			left -= n
		}
		return p.Wait(patient, func() bool { return len(c.Data) > 0 })
	}, (mib + segmentSize - 1) / segmentSize, err
}

func tcpOut(p *Peer) (func() error, int, error) {
	c, err := p.openOne(portSource)
	c.Keep = false
	return func() error {
		before := c.Received
		c.Write([]byte("x"))
		return p.Wait(patient, func() bool { return c.Received-before == mib })
	}, (mib + segmentSize - 1) / segmentSize, err
}

// clients have connections that each send a request and wait for all answers: what is
// sent at once comes at once, so the servers' batches are the same every time.
func clients(p *Peer, conns []*Conn, request []byte, done func(c *Conn) bool) error {
	for _, c := range conns {
		c.Data = c.Data[:0]
		c.Write(request)
	}
	return p.Wait(patient, func() bool {
		for _, c := range conns {
			if !done(c) {
				return false
			}
		}
		return true
	})
}

func redis(n, depth int) func(*Peer) (func() error, int, error) {
	request := []byte(strings.Repeat("*3\r\n$3\r\nSET\r\n$9\r\nkey:00001\r\n$3\r\nxxx\r\n", depth))
	want := []byte(strings.Repeat("+OK\r\n", depth))
	return func(p *Peer) (func() error, int, error) {
		conns, err := p.open(n, portRedis)
		return func() error {
			if err := clients(p, conns, request, func(c *Conn) bool { return len(c.Data) >= len(want) }); err != nil {
				return err
			}
			for _, c := range conns {
				if !bytes.Equal(c.Data, want) {
					return fmt.Errorf("redis answered %.60q", c.Data)
				}
			}
			return nil
		}, n * depth, err
	}
}

func httpRequest(file, connection string) []byte {
	return []byte("GET /" + file + " HTTP/1.1\r\nHost: guest\r\nConnection: " + connection + "\r\n\r\n")
}

// keptRequests is less than NGINX serves on a connection before it closes it.
const keptRequests = 900

// answered reports whether a whole answer with a body of size bytes has come.
func answered(c *Conn, size int) bool {
	end := bytes.Index(c.Data, []byte("\r\n\r\n"))
	return end >= 0 && len(c.Data) >= end+4+size
}

func checkHTTP(conns []*Conn) error {
	for _, c := range conns {
		if !bytes.HasPrefix(c.Data, []byte("HTTP/1.1 200 ")) {
			return fmt.Errorf("nginx answered %.60q", c.Data)
		}
	}
	return nil
}

func httpKept(n int, file string, size int) func(*Peer) (func() error, int, error) {
	request := httpRequest(file, "keep-alive")
	return func(p *Peer) (func() error, int, error) {
		conns, err := p.open(n, portHTTP)
		turns := 0
		return func() error {
			if turns++; turns == keptRequests { // a profile has so many
				var err error
				if conns, err = p.open(n, portHTTP); err != nil {
					return err
				}
				turns = 0
			}
			if err := clients(p, conns, request, func(c *Conn) bool { return answered(c, size) }); err != nil {
				return err
			}
			return checkHTTP(conns)
		}, n, err
	}
}

func httpEach(n int, file string, size int) func(*Peer) (func() error, int, error) {
	request := httpRequest(file, "close")
	return func(p *Peer) (func() error, int, error) {
		return func() error {
			conns, err := p.open(n, portHTTP)
			if err != nil {
				return err
			}
			for _, c := range conns {
				c.Acknowledge() // as Linux's connect does
				defer c.Forget()
			}
			if err := clients(p, conns, request, func(c *Conn) bool { return c.Finished }); err != nil {
				return err
			}
			if err := checkHTTP(conns); err != nil {
				return err
			}
			for _, c := range conns {
				c.Close()
			}
			return p.Wait(patient, func() bool {
				for _, c := range conns {
					if c.acked != c.sent {
						return false
					}
				}
				return true
			})
		}, n, nil
	}
}

// A counter reads the guest's.
type counter struct {
	p     *Peer
	port  uint16
	round float64 // instructions of a round of the spinner
	own   float64 // what reading takes
}

type mark struct{ ticks, rounds uint64 }

func (c *counter) mark() (m mark, err error) {
	b, err := c.p.Exchange(c.port, portControl, []byte("m"), patient)
	if err == nil && len(b) == 16 {
		m = mark{binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:])}
	}
	return m, err
}

func (c *counter) calibrate() error {
	b, err := c.p.Exchange(c.port, portControl, []byte("c"), patient)
	if err == nil && len(b) == 8 {
		c.round = math.Float64frombits(binary.LittleEndian.Uint64(b))
	}
	return err
}

// count is what the guest executes for a function, beyond the spinner and the marks.
func (c *counter) count(do func() error) (float64, error) {
	m, err := c.mark()
	if err != nil {
		return 0, err
	}
	if err := do(); err != nil {
		return 0, err
	}
	n, err := c.mark()
	return float64(n.ticks-m.ticks) - float64(n.rounds-m.rounds)*c.round - c.own, err
}

// measure counts a row, several times after one to warm up.
func (c *counter) measure(r Row, reps int) ([]float64, error) {
	turn, operations, err := r.start(c.p)
	if err != nil {
		return nil, err
	}
	var per []float64
	for rep := -1; rep < reps; rep++ {
		if err := c.calibrate(); err != nil {
			return nil, err
		}
		var own []float64
		for c.own = 0; len(own) < 5; {
			n, err := c.count(func() error { return nil })
			if err != nil {
				return nil, err
			}
			own = append(own, n)
		}
		slices.Sort(own)
		c.own = own[len(own)/2]
		n, err := c.count(func() error {
			for range r.Turns {
				if err := turn(); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		if rep >= 0 {
			per = append(per, n/float64(r.Turns*operations))
		}
	}
	return per, nil
}
