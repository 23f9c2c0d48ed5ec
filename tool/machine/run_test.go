package machine

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"hardtack/tool/fault"
	"hardtack/tool/rootfs"
)

// The tests here run real machines with kernels of a few dozen bytes, put
// together from these pieces of 32-bit code.

func say(s string) (code []byte) {
	for i := range len(s) {
		code = append(code, putByte...)
		code[len(code)-2] = s[i]
		code = append(code[:len(code)-1], 0xee)
	}
	return code
}

// putByte waits until the serial port can take a byte and sends it.
var putByte = []byte{
	0xba, 0xfd, 0x03, 0x00, 0x00, // mov $0x3fd, %edx
	0xec,       // in (%dx), %al
	0xa8, 0x20, // test $0x20, %al
	0x74, 0xfb, // jz back to in
	0xba, 0xf8, 0x03, 0x00, 0x00, // mov $0x3f8, %edx
	0xb0, 0x00, // mov $byte, %al
	0xee, // out %al, (%dx)
}

// leave waits until all is sent and writes v to the debug port.
func leave(v byte) []byte {
	return []byte{
		0xba, 0xfd, 0x03, 0x00, 0x00, // mov $0x3fd, %edx
		0xec,       // in (%dx), %al
		0xa8, 0x40, // test $0x40, %al
		0x74, 0xfb, // jz back to in
		0xba, 0xf4, 0x00, 0x00, 0x00, // mov $0xf4, %edx
		0xb0, v, 0xee, // mov $v, %al; out
		0xf4, 0xeb, 0xfd, // hlt, for ever
	}
}

// sleep halts with interrupts off.
var sleep = []byte{0xfa, 0xf4, 0xeb, 0xfd}

// repeat runs code n times; it must not use EBX.
func repeat(n uint32, code []byte) []byte {
	out := []byte{0xbb, byte(n), byte(n >> 8), byte(n >> 16), byte(n >> 24)} // mov $n, %ebx
	out = append(out, code...)
	back := -int32(len(code) + 7)
	return append(out, 0x4b, // dec %ebx
		0x0f, 0x85, byte(back), byte(back>>8), byte(back>>16), byte(back>>24)) // jnz
}

// echo sends back what it receives, up to and with a "q".
var echo = []byte{
	0xba, 0xfd, 0x03, 0x00, 0x00, // mov $0x3fd, %edx
	0xec,       // in (%dx), %al
	0xa8, 0x01, // test $1, %al
	0x74, 0xfb, // jz back to in
	0xba, 0xf8, 0x03, 0x00, 0x00, // mov $0x3f8, %edx
	0xec,       // in (%dx), %al
	0x88, 0xc1, // mov %al, %cl
	0xba, 0xfd, 0x03, 0x00, 0x00, // mov $0x3fd, %edx
	0xec,       // in (%dx), %al
	0xa8, 0x20, // test $0x20, %al
	0x74, 0xfb, // jz back to in
	0xba, 0xf8, 0x03, 0x00, 0x00, // mov $0x3f8, %edx
	0x88, 0xc8, // mov %cl, %al
	0xee,            // out %al, (%dx)
	0x80, 0xf9, 'q', // cmp $'q', %cl
	0x75, 0xd4, // jne back to the start
}

func join(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

// testConfig is a machine with a tiny kernel.
func testConfig(t *testing.T, code []byte) *Config {
	t.Helper()
	if _, err := QEMU(); err != nil {
		t.Skip(err)
	}
	name := filepath.Join(t.TempDir(), "kernel.elf")
	if err := os.WriteFile(name, TinyKernel(code), 0o600); err != nil {
		t.Fatal(err)
	}
	return &Config{Kernel: name, CPUs: 1, Memory: 64 << 20, Machine: MicroVM, Accel: TCG}
}

// result is what a run gave.
type result struct {
	status int
	err    error
	out    string
}

// plenty is more than any of these machines needs.
const plenty = 5 * time.Minute

func start(t *testing.T, c *Config, con Console, timeout time.Duration) result {
	t.Helper()
	initrd, err := rootfs.Scratch()
	if err != nil {
		t.Fatal(err)
	}
	defer initrd.Close()
	if _, err := initrd.WriteString("not looked at"); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if con.Out == nil {
		con.Out = &out
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	r := result{}
	r.status, r.err = c.Run(ctx, initrd, con)
	r.out = out.String()
	return r
}

func TestGuestStatus(t *testing.T) {
	for _, machine := range []string{MicroVM, Q35} {
		for _, v := range []byte{0, 1, 42, 0x7e} {
			t.Run(fmt.Sprint(machine, v), func(t *testing.T) {
				c := testConfig(t, join(say("hello\n"), leave(v)))
				c.Machine = machine
				r := start(t, c, Console{}, plenty)
				if r.err != nil || r.status != int(v) || r.out != "hello\n" {
					t.Errorf("%+v", r)
				}
			})
		}
	}
}

func TestICount(t *testing.T) {
	c := testConfig(t, join(say("hello\n"), leave(3)))
	c.ICount, c.CPUs = true, 2
	if r := start(t, c, Console{}, plenty); r.err != nil || r.status != 3 || r.out != "hello\n" {
		t.Errorf("%+v", r)
	}
}

func TestGuestPanic(t *testing.T) {
	c := testConfig(t, join(say("up\npanic: out of biscuit\n\ngoroutine 1\n"), leave(PanicCode)))
	r := start(t, c, Console{}, plenty)
	if fault.Status(r.err) != fault.Panic || !strings.Contains(r.err.Error(), "panic: out of biscuit") || strings.Contains(r.err.Error(), "\n") {
		t.Errorf("%+v", r)
	}
}

// TestOutputComplete has a guest that prints more than any buffer holds and
// ends at once.
func TestOutputComplete(t *testing.T) {
	const lines = 20000
	c := testConfig(t, join(repeat(lines, say("0123456789\n")), leave(0)))
	r := start(t, c, Console{}, plenty)
	if r.err != nil || r.out != strings.Repeat("0123456789\n", lines) {
		t.Errorf("%v, status %d, %d bytes", r.err, r.status, len(r.out))
	}
}

// TestInputComplete sends more than the guest's port holds to a guest that
// never says it is ready.
func TestInputComplete(t *testing.T) {
	old := patience
	patience = 200 * time.Millisecond
	defer func() { patience = old }()
	text := strings.Repeat("abcdefghij\n", 2000) + "q"
	r := start(t, testConfig(t, join(echo, leave(7))), Console{In: strings.NewReader(text)}, plenty)
	if r.err != nil || r.status != 7 || r.out != text {
		t.Errorf("%v, status %d, %d bytes", r.err, r.status, len(r.out))
	}
}

func TestTimeout(t *testing.T) {
	c := testConfig(t, join(say("still here\n"), sleep))
	r := start(t, c, Console{}, 2*time.Second)
	if r.out != "still here\n" { // on a slow machine it has not come that far
		r = start(t, c, Console{}, time.Minute)
	}
	if fault.Status(r.err) != fault.Timeout || r.out != "still here\n" {
		t.Errorf("%+v", r)
	}
	noChildren(t)
}

// noChildren checks that QEMU is gone with the run.
func noChildren(t *testing.T) {
	t.Helper()
	if pid, err := unix.Wait4(-1, nil, unix.WNOHANG, nil); err != unix.ECHILD {
		t.Errorf("a child is left: %d, %v", pid, err)
	}
}

func TestSignalBeforeReady(t *testing.T) {
	r, w := io.Pipe()
	go func() {
		// The guest runs when it has printed; then the user has enough.
		_, _ = io.ReadFull(r, make([]byte, 3))
		go func() { _, _ = io.Copy(io.Discard, r) }()
		_ = unix.Kill(os.Getpid(), unix.SIGTERM)
	}()
	got := start(t, testConfig(t, join(say("on\n"), sleep)), Console{Out: w}, plenty)
	if fault.Status(got.err) != 128+15 {
		t.Errorf("%+v", got)
	}
	noChildren(t)
}

func TestBusyPort(t *testing.T) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c := testConfig(t, leave(0))
	c.Publish = []Forward{{Proto: "tcp", Addr: "127.0.0.1", Host: l.Addr().(*net.TCPAddr).Port, Guest: 80}}
	r := start(t, c, Console{}, plenty)
	if fault.Status(r.err) != 2 || !strings.Contains(r.err.Error(), "in use") {
		t.Errorf("%+v", r)
	}
}

func TestQEMURefuses(t *testing.T) {
	c := testConfig(t, leave(0))
	c.QEMUArgs = []string{"-no-such-option"}
	if r := start(t, c, Console{}, plenty); fault.Status(r.err) != 2 || strings.Contains(r.err.Error(), "\n") {
		t.Errorf("%+v", r)
	}
}

func TestClosedOutput(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	got := start(t, testConfig(t, join(repeat(100000, say("0123456789\n")), sleep)), Console{Out: w}, plenty)
	if fault.Status(got.err) != 1 {
		t.Errorf("%+v", got)
	}
}
