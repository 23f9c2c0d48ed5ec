package service

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"runtime"
	"testing"

	"hardtack/abi/linux"
	"hardtack/kernel/base/accounts"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/creds"
	"hardtack/kernel/base/ledger"
	"hardtack/kernel/base/uio"
	"hardtack/kernel/fs/vfs"
	"hardtack/msg"
)

func newClient(t *testing.T) (*Client, *vfs.File, *caller.Ctx) {
	c := caller.NewKernelCtx()
	x := &Client{Cred: &creds.RootCred, user: accounts.UserOf(0), s: &listener{all: map[string]*Client{}},
		wake: make(chan struct{}, 1), room: make(chan struct{}, 1)}
	if !pool.Get().Charge(x.user, 1) {
		t.Fatal("the pool is full")
	}
	return x, vfs.NewFile(x, linux.O_RDWR|linux.O_NONBLOCK), c
}

func frame(n int, fill byte) []byte {
	return append(binary.LittleEndian.AppendUint32(nil, uint32(n)), bytes.Repeat([]byte{fill}, n)...)
}

// Frames arrive whole, whatever pieces the program writes and reads.
func TestFrames(t *testing.T) {
	x, f, c := newClient(t)
	r := rand.New(rand.NewPCG(1, 2))
	var stream []byte
	var sizes []int
	for i := range 500 {
		n := r.IntN(maxFrame + 1)
		if i%2 == 0 {
			n = r.IntN(50)
		}
		sizes, stream = append(sizes, n), append(stream, frame(n, byte(i))...)
	}
	go func() {
		for i, n := range sizes { // an echo
			b, _, err := x.Recv(context.Background())
			if err != nil || len(b) != n || n > 0 && (b[0] != byte(i) || b[n-1] != byte(i)) {
				t.Errorf("frame %d has %d bytes, not %d: %v", i, len(b), n, err)
			}
			if err := x.Send(context.Background(), b, nil); err != nil {
				t.Error(err)
			}
		}
		x.Close()
	}()
	var back []byte
	f.UpdateFlags(linux.O_NONBLOCK, 0)
	go func() {
		w := caller.NewKernelCtx()
		for b := stream; len(b) > 0; {
			n, e := x.Write(w, f, uio.Bytes(b[:min(len(b), 1+r.IntN(5000))]), 0)
			if e != 0 {
				t.Errorf("write: %v", e)
				return
			}
			b = b[n:]
		}
	}()
	buf := make([]byte, 3000)
	for {
		n, e := x.Read(c, f, uio.Bytes(buf), 0)
		if e != 0 {
			t.Fatal(e)
		}
		if n == 0 {
			break
		}
		back = append(back, buf[:n]...)
	}
	if !bytes.Equal(back, stream) {
		t.Errorf("%d bytes came back of %d", len(back), len(stream))
	}
	f.Put()
}

// unmapped is memory of a program that is not there.
type unmapped struct{ uio.Memory }

func (unmapped) CopyOut(uio.Addr, []byte) (int, linux.Errno) { return 0, linux.EFAULT }

// What could not be copied to a program is still to be read.
func TestReadFault(t *testing.T) {
	x, f, c := newClient(t)
	defer f.Put()
	if err := x.Send(context.Background(), []byte("reply"), nil); err != nil {
		t.Fatal(err)
	}
	var v uio.Vec
	v.Init(unmapped{}, 4096, 100)
	if n, e := x.Read(c, f, &v, 0); n != 0 || e != linux.EFAULT {
		t.Errorf("to nowhere: %d bytes, %v", n, e)
	}
	buf := make([]byte, 100)
	if n, e := x.Read(c, f, uio.Bytes(buf), 0); e != 0 || string(buf[:n]) != "\x05\x00\x00\x00reply" {
		t.Errorf("then: %q, %v", buf[:n], e)
	}
}

// What a program may write, and what is left when it goes.
func TestHostile(t *testing.T) {
	used := pool.Get().Used()
	x, f, c := newClient(t)
	n, e := x.Write(c, f, uio.Bytes(make([]byte, 3*bufferBytes)), 0)
	if n != bufferBytes || e != 0 {
		t.Errorf("%d bytes were taken of a flood, %v", n, e)
	}
	if n, e := x.Write(c, f, uio.Bytes([]byte{1}), 0); n != 0 || e != linux.EAGAIN {
		t.Errorf("%d more, %v", n, e)
	}
	var s ledger.Sum
	x.Holds(&s)
	if s.Heap() < baseBytes {
		t.Errorf("the ledger has %d bytes", s.Heap())
	}
	f.Put() // before the link is closed: what it was charged for is there yet
	if pool.Get().Used() != used+1 {
		t.Error("the charge went before the link")
	}
	if err := x.Send(context.Background(), []byte{1}, nil); err != io.EOF {
		t.Errorf("send to nobody: %v", err)
	}
	x.enter()
	x.Close()
	x.leave()
	if pool.Get().Used() != used {
		t.Error("the charge is left")
	}

	x, f, c = newClient(t)
	x.Write(c, f, uio.Bytes([]byte{1, 0, 0, 255}), 0)
	var peer *msg.PeerError
	if _, _, err := x.Recv(context.Background()); !errors.As(err, &peer) {
		t.Errorf("a frame of 4 GB: %v", err)
	}
	if _, e := x.Write(c, f, uio.Bytes([]byte{1}), 0); e != linux.EPIPE {
		t.Errorf("write after the end: %v", e)
	}
	if n, e := x.Read(c, f, uio.Bytes(make([]byte, 1)), 0); n != 0 || e != 0 {
		t.Errorf("read after the end: %d, %v", n, e)
	}

	// Who never reads holds up the sender until he goes.
	x, f, _ = newClient(t)
	sent := make(chan error)
	go func() {
		for {
			if err := x.Send(context.Background(), make([]byte, 1000), nil); err != nil {
				sent <- err
				return
			}
		}
	}()
	for x.Ready(f)&readable == 0 {
		runtime.Gosched()
	}
	f.Put()
	if err := <-sent; err != io.EOF {
		t.Errorf("the sender: %v", err)
	}
}

func TestLimiter(t *testing.T) {
	l := limiter{most: 3, time: 10}
	for now, want := range []bool{true, true, true, false, false, false, false, false, false, false, true} {
		if l.take(int64(now)) != want {
			t.Errorf("at %d: not %v", now, want)
		}
	}
}
