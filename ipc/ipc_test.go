package ipc

import (
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// On another kernel every call says so.
func TestElsewhere(t *testing.T) {
	if Here() {
		t.Skip("this is Hardtack")
	}
	m := NewMessage()
	_, _, newErr := New(0)
	_, mintErr := Receiver(0).Mint(1, 0)
	n, noteErr := NewNotification(0)
	_, waitErr := n.Wait(Now)
	_, waitRawErr := n.WaitRaw(Now)
	_, bothErr := n.SignalWait(n, 1, Now)
	_, bothRawErr := n.SignalWaitRaw(n, 1, Now)
	for i, err := range []error{
		bothErr, bothRawErr, newErr, mintErr, noteErr, waitErr, waitRawErr, n.Signal(1), m.Reply(),
		Sender(0).Send(m, Now), Sender(0).SendRaw(m, Now), Sender(0).Call(m, Now), Sender(0).CallRaw(m, Now),
		Receiver(0).Recv(m, Now), Receiver(0).RecvRaw(m, Now), Receiver(0).ReplyRecv(m, Now), Receiver(0).ReplyRecvRaw(m, Now),
	} {
		if !errors.Is(err, ErrElsewhere) || !errors.Is(err, syscall.ENOSYS) {
			t.Errorf("call %d: %v", i, err)
		}
	}
}

// What is set is there, in registers or in the buffer, and what does not fit is not.
func TestMessage(t *testing.T) {
	for _, m := range []*Message{NewMessage(), new(Message)} {
		room := ShortBytes
		if m.buffer != nil {
			room = LongBytes
		}
		for n := range LongBytes + 2 {
			b := make([]byte, n)
			for i := range b {
				b[i] = byte(n + i)
			}
			err := m.Set(b)
			if n > room {
				if !errors.Is(err, syscall.EMSGSIZE) {
					t.Fatal(n, err)
				}
				continue
			}
			if err != nil || m.Len() != n || string(m.Bytes()) != string(b) {
				t.Fatal(n, err, m.Len())
			}
		}
		err := m.Attach(0, 1, 2, 2)
		if m.buffer == nil != errors.Is(err, syscall.EMSGSIZE) || m.buffer != nil && (err != nil || m.Files() != 4 || m.FD(3) != 2) {
			t.Error(err)
		}
		if err := m.Attach(0, 1, 2, 2, 2); !errors.Is(err, syscall.EMSGSIZE) {
			t.Error(err)
		}
	}
}

func TestDeadline(t *testing.T) {
	var before, after unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &before); err != nil {
		t.Fatal(err)
	}
	d := int64(After(time.Hour)) - int64(time.Hour)
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &after); err != nil {
		t.Fatal(err)
	}
	// The two clocks are read one after the other, and may be some time apart.
	if slack := int64(time.Second); d < before.Nano()-slack || d > after.Nano()+slack {
		t.Errorf("%d is not between %d and %d", d, before.Nano(), after.Nano())
	}
	if After(-1) != Now || After(0) != Now || After(math.MaxInt64) != Forever {
		t.Error("the limits")
	}
}

// No call allocates.
func TestAllocations(t *testing.T) {
	m := NewMessage()
	data := make([]byte, 100)
	for name, f := range map[string]func(){
		"call":  func() { m.Set(data); m.Attach(0); Sender(-1).Call(m, After(time.Second)) },
		"raw":   func() { Receiver(-1).ReplyRecvRaw(m, Now) },
		"reply": func() { m.Reply() },
		"note":  func() { Notification(-1).Signal(1); Notification(-1).Wait(Now) },
		"both":  func() { Notification(-1).SignalWait(-1, 1, Now) },
	} {
		if n := testing.AllocsPerRun(100, f); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

// TestMain: with an argument the program is a server on descriptor 3.
func TestMain(m *testing.M) {
	if os.Getenv("IPC_SERVER") == "" {
		os.Exit(m.Run())
	}
	runtime.LockOSThread() // tokens are this thread's
	r, w := Receiver(3), NewMessage()
	for err := r.Recv(w, Forever); ; err = r.ReplyRecv(w, Forever) {
		if err != nil {
			fmt.Fprintln(os.Stderr, "server:", err)
			os.Exit(1)
		}
		for i, b := range w.Bytes() {
			w.Bytes()[i] = b + byte(w.Badge)
		}
		fds := make([]int, w.Files())
		for i := range fds {
			fds[i] = w.FD(i)
		}
		w.Attach(fds...)
	}
}

// Two processes call each other, in all forms.
func TestProcesses(t *testing.T) {
	if !Here() {
		t.Skip("not Hardtack")
	}
	r, s, err := New(CloseOnExec)
	if err != nil {
		t.Fatal(err)
	}
	badged, err := r.Mint(3, CloseOnExec)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/proc/self/exe")
	cmd.Env, cmd.Stderr = append(os.Environ(), "IPC_SERVER=1"), os.Stderr
	cmd.ExtraFiles = []*os.File{os.NewFile(uintptr(r), "endpoint")}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	cmd.ExtraFiles[0].Close()
	m := NewMessage()
	data := make([]byte, LongBytes)
	for n := range LongBytes + 1 {
		for i := range n {
			data[i] = byte(n + 3*i)
		}
		m.Set(data[:n])
		call := badged.Call
		if n%2 == 1 {
			call = badged.CallRaw
		}
		err := call(m, Forever)
		for errors.Is(err, syscall.EINTR) { // a signal came when the call had been received
			m.Set(data[:n])
			err = call(m, Forever)
		}
		if err != nil || m.Len() != n {
			t.Fatal(n, err, m.Len())
		}
		for i, b := range m.Bytes() {
			if b != byte(n+3*i+3) {
				t.Fatal(n, i, b)
			}
		}
	}
	p, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	m.Set([]byte("pass"))
	m.Attach(int(w.Fd()))
	err = s.Call(m, After(time.Minute))
	for errors.Is(err, syscall.EINTR) {
		m.Set([]byte("pass"))
		m.Attach(int(w.Fd()))
		err = s.Call(m, After(time.Minute))
	}
	if err != nil || m.Files() != 1 || string(m.Bytes()) != "pass" {
		t.Fatal(err, m.Files(), m.Bytes())
	}
	w.Close()
	back := os.NewFile(uintptr(m.FD(0)), "back")
	fmt.Fprint(back, "there and back")
	back.Close()
	got := make([]byte, 20)
	if k, err := p.Read(got); err != nil || string(got[:k]) != "there and back" {
		t.Error(err, got)
	}
	// While this goroutine waits, others run: the server needs none of ours, but the
	// one that kills it does.
	go func() {
		time.Sleep(50 * time.Millisecond)
		cmd.Process.Kill()
	}()
	m.Set(nil)
	if err := s.Send(m, Now); err != nil && !errors.Is(err, syscall.EAGAIN) {
		t.Error(err)
	}
	cmd.Wait()
	if err := s.Call(m, Forever); !errors.Is(err, syscall.EPIPE) {
		t.Error(err)
	}
}

// Goroutines of one process at a notification: a wait leaves the processor to others.
func TestNotifications(t *testing.T) {
	if !Here() {
		t.Skip("not Hardtack")
	}
	a, err := NewNotification(CloseOnExec)
	if err != nil {
		t.Fatal(err)
	}
	b, err := NewNotification(CloseOnExec)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.Wait(Now); !errors.Is(err, syscall.EAGAIN) {
		t.Error(err)
	}
	if _, err := a.Wait(After(5 * time.Millisecond)); !errors.Is(err, syscall.ETIMEDOUT) {
		t.Error(err)
	}
	const turns = 500
	done := make(chan struct{})
	go func() {
		defer close(done)
		bits, err := a.Wait(Forever)
		for err == nil && bits != 9 {
			bits, err = a.SignalWait(b, bits<<1, Forever)
		}
	}()
	for range turns {
		if bits, err := b.SignalWait(a, 1, Forever); err != nil || bits != 2 {
			t.Fatal(bits, err)
		}
	}
	if err := a.Signal(9); err != nil {
		t.Fatal(err)
	}
	<-done
	go func() {
		for range turns {
			bits, err := a.Wait(Forever)
			if err != nil || b.Signal(bits<<1) != nil {
				return
			}
		}
	}()
	for range turns {
		if err := a.Signal(1); err != nil {
			t.Fatal(err)
		}
		if bits, err := b.Wait(Forever); err != nil || bits != 2 {
			t.Fatal(bits, err)
		}
	}
}
