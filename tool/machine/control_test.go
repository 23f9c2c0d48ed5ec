package machine

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"hardtack/tool/fault"
)

// The tests here put a QEMU of their own in the PATH: this test binary, which
// plays a guest with a control channel.

const fakeEnv = "HARDTACK_FAKE_QEMU"

func TestMain(m *testing.M) {
	if scene := os.Getenv(fakeEnv); scene != "" && filepath.Base(os.Args[0]) == "qemu-system-x86_64" {
		fakeQEMU(scene)
		return
	}
	os.Exit(m.Run())
}

// fakeQEMU plays one scene as a guest.
func fakeQEMU(scene string) {
	console, control := os.NewFile(fdConsole, "console"), os.NewFile(fdControl, "control")
	initrd, _ := os.ReadFile(devFD(fdInitrd))
	lines := bufio.NewScanner(control)
	name, arg, _ := strings.Cut(scene, " ")
	switch name {
	case "exit":
		fmt.Fprintf(console, "%s\n", initrd)
		fmt.Fprintf(control, "ready\nfuture words\nexit %s\n", arg)
	case "panic":
		fmt.Fprintf(console, "panic: on the console\n")
		fmt.Fprintf(control, "ready\npanic %s\n", arg)
		os.Exit(PanicCode<<1 | 1)
	case "eof":
		// A slow reader: the end must not be told before everything is read.
		fmt.Fprintf(control, "ready\n")
		told := make(chan struct{})
		go func() {
			for lines.Scan() {
				if lines.Text() == "eof" {
					close(told)
				}
			}
		}()
		got, buf := 0, make([]byte, 1000)
		for {
			select {
			case <-told:
				_ = unix.SetNonblock(fdConsole, true)
				n, _ := unix.Read(fdConsole, buf)
				fmt.Fprintf(control, "exit %d\n", min(99, max(0, n)))
				fmt.Fprintf(console, "%d", got)
				return
			default:
			}
			var p [1]unix.PollFd
			p[0] = unix.PollFd{Fd: fdConsole, Events: unix.POLLIN}
			if k, _ := unix.Poll(p[:], 5); k > 0 {
				n, _ := unix.Read(fdConsole, buf)
				got += n
				time.Sleep(time.Millisecond)
			}
		}
	case "lines": // tell what the host says, up to a signal, and what is typed
		fmt.Fprintf(control, "ready\n")
		go func() { _, _ = io.Copy(console, console) }()
		for lines.Scan() {
			fmt.Fprintf(console, "%s\n", lines.Text())
			if strings.HasPrefix(lines.Text(), "signal") {
				fmt.Fprintf(control, "exit 5\n")
				return
			}
		}
	case "stubborn":
		fmt.Fprintf(control, "ready\n")
		fmt.Fprintf(console, "on")
		time.Sleep(time.Hour)
	case "mute":
		fmt.Fprintf(control, "exit 3\n")
		time.Sleep(time.Hour)
	case "echo":
		fmt.Fprintf(control, "ready\n")
		_, _ = io.Copy(console, console)
	case "silent":
	case "port":
		fmt.Fprintln(os.Stderr, "qemu-system-x86_64: warning: something else")
		fmt.Fprintln(os.Stderr, "qemu-system-x86_64: -netdev user,id=net: Could not set up host forwarding rule 'tcp::1-:1'")
		os.Exit(1)
	case "refuse":
		fmt.Fprintln(os.Stderr, "qemu-system-x86_64: cannot set up guest memory 'microvm.ram': Cannot allocate memory")
		os.Exit(1)
	}
}

// fake makes a machine whose QEMU plays a scene.
func fake(t *testing.T, scene string) *Config {
	t.Helper()
	dir := t.TempDir()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(exe, filepath.Join(dir, "qemu-system-x86_64")); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	t.Setenv(fakeEnv, scene)
	return testConfig(t, sleep)
}

func TestControlStatus(t *testing.T) {
	r := start(t, fake(t, "exit 143"), Console{}, plenty)
	if r.err != nil || r.status != 143 || r.out != "not looked at\n" {
		t.Errorf("%+v", r)
	}
}

func TestConclusions(t *testing.T) {
	defer func(old time.Duration) { grace = old }(grace)
	grace = 100 * time.Millisecond
	for scene, want := range map[string]struct {
		status int
		text   string
	}{
		"panic nil map in the scheduler": {fault.Panic, "nil map in the scheduler"},
		"panic":                          {fault.Panic, "panic: on the console"},
		"silent":                         {fault.Lost, "without printing anything"},
		"port":                           {fault.Input, "port is in use"},
		"refuse":                         {fault.Host, "Cannot allocate memory"},
		"exit 999":                       {fault.Lost, "without reporting a status"},
	} {
		t.Run(scene, func(t *testing.T) {
			r := start(t, fake(t, scene), Console{}, plenty)
			if fault.Status(r.err) != want.status || !strings.Contains(r.err.Error(), want.text) || strings.Contains(r.err.Error(), "\n") {
				t.Errorf("%+v", r)
			}
		})
	}
	if r := start(t, fake(t, "mute"), Console{}, plenty); r.err != nil || r.status != 3 {
		t.Errorf("a guest that does not power off: %+v", r)
	}
}

// TestEndOfInput has a guest that reads slowly; it reports what was still
// unread when the end was told.
func TestEndOfInput(t *testing.T) {
	const size = 100_000
	r := start(t, fake(t, "eof"), Console{In: strings.NewReader(strings.Repeat("x", size))}, plenty)
	if r.err != nil || r.status != 0 || r.out != fmt.Sprint(size) {
		t.Errorf("%d bytes too late; guest read %s of %d; %v", r.status, r.out, size, r.err)
	}
}

// onRead is an input that calls a function when it is first read, which is
// when the guest has said that it is ready.
type onRead func()

func (f onRead) Read([]byte) (int, error) {
	f()
	return 0, io.EOF
}

func TestSignalToGuest(t *testing.T) {
	raise := onRead(func() { _ = unix.Kill(os.Getpid(), unix.SIGTERM) })
	got := start(t, fake(t, "lines"), Console{In: raise}, plenty)
	if got.err != nil || got.status != 5 {
		t.Errorf("%+v", got)
	}
}

func TestSecondSignal(t *testing.T) {
	defer func(old time.Duration) { grace = old }(grace)
	grace = time.Hour // so that it is not the end of patience that ends it
	raise := onRead(func() {
		for range 2 {
			_ = unix.Kill(os.Getpid(), unix.SIGINT)
			time.Sleep(2 * time.Second) // or a slow machine takes the two for one
		}
	})
	got := start(t, fake(t, "stubborn"), Console{In: raise}, plenty)
	if fault.Status(got.err) != 128+2 {
		t.Errorf("%+v", got)
	}
	noChildren(t)
}

// openPTY is a terminal and its other end.
func openPTY(t *testing.T) (master, tty *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { master.Close() })
	fd := int(master.Fd())
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Skip(err)
	}
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Skip(err)
	}
	tty, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { tty.Close() })
	if err := unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 33, Col: 111}); err != nil {
		t.Fatal(err)
	}
	return master, tty
}

func TestTerminal(t *testing.T) {
	master, tty := openPTY(t)
	before := termios(t, tty)
	r, w := io.Pipe()
	go func() {
		for before == termios(t, tty) { // until it is raw
			time.Sleep(time.Millisecond)
		}
		// Ctrl-C is a byte for the guest, Ctrl-A twice is one, Ctrl-A x leaves.
		_, _ = master.WriteString("a\x03\x01\x01b")
		got := make([]byte, 4)
		_, _ = io.ReadFull(r, got)
		if string(got) != "a\x03\x01b" {
			t.Errorf("the guest read %q", got)
		}
		_, _ = master.WriteString("\x01x")
		_, _ = io.Copy(io.Discard, r)
	}()
	got := start(t, fake(t, "echo"), Console{In: tty, Out: w, TTY: tty}, plenty)
	if got.err != nil || got.status != 0 {
		t.Errorf("%+v", got)
	}
	if after := termios(t, tty); after != before {
		t.Errorf("the terminal was not restored: %+v", after)
	}
}

func termios(t *testing.T, tty *os.File) unix.Termios {
	v, err := unix.IoctlGetTermios(int(tty.Fd()), unix.TCGETS)
	if err != nil {
		t.Error(err)
		return unix.Termios{}
	}
	return *v
}

func TestWindowSize(t *testing.T) {
	master, tty := openPTY(t)
	r, w := io.Pipe()
	said := make(chan string, 1)
	go func() {
		out := bufio.NewReader(r)
		line, _ := out.ReadString('\n')
		said <- line
		_, _ = master.WriteString("x") // passed on once "ready" has been heard
		_, _ = out.ReadByte()
		_ = unix.Kill(os.Getpid(), unix.SIGTERM)
		_, _ = io.Copy(io.Discard, r)
	}()
	got := start(t, fake(t, "lines"), Console{In: tty, Out: w, TTY: tty}, plenty)
	if line := <-said; got.err != nil || line != "winsize 33 111\n" {
		t.Errorf("%q, %+v", line, got)
	}
}

func TestEscapeFilter(t *testing.T) {
	for in, want := range map[string]string{
		"abc": "abc", "\x01\x01": "\x01", "\x01a": "\x01", "\x01b": "\x01b", "a\x01xb": "a!", "\x01": "", "\x01X": "!",
	} {
		var f escapeFilter
		var got bytes.Buffer
		for _, c := range []byte(in) { // a byte at a time, as typed
			out, leave := f.filter([]byte{c})
			got.Write(out)
			if leave {
				got.WriteByte('!')
				break
			}
		}
		if got.String() != want {
			t.Errorf("%q: %q, want %q", in, got.String(), want)
		}
	}
}

func TestControlLongLine(t *testing.T) {
	r, w := io.Pipe()
	c := newControl(io.Discard)
	done := make(chan struct{})
	go func() { c.listen(r); close(done) }()
	_, _ = w.Write(bytes.Repeat([]byte("x"), 3*lineMax))
	w.Close()
	<-done
}

func TestResolveAccel(t *testing.T) {
	for _, a := range []string{KVM, TCG} {
		if got := ResolveAccel(context.Background(), a); got != a {
			t.Errorf("%s became %s", a, got)
		}
	}
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	if _, err := os.OpenFile("/dev/kvm", os.O_RDWR, 0); err != nil {
		t.Skip(err)
	}
	if err := os.MkdirAll(filepath.Dir(verdictFile()), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, v := range []string{KVM, TCG} {
		if err := os.WriteFile(verdictFile(), []byte(bootID()+" "+v+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := ResolveAccel(context.Background(), Auto); got != v {
			t.Errorf("the verdict %s of this boot became %s", v, got)
		}
	}
}
