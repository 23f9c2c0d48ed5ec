package console_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"sync"
	"testing"
	"time"

	"hardtack/driver/virtio"
	"hardtack/driver/virtio/console"
	"hardtack/driver/virtio/softdev"
)

// host is a device with one named port, number 1, run by the notifications.
type host struct {
	*softdev.Transport
	t *testing.T

	mu   sync.Mutex
	out  bytes.Buffer // guarded by mu; what the driver wrote
	deaf bool         // guarded by mu; does not take what is written
	said [][3]int     // control messages of the driver
}

func newHost(t *testing.T) *host {
	h := &host{t: t, Transport: &softdev.Transport{
		M: softdev.NewMachine(), DeviceType: virtio.TypeConsole, Offer: 2 | virtio.FeatureEventIndex,
		Sizes: []int{16, 16, 16, 16, 16, 16, 16, 16}, Space: []byte{0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0},
	}}
	h.OnNotify = h.notified
	return h
}

func (h *host) notified(queue int) {
	r := h.Ring(queue)
	switch queue {
	case 3:
		for {
			q, ok := r.Next()
			if !ok {
				break
			}
			b := q.Bytes()
			h.said = append(h.said, [3]int{int(binary.LittleEndian.Uint32(b)), int(b[4]), int(b[6])})
			r.Push(q.Head, 0)
			r.Flush()
		}
		r.WantNotify()
	case 5:
		h.mu.Lock()
		h.take()
		h.mu.Unlock()
	}
}

func (h *host) take() {
	r := h.Ring(5)
	for !h.deaf {
		q, ok := r.Next()
		if !ok {
			r.WantNotify()
			return
		}
		h.out.Write(q.Bytes())
		r.Push(q.Head, 0)
		r.Flush()
	}
}

func (h *host) say(id uint32, event uint16, name string) {
	h.put(2, append(binary.LittleEndian.AppendUint16(binary.LittleEndian.AppendUint16(
		binary.LittleEndian.AppendUint32(nil, id), event), 1), name...))
}

func (h *host) put(queue int, b []byte) {
	r := h.Ring(queue)
	q, ok := r.Next()
	if !ok {
		h.t.Fatal("no buffer to receive")
	}
	r.Push(q.Head, q.Fill(b))
	if !r.Flush() {
		h.t.Fatal("no interrupt wanted")
	}
	h.Interrupt(queue)
}

func (h *host) announce(name string) {
	h.say(1, 1, "")
	h.say(1, 7, name)
}

func TestControlChannel(t *testing.T) {
	h := newHost(t)
	var heard []string
	c := &console.Control{
		WinSize: func(r, c uint16) { heard = append(heard, fmt.Sprint("winsize ", r, c)) },
		EOF:     func() { heard = append(heard, "eof") },
		Signal:  func(s string) { heard = append(heard, s) },
	}
	d, err := console.New(h.M, h.Transport, map[string]func([]byte){console.ControlPort: c.Receive})
	if err != nil {
		t.Fatal(err)
	}
	c.Attach(d)
	if err := c.Ready(); err != nil { // before the port is there
		t.Fatal(err)
	}
	h.say(0, 1, "")           // a port of another kind
	h.say(17, 1, "")          // one too many
	h.announce("org.other.x") // a name that nobody wants: the number stays free
	h.announce(console.ControlPort)
	want := [][3]int{{0xffffffff, 0, 1}, {0, 3, 1}, {17, 3, 0}, {1, 3, 1}, {1, 3, 1}, {1, 6, 1}}
	if fmt.Sprint(h.said) != fmt.Sprint(want) {
		t.Errorf("driver said %v, want %v", h.said, want)
	}
	if h.out.String() != "ready\n" {
		t.Errorf("host heard %q", h.out.String())
	}
	for _, b := range []string{"wins", "ize 24 80\neof\nsig", "nal TERM\n", "nonsense\nwinsize x y\nwinsize 1\nsignal\n",
		string(bytes.Repeat([]byte{'x'}, 500)), string(bytes.Repeat([]byte{'x'}, 500)), string(bytes.Repeat([]byte{'x'}, 500)), "\neof\n"} {
		h.put(4, []byte(b))
	}
	if fmt.Sprint(heard) != "[winsize 24 80 eof TERM eof]" {
		t.Errorf("heard %v", heard)
	}
	h.out.Reset()
	if err := c.Exit(130); err != nil || h.out.String() != "exit 130\n" {
		t.Errorf("%v, host heard %q", err, h.out.String())
	}
}

func TestSlowHost(t *testing.T) {
	h := newHost(t)
	d, err := console.New(h.M, h.Transport, map[string]func([]byte){"p": func([]byte) {}})
	if err != nil {
		t.Fatal(err)
	}
	p := d.Port("p")
	early := bytes.Repeat([]byte("early "), 2000)
	if n, err := p.Write(early); n != len(early) || err != nil {
		t.Fatal(n, err)
	}
	if _, err := p.Write(early); err == nil {
		t.Error("a port that is not there takes everything")
	}
	h.deaf = true
	h.announce("p")
	if p.Drain(time.Millisecond) == nil {
		t.Error("drained into a deaf host")
	}
	text := bytes.Repeat([]byte("0123456789"), 5000)
	done := make(chan error)
	go func() {
		_, err := p.Write(text)
		done <- err
	}()
	select {
	case err := <-done:
		t.Fatalf("Write did not wait: %v", err)
	case <-time.After(20 * time.Millisecond):
	}
	for {
		select {
		case err := <-done:
			if err != nil {
				t.Fatal(err)
			}
			h.mu.Lock()
			h.deaf = false
			h.take()
			h.mu.Unlock()
			if err := p.Drain(time.Minute); err != nil || h.out.String() != string(early)+string(text) {
				t.Errorf("%v; host heard %d bytes of %d", err, h.out.Len(), len(early)+len(text))
			}
			return
		default:
			// The host reads for a moment.
			h.mu.Lock()
			h.deaf = false
			h.take()
			h.deaf = true
			h.mu.Unlock()
			h.Interrupt(5)
		}
	}
}

func TestPortGone(t *testing.T) {
	h := newHost(t)
	d, _ := console.New(h.M, h.Transport, map[string]func([]byte){"p": func([]byte) {}})
	h.announce("p")
	h.say(1, 2, "")
	if _, err := d.Port("p").Write([]byte("x")); err == nil {
		t.Error("wrote to a port that is gone")
	}
}
