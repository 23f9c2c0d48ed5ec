package virtio_test

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	stdnet "net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"hardtack/driver"
	"hardtack/driver/qtest"
	"hardtack/driver/virtio"
	"hardtack/driver/virtio/console"
	"hardtack/driver/virtio/mmio"
	"hardtack/driver/virtio/net"
	"hardtack/driver/virtio/pci"
	"hardtack/driver/virtio/rng"
	"hardtack/kernel/net/netdev"
)

// Each test runs over every way to reach a device, against QEMU's devices.
type wiring struct {
	name string
	bus  string // ending of device names
	args string // more properties of devices
	open func(t *testing.T, args ...string) (*qtest.Machine, []virtio.Transport)
}

var wirings = []wiring{
	{"microvm", "device", "", openMicroVM},
	{"q35", "pci", "", openQ35},
	{"q35 few vectors", "pci", ",vectors=2", openQ35},
	{"q35 pin", "pci", ",vectors=0", openQ35},
}

func openMicroVM(t *testing.T, args ...string) (*qtest.Machine, []virtio.Transport) {
	// Without the second IOAPIC the transports are on the first, from 16 on.
	m := qtest.Start(t, "microvm,ioapic2=off", "/machine/ioapic", 0,
		append([]string{"-global", "virtio-mmio.force-legacy=false"}, args...)...)
	var list []virtio.Transport
	for n := range uint32(8) {
		tr, err := mmio.Probe(m, 0xfeb00000+uint64(n)*mmio.Size, 16+n)
		if err != nil {
			t.Fatal(err)
		}
		if tr != nil {
			list = append(list, tr)
		}
	}
	return m, list
}

func openQ35(t *testing.T, args ...string) (*qtest.Machine, []virtio.Transport) {
	m := qtest.Start(t, "q35", "/machine/q35/ioapic", 0, args...)
	var list []virtio.Transport
	for _, f := range qtest.Functions(m) {
		tr, err := pci.Probe(m, f)
		if err != nil {
			t.Fatal(err)
		}
		if tr != nil {
			list = append(list, tr)
		}
	}
	return m, list
}

// only returns the transport of the one device.
func only(t *testing.T, list []virtio.Transport, kind uint32) virtio.Transport {
	t.Helper()
	if len(list) != 1 || list[0].Type() != kind {
		t.Fatalf("devices %v, want one of type %d", list, kind)
	}
	return list[0]
}

// patience is for what comes at once, except for a busy machine.
const patience = time.Minute

func within(t *testing.T, what string, f func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if f() {
			return
		}
	}
	t.Fatalf("%s: not within %v", what, patience)
}

func TestQEMUEntropy(t *testing.T) {
	for _, w := range wirings {
		t.Run(w.name, func(t *testing.T) {
			m, list := w.open(t, "-device", "virtio-rng-"+w.bus+w.args)
			got := make(chan []byte, 10)
			d, err := rng.New(m, only(t, list, virtio.TypeRNG), func(b []byte) { got <- bytes.Clone(b) })
			if err != nil {
				t.Fatal(err)
			}
			var last []byte
			for range 20 {
				select {
				case b := <-got:
					if len(b) == 0 || bytes.Equal(b, last) {
						t.Fatalf("entropy % x after % x", b, last)
					}
					last = b
				case <-time.After(patience):
					t.Fatal("no entropy")
				}
				d.Request()
			}
		})
	}
}

func TestQEMUControlChannel(t *testing.T) {
	for _, w := range wirings {
		t.Run(w.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "s")
			l, err := stdnet.Listen("unix", path)
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			m, list := w.open(t, "-chardev", "socket,id=c,path="+path, "-device", "virtio-serial-"+w.bus+w.args,
				"-device", "virtserialport,chardev=c,name="+console.ControlPort)
			host, err := l.Accept()
			if err != nil {
				t.Fatal(err)
			}
			defer host.Close()
			heard := make(chan string, 100)
			c := &console.Control{
				WinSize: func(rows, cols uint16) { heard <- fmt.Sprint(rows, cols) },
				EOF:     func() { heard <- "eof" },
				Signal:  func(s string) { heard <- s },
			}
			if _, err := io.WriteString(host, "winsize 24 80\n"); err != nil { // before there is anyone
				t.Fatal(err)
			}
			d, err := console.New(m, only(t, list, virtio.TypeConsole), map[string]func([]byte){console.ControlPort: c.Receive})
			if err != nil {
				t.Fatal(err)
			}
			c.Attach(d)
			want := func(s string) {
				t.Helper()
				select {
				case got := <-heard:
					if got != s {
						t.Errorf("heard %q, want %q", got, s)
					}
				case <-time.After(patience):
					t.Fatalf("did not hear %q", s)
				}
			}
			want("24 80")
			_ = c.Ready()
			in := bufio.NewReader(host)
			read := func(s string) {
				t.Helper()
				_ = host.SetReadDeadline(time.Now().Add(patience))
				if got, err := in.ReadString('\n'); got != s {
					t.Fatalf("host heard %q, %v; want %q", got, err, s)
				}
			}
			read("ready\n")
			for i := range 200 {
				fmt.Fprintf(host, "winsize %d 7\nsignal INT\n", i)
			}
			for i := range 200 {
				want(fmt.Sprint(i, 7))
				want("INT")
			}
			// More than QEMU and the socket hold, with a host that reads late.
			text := strings.Repeat(strings.Repeat("x", 999)+"\n", 2000)
			done := make(chan error, 1)
			go func() {
				_, err := d.Port(console.ControlPort).Write([]byte(text))
				done <- err
			}()
			time.Sleep(50 * time.Millisecond)
			for range 2000 {
				read(strings.Repeat("x", 999) + "\n")
			}
			if err := <-done; err != nil {
				t.Error(err)
			}
			if err := c.Exit(7); err != nil {
				t.Error(err)
			}
			read("exit 7\n")
		})
	}
}

// wire is the other end of a network card's cable.
type wire struct{ c *stdnet.UnixConn }

func newWire(t *testing.T) (*wire, string) {
	dir := t.TempDir()
	ours, theirs := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	c, err := stdnet.ListenUnixgram("unixgram", &stdnet.UnixAddr{Name: ours, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return &wire{c}, fmt.Sprintf("dgram,id=n,local.type=unix,local.path=%s,remote.type=unix,remote.path=%s", theirs, ours)
}

func TestQEMUNet(t *testing.T) {
	const total = 2000
	for _, w := range wirings {
		t.Run(w.name, func(t *testing.T) {
			cable, arg := newWire(t)
			m, list := w.open(t, "-netdev", arg, "-device", "virtio-net-"+w.bus+",netdev=n,mac=52:54:00:00:00:09"+w.args)
			d, err := net.New(m, only(t, list, virtio.TypeNet), 1)
			if err != nil {
				t.Fatal(err)
			}
			if d.MAC() != [6]byte{0x52, 0x54, 0, 0, 0, 9} || d.MTU() != 1500 {
				t.Errorf("MAC %x, MTU %d", d.MAC(), d.MTU())
			}
			var mu sync.Mutex
			seen := map[uint32]bool{}
			d.SetReceiver(func(batch []netdev.Frame) {
				mu.Lock()
				defer mu.Unlock()
				for _, f := range batch {
					b := bytes.Join(f.Parts, nil)
					if n, ok := checkFrame(b); !ok || seen[n] {
						t.Errorf("bad frame of %d bytes", len(b))
					} else {
						seen[n] = true
					}
				}
			})
			// Out: all frames arrive, whole and in order.
			room := make(chan struct{}, 1)
			d.OnTransmitReady(func() {
				select {
				case room <- struct{}{}:
				default:
				}
			})
			errs := make(chan error, 1)
			go func() {
				b := make([]byte, 4096)
				for i := range uint32(total) {
					_ = cable.c.SetReadDeadline(time.Now().Add(patience))
					k, err := cable.c.Read(b)
					if err != nil {
						errs <- err
						return
					}
					if n, ok := checkFrame(b[:k]); !ok || n != i {
						errs <- fmt.Errorf("frame %d is %d, %v", i, n, ok)
						return
					}
				}
				errs <- nil
			}()
			var pkts []netdev.Frame
			for i := range uint32(total) {
				b := makeFrame(i)
				pkts = append(pkts, netdev.Frame{Parts: [][]byte{b[:14], b[14:]}})
			}
			for len(pkts) > 0 {
				n := d.Transmit(pkts[:min(len(pkts), 1+rand.IntN(400))])
				pkts = pkts[n:]
				if n == 0 {
					select {
					case <-room:
					case <-time.After(patience):
						t.Fatalf("queue is full for ever, %d frames left (%v)", len(pkts), d.Err())
					}
				}
			}
			if err := <-errs; err != nil {
				t.Fatal(err)
			}
			// In.
			to := &stdnet.UnixAddr{Name: strings.Split(strings.Split(arg, "local.path=")[1], ",")[0], Net: "unixgram"}
			for i := range uint32(total) {
				if _, err := cable.c.WriteTo(makeFrame(i), to); err != nil {
					t.Fatal(err)
				}
			}
			within(t, "all frames received", func() bool {
				mu.Lock()
				defer mu.Unlock()
				return len(seen) == total
			})
		})
	}
}

// makeFrame returns a broadcast frame with a number and a size and content that
// follow from it.
func makeFrame(n uint32) []byte {
	r := rand.New(rand.NewPCG(uint64(n), 1))
	b := make([]byte, 60+r.IntN(1454))
	copy(b, "\xff\xff\xff\xff\xff\xff\x52\x54\x00\x00\x00\x01\x88\xb5")
	binary.BigEndian.PutUint32(b[14:], n)
	for i := 18; i < len(b); i++ {
		b[i] = byte(r.Uint32())
	}
	return b
}

func checkFrame(b []byte) (uint32, bool) {
	if len(b) < 60 {
		return 0, false
	}
	n := binary.BigEndian.Uint32(b[14:])
	return n, bytes.Equal(b, makeFrame(n))
}

// A transport of version 1 is named, with the way out.
func TestQEMULegacyIsRefused(t *testing.T) {
	m := qtest.Start(t, "microvm,ioapic2=off", "", 0, "-device", "virtio-rng-device")
	var err error
	for n := range uint32(8) {
		var tr *mmio.Transport
		tr, err = mmio.Probe(m, 0xfeb00000+uint64(n)*mmio.Size, 16+n)
		if err != nil {
			break
		}
		if tr != nil {
			t.Fatal("legacy device accepted")
		}
	}
	if err == nil || !strings.Contains(err.Error(), "force-legacy=false") {
		t.Errorf("error %v", err)
	}
}

var _ driver.Platform = (*qtest.Machine)(nil)
