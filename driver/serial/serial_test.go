package serial_test

import (
	"bytes"
	"io"
	"net"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"hardtack/driver/qtest"
	"hardtack/driver/serial"
)

func open(t *testing.T, receive func([]byte)) (*serial.Port, net.Conn) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	m := qtest.Start(t, "microvm", "/machine/ioapic", 0, "-chardev", "socket,id=c,path="+path, "-serial", "chardev:c")
	host, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { host.Close() })
	_ = host.SetDeadline(time.Now().Add(2 * time.Minute))
	s, err := serial.Open(m, serial.COM1, serial.COM1IRQ, receive)
	if err != nil {
		t.Fatal(err)
	}
	return s, host
}

func text(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i * 7 >> 3)
	}
	return b
}

func TestOutput(t *testing.T) {
	s, host := open(t, func([]byte) {})
	want := text(20000)
	go func() {
		_, _ = s.Write(want)
	}()
	got := make([]byte, len(want))
	if _, err := io.ReadFull(host, got); err != nil || !bytes.Equal(got, want) {
		t.Errorf("host heard something else: %v", err)
	}
}

// A host that does not read makes Write wait and loses nothing. QEMU gives a
// byte up after it has been refused four times, so the pause is short.
func TestOutputWaits(t *testing.T) {
	s, host := open(t, func([]byte) {})
	want := text(20000) // more than a socket holds of single bytes
	done := make(chan struct{})
	go func() {
		_, _ = s.Write(want)
		close(done)
	}()
	select {
	case <-done:
		t.Fatal("Write did not wait")
	case <-time.After(500 * time.Millisecond):
	}
	var got []byte
	b := make([]byte, 65536)
	for len(got) < len(want) {
		n, err := host.Read(b)
		if got = append(got, b[:n]...); err != nil {
			t.Fatalf("%d bytes of %d: %v", len(got), len(want), err)
		}
	}
	<-done
	if !bytes.Equal(got, want) {
		t.Error("bytes were lost")
	}
}

// A slow receiver holds the host back; nothing is lost, output goes on, and
// AfterInput comes after the input.
func TestInput(t *testing.T) {
	var mu sync.Mutex
	var got []byte
	block := make(chan struct{})
	s, host := open(t, func(b []byte) {
		<-block
		mu.Lock()
		defer mu.Unlock()
		got = append(got, b...)
	})
	want := text(5000)
	if _, err := host.Write(want); err != nil {
		t.Fatal(err)
	}
	time.Sleep(50 * time.Millisecond)
	go func() { _, _ = s.Write(want) }()
	echo := make([]byte, len(want))
	if _, err := io.ReadFull(host, echo); err != nil || !bytes.Equal(echo, want) {
		t.Errorf("output while input is blocked: %v", err)
	}
	close(block)
	for range 1000 {
		mu.Lock()
		n := len(got)
		mu.Unlock()
		if n >= len(want)-16 { // the port holds 16
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	done := make(chan struct{})
	s.AfterInput(func() { close(done) })
	<-done
	if !bytes.Equal(got, want) {
		t.Errorf("received %d bytes of %d, or others", len(got), len(want))
	}
}

// Input is announced by the interrupt alone.
func TestInputInterrupts(t *testing.T) {
	got := make(chan byte, 100)
	_, host := open(t, func(b []byte) {
		for _, c := range b {
			got <- c
		}
	})
	for i := range byte(50) {
		if _, err := host.Write([]byte{i}); err != nil {
			t.Fatal(err)
		}
		select {
		case c := <-got:
			if c != i {
				t.Fatalf("got %d, want %d", c, i)
			}
		case <-time.After(time.Minute):
			t.Fatalf("byte %d does not come", i)
		}
	}
}
