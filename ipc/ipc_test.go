package ipc

import (
	"errors"
	"math"
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
	for i, err := range []error{
		newErr, mintErr, noteErr, waitErr, waitRawErr, n.Signal(1), m.Reply(),
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
	} {
		if n := testing.AllocsPerRun(100, f); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}
