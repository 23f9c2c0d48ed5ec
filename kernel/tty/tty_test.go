package tty

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/creds"
	"hardtack/kernel/base/mem"
	"hardtack/kernel/base/uio"
	"hardtack/kernel/base/wait"
	"hardtack/kernel/fs/vfs"
)

func TestMain(m *testing.M) {
	mem.InitHost(4096)
	m.Run()
}

// world is a made-up set of processes.
type world struct {
	mu       sync.Mutex
	session  int32
	group    int32
	leader   bool
	ignores  bool
	orphan   bool
	sessions map[int32]int32 // of groups
	sent     []string
	terminal map[int32]*TTY
}

func (w *world) Caller(*caller.Ctx) (int32, int32, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.session, w.group, w.leader
}
func (w *world) Ignores(*caller.Ctx, linux.Signal) bool { return w.ignores }
func (w *world) Orphaned(int32) bool                    { return w.orphan }
func (w *world) SessionOf(g int32) int32                { return w.sessions[g] }
func (w *world) SignalGroup(g int32, s linux.Signal) {
	w.mu.Lock()
	w.sent = append(w.sent, fmt.Sprintf("group %d: %d", g, s))
	w.mu.Unlock()
}
func (w *world) SignalLeader(x int32, s linux.Signal) {
	w.mu.Lock()
	w.sent = append(w.sent, fmt.Sprintf("leader %d: %d", x, s))
	w.mu.Unlock()
}
func (w *world) SetTerminal(s int32, t *TTY) { w.terminal[s] = t }
func (w *world) Install(*caller.Ctx, *vfs.File, bool) (int32, linux.Errno) {
	return 9, 0
}
func (w *world) be(session, group int32) {
	w.mu.Lock()
	w.session, w.group, w.leader = session, group, session == group
	w.mu.Unlock()
}

// signals returns what was sent since the last call.
func (w *world) signals() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := strings.Join(w.sent, ", ")
	w.sent = nil
	return s
}

func newWorld(t *testing.T) *world {
	w := &world{sessions: map[int32]int32{10: 10, 11: 10, 20: 20}, terminal: map[int32]*TTY{}}
	jobs = w
	t.Cleanup(func() {
		jobs = noJobs{}
		clear(terminals)
	})
	return w
}

func (o *ours) slave() *TTY     { return &o.m.Ops.(*master).p.slave }
func (o *ours) number() int32   { return int32(o.mem[0]) | int32(o.mem[1])<<8 }
func (o *ours) setNumber(n int) { o.mem[0], o.mem[1], o.mem[2], o.mem[3] = byte(n), byte(n>>8), 0, 0 }

func TestJobControl(t *testing.T) {
	w := newWorld(t)
	w.be(10, 10)
	o := newOurs(t) // its slave is opened by a session leader
	x := o.slave()
	if s, g := x.Foreground(); s != 10 || g != 10 || w.terminal[10] != x || Controlling(o.c) != x {
		t.Fatal(s, g)
	}
	if e := o.ctl(linux.TIOCGSID, 0); e != 0 || o.number() != 10 {
		t.Fatal(e, o.number())
	}

	// Signals of keys and of the window go to the foreground.
	o.setNumber(11)
	if e := o.ctl(linux.TIOCSPGRP, 0); e != 0 {
		t.Fatal(e)
	}
	o.typeIn([]byte("\x03\x1a\x1c"))
	if s := w.signals(); s != "group 11: 2, group 11: 3, group 11: 20" {
		t.Fatal(s)
	}
	x.SetSize(linux.Winsize{Row: 24, Col: 80})
	x.SetSize(linux.Winsize{Row: 24, Col: 80})
	if s := w.signals(); s != "group 11: 28" {
		t.Fatal(s)
	}

	// In the background: reading stops, writing only with TOSTOP.
	o.typeIn([]byte("line\n"))
	if _, e := o.read(10); e != linux.ERESTARTSYS || w.signals() != "group 10: 21" {
		t.Fatal(e)
	}
	w.ignores = true
	if _, e := o.read(10); e != linux.EIO || w.signals() != "" {
		t.Fatal(e)
	}
	w.ignores, w.orphan = false, true
	if _, e := o.read(10); e != linux.EIO || w.signals() != "" {
		t.Fatal(e)
	}
	w.orphan = false
	if n, e := o.write([]byte("x")); n != 1 || e != 0 {
		t.Fatal(e)
	}
	k := defaultTermios()
	copy(o.mem, encode(&k))
	if e := o.ctl(linux.TCSETS, 0); e != linux.ERESTARTSYS || w.signals() != "group 10: 22" {
		t.Fatal(e)
	}
	w.ignores = true
	k.Lflag |= linux.TOSTOP
	o.set(linux.TCSETS, &k)
	w.ignores = false
	if _, e := o.write([]byte("x")); e != linux.ERESTARTSYS || w.signals() != "group 10: 22" {
		t.Fatal(e)
	}
	// It brings itself to the foreground, ignoring SIGTTOU as shells do.
	w.ignores = true
	o.setNumber(10)
	if e := o.ctl(linux.TIOCSPGRP, 0); e != 0 {
		t.Fatal(e)
	}
	if b, e := o.read(10); string(b) != "line\n" || e != 0 {
		t.Fatal(b, e)
	}
	for group, want := range map[int]linux.Errno{20: linux.EPERM, 99: linux.ESRCH} {
		o.setNumber(group)
		if e := o.ctl(linux.TIOCSPGRP, 0); e != want {
			t.Fatal(group, e)
		}
	}

	// Others neither see nor take it.
	w.be(20, 20)
	for _, cmd := range []uint32{linux.TIOCGPGRP, linux.TIOCGSID, linux.TIOCNOTTY, linux.TIOCSPGRP} {
		if e := o.ctl(cmd, 0); e != linux.ENOTTY {
			t.Fatalf("%#x: %v", cmd, e)
		}
	}
	o.c.SetCred(&creds.Cred{UID: 1000, EUID: 1000})
	if e := o.ctl(linux.TIOCSCTTY, 1); e != linux.EPERM {
		t.Fatal(e)
	}
	o.c.SetCred(&creds.RootCred)
	if e := o.ctl(linux.TIOCSCTTY, 1); e != 0 || OfSession(10) != nil || OfSession(20) != x {
		t.Fatal(e)
	}

	// The end of the leader frees the terminal; the open file lives on.
	w.signals()
	SessionEnded(20)
	if s := w.signals(); s != "group 20: 1" || OfSession(20) != nil {
		t.Fatal(s)
	}
	if n, e := o.write([]byte("x")); n != 1 || e != 0 {
		t.Fatal(n, e)
	}
	w.be(40, 40)
	if e := o.ctl(linux.TIOCSCTTY, 0); e != 0 || OfSession(40) != &o.m.Ops.(*master).p.slave {
		t.Fatal(e)
	}
}

func TestMasterClosed(t *testing.T) {
	w := newWorld(t)
	w.be(10, 10)
	o := newOurs(t)
	n := o.m.Ops.(*master).p.n
	var got linux.Errno
	var wg sync.WaitGroup
	wg.Add(1)
	go func() { // a blocked reader wakes up
		defer wg.Done()
		f := vfs.NewFile(o.s.Ops, linux.O_RDWR)
		_, got = f.Ops.Read(caller.NewKernelCtx(), f, uio.Bytes(make([]byte, 9)), 0)
	}()
	time.Sleep(5 * time.Millisecond)
	o.m.Put()
	wg.Wait()
	if got != linux.EIO {
		t.Fatal(got)
	}
	if s := w.signals(); s != "leader 10: 1, leader 10: 18" {
		t.Fatal(s)
	}
	if _, e := openSlave(o.c, n, 0); e != linux.EIO {
		t.Fatal(e)
	}
	pairsMu.Lock()
	held := pairs[n] != nil
	pairsMu.Unlock()
	o.s.Put()
	pairsMu.Lock()
	free := pairs[n] == nil
	pairsMu.Unlock()
	if !held || !free {
		t.Fatal("number", held, free)
	}
}

func TestSlaveClosed(t *testing.T) {
	o := newOurs(t)
	n := o.m.Ops.(*master).p.n
	o.write([]byte("last"))
	o.s.Put()
	if ev := o.m.Ops.Ready(o.m); ev&(wait.Hup|wait.In) != wait.Hup|wait.In {
		t.Fatal(ev)
	}
	if b, e := o.shown(10); string(b) != "last" || e != 0 {
		t.Fatal(b, e)
	}
	if _, e := o.shown(10); e != linux.EIO {
		t.Fatal(e)
	}
	ops, e := openSlave(o.c, n, 0)
	if e != 0 {
		t.Fatal(e)
	}
	if _, e := o.shown(10); e != linux.EAGAIN {
		t.Fatal(e)
	}
	ops.Release(nil)
	o.m.Put()
}

// blocking reads with VMIN and VTIME.
func TestMinAndTime(t *testing.T) {
	o := newOurs(t)
	o.s.UpdateFlags(linux.O_NONBLOCK, 0)
	k := o.get()
	k.Lflag &^= linux.ICANON | linux.ECHO
	set := func(vmin, vtime uint8) {
		k.Cc[linux.VMIN], k.Cc[linux.VTIME] = vmin, vtime
		o.set(linux.TCSETS, &k)
	}
	timed := func(n int) (string, time.Duration) {
		start := time.Now()
		b, e := o.read(n)
		if e != 0 {
			t.Error(e)
		}
		return string(b), time.Since(start)
	}
	feed := func(parts ...string) (fed chan struct{}) {
		fed = make(chan struct{})
		go func() {
			for _, p := range parts {
				time.Sleep(20 * time.Millisecond)
				f := vfs.NewFile(o.m.Ops, linux.O_RDWR)
				f.Ops.Write(caller.NewKernelCtx(), f, uio.Bytes([]byte(p)), 0)
			}
			close(fed)
		}()
		return fed
	}
	set(0, 0)
	least := time.Hour
	for try := 0; try < 20 && least > 250*time.Millisecond; try++ {
		s, d := timed(5)
		if s != "" {
			t.Error(s)
		}
		least = min(least, d)
	}
	if least > 250*time.Millisecond {
		t.Error(least)
	}
	set(3, 0)
	feed("a", "b", "cd")
	if s, _ := timed(10); s != "abcd" {
		t.Error(s)
	}
	set(0, 3)
	if s, d := timed(5); s != "" || d < 290*time.Millisecond {
		t.Error(s, d)
	}
	set(0, 255)
	feed("x")
	if s, d := timed(5); s != "x" || d > 25*time.Second {
		t.Error(s, d)
	}
	for try := 0; ; try++ {
		set(5, 3) // the time runs from the first byte
		fed := feed("p", "q")
		s, d := timed(10)
		if s == "p" && try < 20 { // where the machine stops for a while, the second is late
			<-fed
			set(1, 0)
			timed(1)
			continue
		}
		if s != "pq" || d < 310*time.Millisecond {
			t.Error(s, d)
		}
		break
	}
	o.s.UpdateFlags(linux.O_NONBLOCK, linux.O_NONBLOCK)
	set(1, 0)
	if _, e := o.read(5); e != linux.EAGAIN {
		t.Error(e)
	}
	o.s.UpdateFlags(linux.O_NONBLOCK, 0)
	go func() {
		time.Sleep(5 * time.Millisecond)
		o.c.SetInterrupted(true)
	}()
	if _, e := o.read(5); e != linux.ERESTARTSYS {
		t.Error(e)
	}
}

// Much output with a slow master, and much input with a slow reader, arrive whole.
func TestFlow(t *testing.T) {
	o := newOurs(t)
	o.s.UpdateFlags(linux.O_NONBLOCK, 0)
	o.m.UpdateFlags(linux.O_NONBLOCK, 0)
	k := o.get()
	k.Lflag &^= linux.ICANON | linux.ECHO | linux.ISIG
	k.Iflag, k.Oflag = 0, 0
	o.set(linux.TCSETS, &k)
	data := bytes.Repeat([]byte("0123456789abcdef"), 8192)
	for _, f := range [][2]*vfs.File{{o.s, o.m}, {o.m, o.s}} {
		var wg sync.WaitGroup
		wg.Add(1)
		go func() {
			defer wg.Done()
			if n, e := f[0].Ops.Write(caller.NewKernelCtx(), f[0], uio.Bytes(data), 0); n != len(data) || e != 0 {
				t.Error(n, e)
			}
		}()
		var got []byte
		b := make([]byte, 1000)
		for len(got) < len(data) {
			n, e := f[1].Ops.Read(o.c, f[1], uio.Bytes(b), 0)
			if e != 0 {
				t.Fatal(e)
			}
			got = append(got, b[:n]...)
		}
		wg.Wait()
		if !bytes.Equal(got, data) {
			t.Fatal("damaged")
		}
	}
}

func TestPacketModeLikeHost(t *testing.T) {
	x := newBoth(t)
	for _, m := range []interface {
		mctl(uint32, uint32) linux.Errno
	}{x.a, x.b} {
		if e := m.mctl(linux.TIOCPKT, 1); e != 0 {
			t.Fatal(e)
		}
	}
	one := func() {
		a, e := x.a.shown(100)
		var b []byte
		var f linux.Errno
		x.await(func() bool {
			x.b.settle()
			b, f = x.b.rd(x.b.m, 100)
			return f == e
		})
		if !bytes.Equal(a, b) || e != f {
			t.Fatalf("ours %q %v, host's %q %v", a, e, b, f)
		}
	}
	x.write("data")
	x.state()
	one()
	one()
	x.typeIn("\x13")
	x.state()
	one()
	x.typeIn("\x11")
	one()
	k := x.b.get()
	k.Iflag &^= linux.IXON
	x.set(linux.TCSETS, k)
	x.state()
	one()
	k.Iflag |= linux.IXON
	x.set(linux.TCSETS, k)
	one()
	x.a.ctl(linux.TCFLSH, 2)
	x.b.ctl(linux.TCFLSH, 2)
	x.state()
	one()
	one()
	if x.stop {
		t.Fatal(x.report)
	}
}

func TestConsole(t *testing.T) {
	var mu sync.Mutex
	var out bytes.Buffer
	gate := make(chan struct{}, 1000)
	c := NewConsole(func(p []byte) {
		<-gate
		mu.Lock()
		out.Write(p)
		mu.Unlock()
	})
	shown := func() string {
		mu.Lock()
		defer mu.Unlock()
		s := out.String()
		out.Reset()
		return s
	}
	f := c.File()
	k := caller.NewKernelCtx()
	for range 100 {
		gate <- struct{}{}
	}
	c.Input([]byte("ls\r"))
	b := make([]byte, 100)
	if n, e := f.Ops.Read(k, f, uio.Bytes(b), 0); e != 0 || string(b[:n]) != "ls\n" {
		t.Fatal(b[:n], e)
	}
	f.Ops.Write(k, f, uio.Bytes([]byte("a\nb\n")), 0)
	c.Flush()
	if s := shown(); s != "ls\r\na\r\nb\r\n" {
		t.Fatalf("%q", s)
	}
	// Stopped output waits for VSTART.
	c.Input([]byte("\x13"))
	done := make(chan struct{})
	go func() {
		k := caller.NewKernelCtx()
		f.Ops.Write(k, f, uio.Bytes([]byte("later")), 0)
		close(done)
	}()
	time.Sleep(3 * time.Millisecond)
	if s := shown(); s != "" {
		t.Fatalf("%q", s)
	}
	c.Input([]byte("\x11"))
	<-done
	c.Flush()
	if s := shown(); s != "later" {
		t.Fatalf("%q", s)
	}
	// A console that does not keep up blocks writers; nothing is lost.
	for len(gate) > 0 {
		<-gate
	}
	big := bytes.Repeat([]byte("x"), 5*outputSize)
	written := make(chan struct{})
	go func() {
		k := caller.NewKernelCtx()
		if n, e := f.Ops.Write(k, f, uio.Bytes(big), 0); n != len(big) || e != 0 {
			t.Error(n, e)
		}
		c.Flush()
		close(written)
	}()
	for range 100 {
		gate <- struct{}{}
	}
	<-written
	if s := shown(); s != string(big) {
		t.Fatal(len(s))
	}
	gate <- struct{}{}
	c.Input([]byte("begun"))
	c.EOF()
	for _, want := range []string{"begun", "", ""} {
		if n, e := f.Ops.Read(k, f, uio.Bytes(b), 0); string(b[:n]) != want || e != 0 {
			t.Fatal(n, e)
		}
	}
	// A hang-up ends what was opened as a serial line, not as the console.
	ops, e := c.open(k, linux.O_RDWR, true)
	if e != 0 {
		t.Fatal(e)
	}
	line := vfs.NewFile(ops, linux.O_RDWR)
	c.Hangup()
	if _, e := line.Ops.Write(k, line, uio.Bytes([]byte("x")), 0); e != linux.EIO {
		t.Fatal(e)
	}
	gate <- struct{}{}
	if _, e := f.Ops.Write(k, f, uio.Bytes([]byte("x")), 0); e != 0 {
		t.Fatal(e)
	}
}

func TestRawConsole(t *testing.T) {
	var out bytes.Buffer
	r := NewRawConsole(func(p []byte) { out.Write(p) })
	f := r.File()
	k := caller.NewKernelCtx()
	k.Mem = make(flat, 64)
	if _, e := f.Ops.Ioctl(k, f, linux.TCGETS, 0); e != linux.ENOTTY {
		t.Fatal(e)
	}
	data := bytes.Repeat([]byte("\x03raw\n\x04"), 50000)
	go func() {
		r.Input(data)
		r.EOF()
	}()
	var got []byte
	b := make([]byte, 5000)
	for {
		n, e := f.Ops.Read(k, f, uio.Bytes(b), 0)
		if e != 0 {
			t.Fatal(e)
		}
		if n == 0 {
			break
		}
		got = append(got, b[:n]...)
	}
	if !bytes.Equal(got, data) {
		t.Fatal("damaged", len(got))
	}
	if n, e := f.Ops.Write(k, f, uio.Bytes(data), 0); n != len(data) || e != 0 || !bytes.Equal(out.Bytes(), data) {
		t.Fatal(n, e)
	}
	f.UpdateFlags(linux.O_NONBLOCK, linux.O_NONBLOCK)
	if n, e := f.Ops.Read(k, f, uio.Bytes(b), 0); n != 0 || e != 0 {
		t.Fatal(n, e)
	}
}

func newFile(ops vfs.Ops) *vfs.File { return vfs.NewFile(ops, linux.O_RDWR|linux.O_NONBLOCK) }
