package netbench

import (
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

// guest is the other end of a cable: it swaps addresses and ports of what comes.
type guest struct {
	t *testing.T
	c net.Conn
}

// frame reads one.
func (g *guest) frame() []byte {
	size := make([]byte, 4)
	if _, err := io.ReadFull(g.c, size); err != nil {
		return nil
	}
	f := make([]byte, be.Uint32(size))
	if _, err := io.ReadFull(g.c, f); err != nil {
		return nil
	}
	return f
}

// answer sends an IPv4 packet whose payload takes the place of what the frame had.
func (g *guest) answer(f, payload []byte) {
	out := be.AppendUint32(nil, uint32(ethSize+ipSize+len(payload)))
	out = append(append(out, f[6:12]...), f[:6]...)
	out = append(out, f[12:26]...) // type and header, whose checksum we do not look at
	be.PutUint16(out[4+ethSize+2:], uint16(ipSize+len(payload)))
	out = append(append(out, f[30:34]...), f[26:30]...)
	out = append(out, payload...)
	g.c.Write(out)
}

func pair(t *testing.T) (*Peer, *guest) {
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: t.TempDir() + "/cable", Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := net.Dial("unix", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	p, err := Accept(l, 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close(); c.Close() })
	return p, &guest{t, c}
}

// What is sent has right checksums, and an answer finds its port.
func TestDatagram(t *testing.T) {
	p, g := pair(t)
	go func() {
		f := g.frame()
		ip := f[ethSize:]
		pseudo := uint32(protoUDP) + uint32(len(ip)-ipSize) + uint32(sum(ip[12:20], 0))
		if sum(ip[:ipSize], 0) != 0xffff || sum(ip[ipSize:], pseudo) != 0xffff {
			t.Errorf("checksums of % x", f)
		}
		u := ip[ipSize:]
		u[0], u[1], u[2], u[3] = u[2], u[3], u[0], u[1]
		g.answer(f, append(u, "!"...))
	}()
	port := p.listen()
	if got, err := p.Exchange(port, 7, []byte("odd"), 10*time.Second); err != nil || string(got) != "odd!" {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := p.Exchange(port, 7, nil, 10*time.Millisecond); err != errSlow {
		t.Errorf("without an answer: %v", err)
	}
}

// tcp makes a segment with an answer's ports.
func tcp(u []byte, seq, ack uint32, flags byte, data string) []byte {
	h := make([]byte, tcpSize)
	copy(h, []byte{u[2], u[3], u[0], u[1]})
	be.PutUint32(h[4:], seq)
	be.PutUint32(h[8:], ack)
	h[12], h[13] = tcpSize/4<<4, flags
	be.PutUint16(h[14:], 1000)
	return append(h, data...)
}

// A connection opens, carries data, and acknowledges with the FIN; what is sent again is
// acknowledged again; a reset is an error.
func TestConn(t *testing.T) {
	p, g := pair(t)
	c := p.Dial(80)
	go func() {
		f := g.frame()
		u := f[ethSize+ipSize:]
		isn := be.Uint32(u[4:])
		if u[13] != flagSYN {
			t.Errorf("flags %#x for SYN", u[13])
		}
		g.answer(f, tcp(u, 99, isn+1, flagSYN|flagACK, ""))
		f = g.frame()
		u = f[ethSize+ipSize:]
		if off := int(u[12]>>4) * 4; u[13] != flagACK|flagPSH || be.Uint32(u[8:]) != 100 || string(u[off:]) != "hello" {
			t.Errorf("the request: % x", u)
		}
		g.answer(f, tcp(u, 100, isn+6, flagACK|flagFIN, "world"))
		g.answer(f, tcp(u, 100, isn+6, flagACK|flagFIN, "world"))
		f = g.frame()
		u = f[ethSize+ipSize:]
		if u[13] != flagACK || be.Uint32(u[8:]) != 106 {
			t.Errorf("the second acknowledgement: % x", u)
		}
		f = g.frame()
		u = f[ethSize+ipSize:]
		if u[13] != flagACK|flagFIN {
			t.Errorf("the end: % x", u)
		}
		g.answer(f, tcp(u, 106, isn+7, flagRST|flagACK, ""))
	}()
	if err := p.Wait(10*time.Second, func() bool { return c.Open }); err != nil || c.Room() != 1000 {
		t.Fatal(err, c.Room())
	}
	c.Write([]byte("hello"))
	if err := p.Wait(10*time.Second, func() bool { return c.Again > 0 }); err != nil || string(c.Data) != "world" || !c.Finished {
		t.Fatalf("%q %v", c.Data, err)
	}
	c.Close()
	if err := p.Wait(10*time.Second, func() bool { return false }); err == nil || !strings.Contains(err.Error(), "reset") {
		t.Error("after a reset:", err)
	}
}

func TestMarkdown(t *testing.T) {
	r := Report{Figures: Figures{"rx64": {"Hardtack": {3000, 1000, 2000}, "Linux": {4000}}}, Repeats: 3}
	text := r.Markdown()
	for _, want := range []string{
		"| packet received, 64 B (UDP) | 2,000 (1,000–3,000) | 4,000 (4,000–4,000) | 0.50 |",
		"| UDP echo, 64 B | — | — | — |", "geometric mean is 0.50",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}
