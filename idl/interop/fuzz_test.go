package interop

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"hardtack/idl/shapes"
	"hardtack/msg"
	"hardtack/msg/ump"
)

// hostile is a client that follows a script instead of the rules: greetings with
// tokens that are made up, or were given to another link; frames of any bytes,
// with files of any kind; anything in the rings. A step is a byte that says
// what, and its arguments; what is missing at the end of the script is 0.
//
//	0  whose token (0 none, 1 given, 2 the session's own), flags, 8 bytes of delivered,
//	   16 of token: a greeting, and the wait for its answer
//	1  slot, header (8 bytes): into the ring
//	2  slot, n, n bytes: into the body of a slot
//	3  word (0-7), value (4 bytes): into the control words of both rings
//	4  files (kind of each in 3 bits, up to 2), n, n bytes: a frame
//	5  num, flags, n: a header that could be sound, for the next slot
//	6  a wake
//	7  another link, which the rest is about
type hostile struct {
	t      testing.TB
	script []byte
	addr   string
	links  []msg.Link
	token  [16]byte
	tx, rx []byte
	at     int
	files  []*os.File
}

var hostileSeeds = [][]byte{
	{0, 0, 0},
	{0, 0, 1, 9, 9, 9, 9, 9, 9, 9, 9, 5, 7, 0, 8, 6},                             // a sound greeting, and a call
	{0, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13}, // a token that is none
	{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, // a session of its own,
		5, 7, 0, 8, 7, 0, 2, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 5, 7, 0, 8}, // bound again
	{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
		7, 0, 2, 0, 255, 255, 255, 255, 255, 255, 255, 255}, // has had more than was sent
	append(make([]byte, 27), 4, 1, 9, 5, 1, 0, 0, 0, 0, 16, 0, 0, 5, 4, 4, 12, 6), // a bulk pool
	append(make([]byte, 27), 4, 2, 9, 5, 1, 0, 0, 0, 0, 16, 0, 0, 6),              // one that can shrink
	append(make([]byte, 27), 4, 9, 14, 4, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 0, 0, 5, 5, 8, 5, 6),
	append(make([]byte, 27), 4, 3, 1, 0xf2, 4, 4, 1, 0xf2, 6), // bells
	append(make([]byte, 27), 3, 0, 255, 255, 0, 0, 3, 4, 1, 0, 0, 0, 6),
	append(make([]byte, 27), 4, 0, 9, 7, 'u', 'n', 'i', 'x', ':', '/', 'x', 0, 4, 0, 1, 10, 4, 0, 1, 10),
	append(make([]byte, 27), 2, 0, 56, 1, 1, 1, 1, 1, 5, 3, 1, 56, 5, 3, 2, 9, 6),
}

func (h *hostile) take(n int) []byte {
	b := make([]byte, n)
	h.script = h.script[copy(b, h.script):]
	return b
}

func (h *hostile) byte() byte { return h.take(1)[0] }

func (h *hostile) dial(ctx context.Context) {
	link, err := ump.Driver{}.Dial(ctx, h.addr)
	if err != nil {
		h.t.Fatal("the server cannot be reached: ", err)
	}
	h.links = append(h.links, link)
	h.tx, h.rx = link.Shared().Pages()
	h.at = 0
}

func (h *hostile) link() msg.Link { return h.links[len(h.links)-1] }

// send does not wait for a peer that takes nothing.
func (h *hostile) send(b []byte, files []*os.File) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Millisecond)
	defer cancel()
	h.link().Send(ctx, b, files)
}

// file makes a file to be sent.
func (h *hostile) file(kind byte) *os.File {
	var fd int
	var err error
	switch kind {
	case 1, 2, 5: // memory as it should be, or that can shrink, or is short
		fd, err = unix.MemfdCreate("hostile", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
		size := int64(4096)
		if kind == 5 {
			size = 64
		}
		unix.Ftruncate(fd, size)
		if kind != 2 {
			unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_SEAL)
		}
	case 3, 4:
		fd, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK*int(kind&1))
	case 6:
		fd, err = unix.Socket(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	default:
		fd, err = unix.Open("/dev/null", unix.O_RDWR|unix.O_CLOEXEC, 0)
	}
	if err != nil {
		h.t.Fatal(err)
	}
	f := os.NewFile(uintptr(fd), "hostile")
	h.files = append(h.files, f)
	return f
}

func (h *hostile) step(ctx context.Context) {
	switch h.byte() % 8 {
	case 0:
		whose, flags, delivered, given := h.byte(), h.byte(), h.take(8), h.take(16)
		b := make([]byte, 44) // see msg/frame.go
		b[0], b[1], b[2] = 1, 1, flags
		copy(b[4:], shapes.Interface.Fingerprint[:])
		switch whose % 3 {
		case 1:
			copy(b[20:], given)
		case 2:
			copy(b[20:], h.token[:])
		}
		copy(b[36:], delivered)
		h.send(append(b, "shapes"...), nil)
		if b, files, err := h.recv(50 * time.Millisecond); err == nil && len(b) >= 44 && b[0] == 2 {
			copy(h.token[:], b[20:])
			for _, f := range files {
				f.Close()
			}
		}
	case 1:
		i := int(h.byte()) % 60
		copy(h.tx[256+64*i+56:], h.take(8))
	case 2:
		i, n := int(h.byte())%60, int(h.byte())%57
		copy(h.tx[256+64*i:], h.take(n))
	case 3:
		w, v := h.byte(), h.take(4)
		mem := h.tx
		if w&4 != 0 {
			mem = h.rx
		}
		copy(mem[64*int(w%4):], v)
	case 4:
		kinds, n := h.byte(), int(h.byte())
		var files []*os.File
		for ; kinds != 0 && len(files) < 2; kinds >>= 3 {
			files = append(files, h.file(kinds&7))
		}
		h.send(h.take(n), files)
	case 5:
		a := h.take(3)
		head := uint64(1+h.at/60) | uint64(a[0]%24)<<16 | uint64(a[1]&15)<<28 | uint64(a[2]%64)<<48 | uint64(h.at)<<54
		binary.LittleEndian.PutUint64(h.tx[256+64*(h.at%60)+56:], head)
		h.at++
	case 6:
		h.link().Shared().Wake()
	case 7:
		if len(h.links) < 4 {
			h.dial(ctx)
		}
	}
}

// recv is Recv with a limit.
func (h *hostile) recv(limit time.Duration) ([]byte, []*os.File, error) {
	link := h.link()
	stop := time.AfterFunc(limit, func() { link.Close() })
	defer stop.Stop()
	return link.Recv(context.Background())
}

// run follows the script and hangs up.
func (h *hostile) run() {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	h.dial(ctx)
	for steps := 0; len(h.script) > 0 && steps < 200; steps++ {
		h.step(ctx)
	}
	for _, l := range h.links {
		l.Close()
	}
	for _, f := range h.files {
		f.Close()
	}
}

// sound checks that a client that follows the rules is served.
func sound(c *shapes.Conn) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := c.Send(ctx, &shapes.Ask{Type: 7}); err != nil {
		return err
	}
	m, err := c.Recv(ctx)
	if err != nil {
		return err
	}
	if a, ok := m.(*shapes.Ask); !ok || a.Type != 7 {
		return fmt.Errorf("an answer of %v", m)
	}
	return nil
}

// FuzzC has a C server, compiled with what watches its memory, meet hostile
// clients; another client is served all the while.
func FuzzC(f *testing.F) {
	for _, s := range hostileSeeds {
		f.Add(s)
	}
	name := fmt.Sprintf("fuzz-%d", pid)
	var said bytes.Buffer
	cmd := exec.Command(program(f, "shapes_peer", "shapes"), "serve", name)
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	good, err := shapes.Connect(context.Background(), name, nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, script []byte) {
		h := hostile{t: t, script: script, addr: "unix:" + filepath.Join(os.Getenv("HARDTACK_MSG_DIR"), name+".sock")}
		h.run()
		if err := sound(good); err != nil {
			cmd.Wait()
			t.Fatalf("the server is dead: %v\n%s", err, said.String())
		}
	})
}

// FuzzGo is the same with a server in Go.
func FuzzGo(f *testing.F) {
	for _, s := range hostileSeeds {
		f.Add(s)
	}
	ctx := context.Background()
	var active atomic.Int32
	name := fmt.Sprintf("fuzz-go-%d", pid)
	s, err := shapes.Export(ctx, name, &msg.Options{Grace: 50 * time.Millisecond})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { s.Close() })
	go func() {
		for {
			c, err := s.Accept(ctx)
			if err != nil {
				return
			}
			active.Add(1)
			go func() {
				defer active.Add(-1)
				defer c.Close()
				for {
					m, err := c.Recv(ctx)
					if err != nil {
						return
					}
					limit, cancel := context.WithTimeout(ctx, time.Second) // who takes nothing
					err = c.Send(limit, m)
					cancel()
					if err != nil {
						return
					}
				}
			}()
		}
	}()
	good, err := shapes.Connect(ctx, name, nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, script []byte) {
		h := hostile{t: t, script: script, addr: s.Addrs()[0]}
		h.run()
		if err := sound(good); err != nil {
			t.Fatal(err)
		}
		for end := time.Now().Add(patience); active.Load() > 1; time.Sleep(100 * time.Microsecond) {
			if time.Now().After(end) {
				t.Fatalf("%d connections live on", active.Load()-1)
			}
		}
	})
}
