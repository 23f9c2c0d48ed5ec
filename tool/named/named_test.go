package named

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"hardtack/idl/live"
	link "hardtack/live"
	"hardtack/tool/fault"
)

// base gives the test a folder of machines of its own, with a short path for the sockets.
func base(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "nm")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	t.Setenv("XDG_RUNTIME_DIR", dir)
	return dir
}

func create(t *testing.T, name string) *Machine {
	t.Helper()
	m, err := Create(name)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func save(t *testing.T, m *Machine, s *State) {
	t.Helper()
	if err := m.Save(s); err != nil {
		t.Fatal(err)
	}
}

// die is what the kill of a machine's process does: its files stay, its lock goes.
func (m *Machine) die() {
	m.lock.Close()
	m.lock = nil
}

func status(t *testing.T, name, want string) {
	t.Helper()
	m, err := Find(name)
	if err != nil {
		t.Fatal(err)
	}
	if s, err := m.State(); err != nil || s.Status != want {
		t.Errorf("%s is %+v, %v; want %s", name, s, err, want)
	}
}

func TestNames(t *testing.T) {
	dir := base(t)
	if list, err := List(); err != nil || len(list) != 0 {
		t.Errorf("without a folder: %v, %v", list, err)
	}
	if _, err := Find("web"); fault.Status(err) != fault.Host {
		t.Errorf("a machine that is not there: %v", err)
	}
	for _, bad := range []string{"", ".", "..", "a/b", "-x", ".x", "a b", "ä", strings.Repeat("x", 64)} {
		if _, err := Create(bad); fault.Status(err) != fault.Input {
			t.Errorf("%q is a name: %v", bad, err)
		}
	}
	m := create(t, "web")
	save(t, m, &State{Status: Up, PID: os.Getpid()})
	status(t, "web", Up)
	if _, err := Create("web"); fault.Status(err) != fault.Input || !strings.Contains(err.Error(), "runs") {
		t.Errorf("a second one: %v", err)
	}
	other, err := Find("web")
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Remove(); err == nil {
		t.Error("a running machine was removed")
	}
	m.die()
	status(t, "web", Dead)
	if _, err := Create("web"); fault.Status(err) != fault.Input || !strings.Contains(err.Error(), "rm web") {
		t.Errorf("in place of a dead one: %v", err)
	}
	if err := other.Remove(); err != nil {
		t.Error(err)
	}
	m = create(t, "web")
	save(t, m, &State{Status: Up, AutoRemove: true})
	m.die()
	m = create(t, "web") // what nobody wanted to keep gives way
	status(t, "web", Created)
	save(t, m, &State{Status: Exited, ExitCode: 3})
	m.die()
	status(t, "web", Exited)
	if code, err := m.Wait(t.Context()); code != 3 || err != nil {
		t.Errorf("wait: %d, %v", code, err)
	}

	// What is no machine's is left alone.
	if err := os.MkdirAll(filepath.Join(dir, "hardtack", "debug", "x"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := Create("debug"); fault.Status(err) != fault.Input {
		t.Errorf("a folder of somebody else: %v", err)
	}
	if list, err := List(); err != nil || len(list) != 1 || list[0].Name != "web" {
		t.Errorf("list: %v, %v", list, err)
	}
}

// Of many that want one name at a time one gets it.
func TestOneName(t *testing.T) {
	base(t)
	var wg sync.WaitGroup
	var mu sync.Mutex
	var got []*Machine
	for range 20 {
		wg.Go(func() {
			if m, err := Create("web"); err == nil {
				mu.Lock()
				got = append(got, m)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if len(got) != 1 {
		t.Errorf("%d have the name", len(got))
	}
}

func TestDamagedState(t *testing.T) {
	base(t)
	m := create(t, "web")
	name := filepath.Join(m.Dir, stateFile)
	for what, damage := range map[string]func() error{
		"garbage": func() error { return os.WriteFile(name, []byte("{\x00"), 0o600) },
		"fifo":    func() error { return syscall.Mkfifo(name, 0o600) },
		"link":    func() error { return os.Symlink("/dev/zero", name) },
		"folder":  func() error { return os.Mkdir(name, 0o700) },
	} {
		if err := damage(); err != nil {
			t.Fatal(err)
		}
		if s, err := m.State(); err == nil {
			t.Errorf("%s of a machine that runs: %+v", what, s)
		}
		m.die()
		status(t, "web", Dead)
		if err := m.take(); err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
}

func TestForeignFolder(t *testing.T) {
	dir := base(t)
	own := filepath.Join(dir, "hardtack")
	if err := os.Mkdir(own, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(own, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := Create("web"); err == nil {
		t.Error("a folder that others can read was used")
	}
	if _, err := List(); err == nil {
		t.Error("a folder that others can read was listed")
	}
	if err := os.Remove(own); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(t.TempDir(), own); err != nil {
		t.Fatal(err)
	}
	if _, err := Create("web"); err == nil {
		t.Error("a symbolic link was followed")
	}
	t.Setenv("XDG_RUNTIME_DIR", "")
	t.Setenv("TMPDIR", dir)
	m := create(t, "web")
	st, err := os.Stat(filepath.Dir(m.Dir))
	if err != nil || st.Mode().Perm() != 0o700 || filepath.Base(filepath.Dir(m.Dir)) != fmt.Sprintf("hardtack-%d", os.Geteuid()) {
		t.Errorf("without XDG_RUNTIME_DIR: %v, %v", st, err)
	}
}

func TestLog(t *testing.T) {
	base(t)
	m := create(t, "web")
	var b bytes.Buffer
	if err := m.CopyLog(t.Context(), &b, LogView{Lines: -1}); err != nil || b.Len() > 0 {
		t.Errorf("no log: %v, %q", err, b.String())
	}
	l, err := m.OpenLog()
	if err != nil {
		t.Fatal(err)
	}
	r, w := io.Pipe()
	done := make(chan error, 1)
	go func() {
		err := m.CopyLog(t.Context(), w, LogView{Lines: -1, Follow: true})
		w.Close()
		done <- err
	}()
	first := bytes.Repeat([]byte("a"), logMost-1)
	go l.Write(first)
	got := make([]byte, len(first))
	if _, err := io.ReadFull(r, got); err != nil || !bytes.Equal(got, first) {
		t.Fatal("the log is not what was written")
	}
	l.Write([]byte("second")) // in a file of its own
	if _, err := io.ReadFull(r, got[:6]); err != nil || string(got[:6]) != "second" {
		t.Fatalf("%q, %v", got[:6], err)
	}
	l.Write([]byte("end"))
	m.die()
	if rest, _ := io.ReadAll(r); string(rest) != "end" {
		t.Errorf("behind the end: %q", rest)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	if err := m.CopyLog(t.Context(), &b, LogView{Lines: -1}); err != nil || b.Len() != len(first)+9 {
		t.Errorf("both files: %d bytes, %v", b.Len(), err)
	}
}

// guest is a kernel that answers as a test says.
type guest struct {
	live.Handler // nil: what a test does not define is not called
	mu           sync.Mutex
	last         uint32
	out          map[uint32]chan live.NextReply // of open sessions; guarded by mu
	closed       chan uint32
	signals      chan uint8

	names []string                   // what List answers
	stat  func(n int) live.StatReply // the answer to Stat number n
	stats int
}

func (g *guest) Start(_ context.Context, in live.StartCall) (out live.StartReply, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch args := strings.Split(strings.TrimSuffix(string(in.Args), "\x00"), "\x00"); args[0] {
	case "missing":
		return live.StartReply{Errno: uint32(syscall.ENOENT)}, nil
	case "refused":
		return live.StartReply{Errno: uint32(syscall.EACCES)}, nil
	}
	g.last++
	g.out[g.last] = make(chan live.NextReply, 16)
	if in.Flags&flagInput == 0 {
		g.out[g.last] <- live.NextReply{What: 1, Data: in.Args}
		g.out[g.last] <- live.NextReply{What: 2, Data: in.Env}
		g.out[g.last] <- live.NextReply{What: 3, Status: 7 << 8}
	}
	return live.StartReply{Session: g.last}, nil
}

func (g *guest) session(n uint32) chan live.NextReply {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.out[n]
}

func (g *guest) Next(ctx context.Context, in live.NextCall) (out live.NextReply, err error) {
	select {
	case out = <-g.session(in.Session):
		return out, nil
	case <-ctx.Done():
		return out, ctx.Err()
	}
}

func (g *guest) Input(_ context.Context, in live.InputCall) (out live.InputReply, err error) {
	if len(in.Data) > 0 {
		g.session(in.Session) <- live.NextReply{What: 1, Data: in.Data}
	}
	if in.End {
		g.session(in.Session) <- live.NextReply{What: 3}
	}
	return out, nil
}

func (g *guest) Signal(_ context.Context, in live.SignalCall) (out live.SignalReply, err error) {
	g.session(in.Session) <- live.NextReply{What: 3, Status: uint32(in.Number)}
	return out, nil
}

func (g *guest) Close(_ context.Context, in live.CloseCall) (out live.CloseReply, err error) {
	g.closed <- in.Session
	return out, nil
}

func (g *guest) List(context.Context, live.ListCall) (live.ListReply, error) {
	return live.ListReply{Names: []byte(strings.Join(g.names, "\x00") + "\x00")}, nil
}

func (g *guest) Stat(context.Context, live.StatCall) (live.StatReply, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.stats++
	return g.stat(g.stats), nil
}

func (g *guest) Read(_ context.Context, in live.ReadCall) (live.ReadReply, error) {
	if in.At > 0 {
		return live.ReadReply{}, nil
	}
	return live.ReadReply{Data: []byte("of the guest")}, nil
}

// toLink is the stream to another link.
type toLink struct{ to *link.Link }

func (w *toLink) Write(b []byte) (int, error) {
	w.to.Feed(b)
	return len(b), nil
}

var drivers int

// run gives a machine a guest.
func run(t *testing.T, m *Machine) (*Service, *guest, *link.Link) {
	t.Helper()
	g := &guest{out: map[uint32]chan live.NextReply{}, closed: make(chan uint32, 100), signals: make(chan uint8, 10)}
	svc, kernel := runHandler(t, m, g)
	guestOf(svc).Signal = func(n int) { g.signals <- uint8(n) }
	return svc, g, kernel
}

// runHandler is run with another guest.
func runHandler(t *testing.T, m *Machine, g live.Handler) (*Service, *link.Link) {
	t.Helper()
	toHost, toGuest := new(toLink), new(toLink)
	host, kernel := link.NewLink(toGuest), link.NewLink(toHost)
	toHost.to, toGuest.to = host, kernel
	drivers++
	d := link.NewDriver(fmt.Sprintf("kernel-%d", drivers), kernel)
	s, err := live.Export(t.Context(), "live", d.Options())
	if err != nil {
		t.Fatal(err)
	}
	go s.Serve(t.Context(), func(*live.Conn) live.Handler { return g })
	svc, err := m.Serve(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ready := make(chan struct{})
	close(ready)
	done := make(chan struct{})
	svc.Started(&Guest{PID: 1e6 + drivers, Ready: ready, Done: done, Link: host, Signal: func(int) {}})
	save(t, m, &State{Status: Up, PID: os.Getpid()})
	t.Cleanup(func() { svc.End(0) })
	return svc, kernel
}

func look(t *testing.T, m *Machine) (*live.Client, func()) {
	t.Helper()
	c, done, err := m.Look(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(done)
	return c, done
}

func TestExec(t *testing.T) {
	base(t)
	m := create(t, "web")
	_, g, _ := run(t, m)
	c, _ := look(t, m)
	exec := func(p *Program) (n int, stdout, stderr string, e error) {
		var out, err bytes.Buffer
		p.Out, p.Err = &out, &err
		n, e = p.Run(t.Context(), c)
		return n, out.String(), err.String(), e
	}
	if n, out, errs, e := exec(&Program{Args: []string{"a", ""}, Env: []string{"X=1"}}); n != 7 || e != nil || out != "a\x00\x00" || errs != "X=1\x00" {
		t.Errorf("%d, %v, %q, %q", n, e, out, errs)
	}
	for name, want := range map[string]int{"missing": 127, "refused": 126, "zero\x00": 125, strings.Repeat("x", textMost): 125} {
		if _, _, _, e := exec(&Program{Args: []string{name}}); fault.Status(e) != want {
			t.Errorf("%.20q: %v, want status %d", name, e, want)
		}
	}
	text := strings.Repeat("0123456789", 20000)
	if n, out, _, e := exec(&Program{Args: []string{"cat"}, In: strings.NewReader(text)}); n != 0 || e != nil || out != text {
		t.Errorf("%d, %v, %d bytes of %d", n, e, len(out), len(text))
	}
	signals := make(chan int, 1)
	signals <- 15
	r, _ := io.Pipe()
	if n, _, _, e := exec(&Program{Args: []string{"cat"}, In: r, Signals: signals}); n != 128+15 || e != nil {
		t.Errorf("%d, %v, want 143", n, e)
	}
	for range 3 { // those that started
		<-g.closed
	}
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			var out bytes.Buffer
			text := fmt.Sprint("number ", i)
			n, err := (&Program{Args: []string{"cat"}, In: strings.NewReader(text), Out: &out, Err: &out}).Run(t.Context(), c)
			if n != 0 || err != nil || out.String() != text {
				t.Errorf("%d: %d, %v, %q", i, n, err, out.String())
			}
		})
	}
	wg.Wait()
}

// A client's sessions end with it, and are nobody else's.
func TestClientLeaves(t *testing.T) {
	base(t)
	m := create(t, "web")
	_, g, _ := run(t, m)
	a, leave := look(t, m)
	b, _ := look(t, m)
	out, err := a.Start(t.Context(), live.StartCall{Flags: flagInput, Args: []byte("cat\x00")})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Next(t.Context(), live.NextCall{Session: out.Session}); !errors.Is(err, live.ErrNoSession) {
		t.Errorf("another's session: %v", err)
	}
	if _, err := b.Close(t.Context(), live.CloseCall{Session: out.Session}); !errors.Is(err, live.ErrNoSession) {
		t.Errorf("the end of another's session: %v", err)
	}
	leave()
	if n := <-g.closed; n != out.Session {
		t.Errorf("session %d was closed, not %d", n, out.Session)
	}
	if _, err := b.Start(t.Context(), live.StartCall{Args: []byte("a\x00")}); err != nil {
		t.Errorf("the other one: %v", err)
	}
}

// Garbage on the sockets, and clients that come and go, harm nobody.
func TestGarbage(t *testing.T) {
	base(t)
	m := create(t, "web")
	run(t, m)
	c, _ := look(t, m)
	r := rand.New(rand.NewPCG(1, 2))
	for i := range 60 {
		socket := []string{controlName, liveName}[i%2]
		n, err := net.Dial("unixpacket", filepath.Join(m.Dir, socket+".sock"))
		if err != nil {
			if n, err = net.Dial("unix", filepath.Join(m.Dir, socket+".sock")); err != nil {
				t.Fatal(err)
			}
		}
		b := make([]byte, r.IntN(3000))
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		n.SetWriteDeadline(time.Now().Add(time.Second))
		n.Write(b) // it may be refused
		n.Close()
	}
	var out bytes.Buffer
	if n, err := (&Program{Args: []string{"a"}, Out: &out, Err: io.Discard}).Run(t.Context(), c); n != 7 || err != nil || out.String() != "a\x00" {
		t.Errorf("%d, %v, %q", n, err, out.String())
	}
}

// A guest that says nonsense loses its port, and the machine's process goes on.
func TestHostileStream(t *testing.T) {
	for seed := range uint64(10) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			base(t)
			m := create(t, "web")
			svc, g, kernel := run(t, m)
			c, _ := look(t, m)
			if _, err := (&Program{Args: []string{"a"}, Out: io.Discard, Err: io.Discard}).Run(t.Context(), c); err != nil {
				t.Fatal(err)
			}
			r := rand.New(rand.NewPCG(seed, 3))
			b := make([]byte, 5000)
			for i := range b {
				b[i] = byte(r.Uint32())
			}
			kernel.Send(t.Context(), b[:r.IntN(len(b))], nil)
			guestOf(svc).Link.Feed(b)
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			_, _ = (&Program{Args: []string{"a"}, Out: io.Discard, Err: io.Discard}).Run(ctx, c) // it may fail
			if err := m.Kill(t.Context(), 15); err != nil {
				t.Error(err)
			}
			if n := <-g.signals; n != 15 {
				t.Errorf("signal %d", n)
			}
		})
	}
}

func guestOf(s *Service) *Guest {
	g, _ := s.running()
	return g
}

func TestStop(t *testing.T) {
	base(t)
	m := create(t, "web")
	svc, g, _ := run(t, m)
	waited := make(chan int, 1)
	go func() {
		n, err := m.Wait(t.Context())
		if err != nil {
			t.Error(err)
		}
		waited <- n
	}()
	stopped := make(chan error, 1)
	go func() { stopped <- m.Stop(t.Context(), 15, 0) }()
	if a, b := <-g.signals, <-g.signals; a != 15 || b != 9 {
		t.Errorf("signals %d and %d, want 15 and 9", a, b)
	}
	if !svc.Stopped() {
		t.Error("nobody asked for the end")
	}
	svc.Ended()
	save(t, m, &State{Status: Exited, ExitCode: 137})
	svc.End(137)
	m.die()
	if err := <-stopped; err != nil {
		t.Error(err)
	}
	if n := <-waited; n != 137 {
		t.Errorf("status %d", n)
	}
	if err := m.Kill(t.Context(), 15); err == nil {
		t.Error("a machine that has ended took a signal")
	}
	if err := m.Stop(t.Context(), 15, 0); err != nil {
		t.Error(err)
	}
}

// What a guest says of names and links leads nowhere outside.
func TestCopyOutOfHostileGuest(t *testing.T) {
	base(t)
	m := create(t, "web")
	_, g, _ := run(t, m)
	c, _ := look(t, m)
	for _, name := range []string{"..", ".", "a/b", "../x", "/etc", ""} {
		g.names = []string{name}
		g.stats = 0
		g.stat = func(int) live.StatReply { return live.StatReply{Mode: typeDir | 0o755} }
		to := filepath.Join(t.TempDir(), "to")
		if name == "" {
			g.names = []string{"", "a"}
		}
		if err := CopyOut(t.Context(), c, "/dir", to, false); err == nil {
			t.Errorf("a file called %q was copied", name)
		}
	}
	// A name that is a link at first and a folder then, with a file in it.
	outside := t.TempDir()
	g.names = []string{"x", "x"}
	g.stats = 0
	g.stat = func(n int) live.StatReply {
		switch n {
		case 2:
			return live.StatReply{Mode: typeLink | 0o777, Target: outside}
		case 1, 3:
			return live.StatReply{Mode: typeDir | 0o755}
		}
		return live.StatReply{Mode: typeFile | 0o644}
	}
	if err := CopyOut(t.Context(), c, "/dir", filepath.Join(t.TempDir(), "to"), false); err == nil {
		t.Error("a link was followed")
	}
	if list, err := os.ReadDir(outside); err != nil || len(list) > 0 {
		t.Errorf("outside: %v, %v", list, err)
	}
	// Folders without an end.
	g.names = []string{"x"}
	g.stat = func(int) live.StatReply { return live.StatReply{Mode: typeDir | 0o755} }
	if err := CopyOut(t.Context(), c, "/dir", filepath.Join(t.TempDir(), "to"), false); err == nil {
		t.Error("folders in each other have no end")
	}
}

func TestParsePlace(t *testing.T) {
	for in, want := range map[string]string{"web:/a": "web /a", "./a:b": " ./a:b", "/a:b": " /a:b", "a": " a", "web:a:b": "web a:b"} {
		if m, p, err := ParsePlace(in); err != nil || m+" "+p != want {
			t.Errorf("%q: %q %q %v", in, m, p, err)
		}
	}
	for _, bad := range []string{"web:", "a b:c"} {
		if _, _, err := ParsePlace(bad); err == nil {
			t.Errorf("%q is a place", bad)
		}
	}
}

// The last lines of a log, which may be in two files.
func TestTail(t *testing.T) {
	base(t)
	m := create(t, "web")
	for _, c := range []struct {
		old, text string
		lines     int
		want      string
	}{
		{"", "a\nb\nc\n", 2, "b\nc\n"},
		{"", "a\nb\nc", 2, "b\nc"},
		{"", "a\nb\n", 9, "a\nb\n"},
		{"", "a\n\n\n", 2, "\n\n"},
		{"x\ny\n", "a\nb\n", 3, "y\na\nb\n"},
		{"x\ny\n", "a\nb\n", 2, "a\nb\n"},
		{"x\ny\n", "", 1, "y\n"},
		{"x\ny\n", "a\n", 0, ""},
		{"x\n", "a\n", -1, "x\na\n"},
		{"", strings.Repeat("z", 100<<10) + "\nb\n", 2, strings.Repeat("z", 100<<10) + "\nb\n"},
	} {
		for name, text := range map[string]string{logFile: c.text, logFile + ".1": c.old} {
			if err := os.WriteFile(filepath.Join(m.Dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		var b bytes.Buffer
		if err := m.CopyLog(t.Context(), &b, LogView{Lines: c.lines}); err != nil || b.String() != c.want {
			t.Errorf("the last %d lines of %.20q and %.20q: %.40q, %v", c.lines, c.old, c.text, b.String(), err)
		}
	}
}

// Lines have times: by them a log is cut, over both of its files.
func TestLogTimes(t *testing.T) {
	base(t)
	m := create(t, "web")
	l, err := m.OpenLog()
	if err != nil {
		t.Fatal(err)
	}
	apart := func() time.Time {
		time.Sleep(2 * timesApart) // the clock goes on by so much at least
		now := time.Now()
		time.Sleep(2 * timesApart)
		return now
	}
	begin := apart()
	l.Write([]byte("one\nt"))
	first := apart()
	l.Write([]byte("wo")) // belongs to what began before
	l.Write([]byte("\n"))
	second := apart()
	l.Write([]byte("three\nfour\n"))
	third := apart()
	l.mu.Lock()
	l.size = logMost // so it begins anew
	l.mu.Unlock()
	l.Write([]byte("five\n"))
	end := apart()
	for _, c := range []struct {
		view LogView
		want string
	}{
		{LogView{Lines: -1}, "one\ntwo\nthree\nfour\nfive\n"},
		{LogView{Lines: -1, Since: begin, Until: end}, "one\ntwo\nthree\nfour\nfive\n"},
		{LogView{Lines: -1, Since: first}, "three\nfour\nfive\n"},
		{LogView{Lines: -1, Since: second, Until: third}, "three\nfour\n"},
		{LogView{Lines: -1, Until: first}, "one\ntwo\n"},
		{LogView{Lines: -1, Since: third}, "five\n"},
		{LogView{Lines: -1, Since: end}, ""},
		{LogView{Lines: -1, Until: begin}, ""},
		{LogView{Lines: 2}, "four\nfive\n"},
		{LogView{Lines: 2, Since: third}, "five\n"}, // of the last lines, as docker
		{LogView{Lines: 2, Until: third}, "four\n"},
		{LogView{Lines: -1, Until: first, Follow: true}, "one\ntwo\n"},
	} {
		var b bytes.Buffer
		if err := m.CopyLog(t.Context(), &b, c.view); err != nil || b.String() != c.want {
			t.Errorf("%+v: %q, %v; want %q", c.view, b.String(), err, c.want)
		}
	}
	var b bytes.Buffer
	if err := m.CopyLog(t.Context(), &b, LogView{Lines: -1, Timestamps: true}); err != nil {
		t.Fatal(err)
	}
	bounds := []time.Time{begin, begin, second, second, third, end}
	for i, line := range strings.Split(strings.TrimSpace(b.String()), "\n") {
		stamp, text, _ := strings.Cut(line, " ")
		at, err := time.Parse(time.RFC3339Nano, stamp)
		if err != nil || len(stamp) != 30 || at.Before(bounds[i]) || at.After(end) || text != []string{"one", "two", "three", "four", "five"}[i] {
			t.Errorf("line %d is %q", i, line)
		}
	}
}
