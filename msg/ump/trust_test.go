package ump

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"hardtack/msg"
)

func pair(t *testing.T) (a, b *link) {
	t.Helper()
	x, y, err := Driver{}.Pair(msg.Rings{Pages: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { x.Close(); y.Close() })
	return x.(*link), y.(*link)
}

// soon fails the test if f has not returned in time, and goes on without it.
func soon(t *testing.T, what string, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); f() }()
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		t.Fatalf("%s waits for the peer", what)
	}
}

// A peer that makes its bell blocking and fills it holds nobody who rings it.
func TestRingFullBell(t *testing.T) {
	a, b := pair(t)
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fds[0])
	far := os.NewFile(uintptr(fds[1]), "far")
	defer far.Close()
	if err := b.Send(context.Background(), []byte{frameBell}, []*os.File{far}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := a.TryRecv(); err != msg.ErrNoFrame || a.rings.Load() == nil {
		t.Fatal("the bell was not taken", err)
	}
	for {
		if _, err := unix.SendmsgN(fds[1], make([]byte, 1<<12), nil, nil, unix.MSG_DONTWAIT); err == unix.EAGAIN {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	for _, fd := range fds {
		if err := unix.SetNonblock(fd, false); err != nil {
			t.Fatal(err)
		}
	}
	soon(t, "Wake", a.Wake)
	soon(t, "Close", func() { a.Close() })
}

// What is no pair of sockets is no bell: writing to it could block, or mean something.
func TestWrongBell(t *testing.T) {
	event, err := unix.Eventfd(0, unix.EFD_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	name := filepath.Join(t.TempDir(), "s")
	server, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err == nil {
		err = unix.Bind(server, &unix.SockaddrUnix{Name: name})
	}
	if err == nil {
		err = unix.Listen(server, 1)
	}
	client := -1
	if err == nil {
		client, err = unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	}
	if err == nil {
		err = unix.Connect(client, &unix.SockaddrUnix{Name: name})
	}
	if err != nil {
		t.Fatal(err)
	}
	for what, f := range map[string]*os.File{
		"an eventfd": os.NewFile(uintptr(event), ""), "a pipe": w,
		"a listener": os.NewFile(uintptr(server), ""), "a client of somebody": os.NewFile(uintptr(client), ""),
	} {
		a, b := pair(t)
		if err := b.Send(context.Background(), []byte{frameBell}, []*os.File{f}); err != nil {
			t.Fatal(err)
		}
		if _, _, err := a.TryRecv(); err == nil || err == msg.ErrNoFrame {
			t.Errorf("%s passes for a bell: %v", what, err)
		}
		f.Close()
	}
}

// Whoever is about to sleep does not wait for a peer that takes no frames.
func TestGiveBellToFullPeer(t *testing.T) {
	a, _ := pair(t)
	fillSocket(t, a)
	a.parks.Store(bellAfter - 1)
	soon(t, "Park", func() { a.Park(func() bool { return true }) })
	if a.bell.Load() != nil {
		t.Error("a bell that the peer was not told of")
	}
	// Nor for somebody else who sends to it.
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go a.Send(ctx, []byte{1}, nil)
	for a.sending.tryLock() {
		a.sending.unlock()
		time.Sleep(time.Millisecond)
	}
	soon(t, "giving a bell", func() { a.giveBell() })
}

func fillSocket(t *testing.T, l *link) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	for {
		if err := l.Send(ctx, make([]byte, 1000), nil); err == context.DeadlineExceeded {
			return
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

// More rings than the bell holds, rung while nobody waits, lose no wake.
func TestManyRings(t *testing.T) {
	a, b := pair(t)
	bell := a.giveBell()
	if bell == nil {
		t.Fatal("no bell")
	}
	if _, _, err := b.TryRecv(); err != msg.ErrNoFrame || b.rings.Load() == nil {
		t.Fatal("the bell was not taken", err)
	}
	for range 100 {
		for range 2000 {
			b.Wake()
		}
		looks := 0
		soon(t, "Park", func() {
			a.Park(func() bool {
				if looks++; looks == 1 {
					go b.Wake()
				}
				return looks > 1
			})
		})
	}
}

// What a killed process left is swept; what lives, is young, or is somebody's own is not.
func TestSweep(t *testing.T) {
	parent := t.TempDir()
	dirs := map[string]bool{"dead": false, "living": true, "empty": false, "full": true}
	for name := range dirs {
		dir := filepath.Join(parent, temporary+name)
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if name == "empty" {
			continue
		}
		fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
		if err == nil {
			err = unix.Bind(fd, &unix.SockaddrUnix{Name: filepath.Join(dir, socketName)})
		}
		if err == nil && name == "living" {
			err = unix.Listen(fd, 1)
			t.Cleanup(func() { unix.Close(fd) })
		} else if err == nil {
			err = unix.Close(fd)
		}
		if err == nil && name == "full" {
			err = os.WriteFile(filepath.Join(dir, "precious"), nil, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	sweep(parent, time.Now().Add(-time.Hour))
	for name := range dirs {
		if _, err := os.Lstat(filepath.Join(parent, temporary+name)); err != nil {
			t.Errorf("%s was swept though young: %v", name, err)
		}
	}
	sweep(parent, time.Now().Add(time.Hour))
	for name, stays := range dirs {
		if _, err := os.Lstat(filepath.Join(parent, temporary+name)); (err == nil) != stays {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A frame that waits for a peer that takes none does not hold the next past its deadline,
// nor Close.
func TestSendBehindOthers(t *testing.T) {
	a, _ := pair(t)
	fillSocket(t, a)
	ended := make(chan error, 1)
	go func() { ended <- a.Send(context.Background(), []byte{1}, nil) }()
	for a.sending.tryLock() {
		a.sending.unlock()
		time.Sleep(time.Millisecond)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	soon(t, "Send", func() {
		if err := a.Send(ctx, []byte{1}, nil); err != context.DeadlineExceeded {
			t.Error(err)
		}
	})
	soon(t, "Close", func() { a.Close() })
	soon(t, "the first frame", func() {
		if <-ended == nil {
			t.Error("it was sent")
		}
	})
}
