package names

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// The test binary is also the programs that the tests start and kill.
func TestMain(m *testing.M) {
	if what := os.Getenv("NAMES_TEST_ROLE"); what != "" {
		os.Exit(role(what))
	}
	os.Exit(m.Run())
}

// role opens the service, does one thing, says so, and stays until its
// standard input ends.
func role(what string) int {
	ctx := context.Background()
	c, err := Open(ctx, Options{Path: os.Getenv("NAMES_TEST_PATH"), NoEmbed: what != "embed"})
	if err != nil {
		fmt.Println("open:", err)
		return 1
	}
	name := os.Getenv("NAMES_TEST_NAME")
	switch what {
	case "set", "embed":
		_, err = c.Set(ctx, name, []byte("of a child"), Replace)
	case "delete":
		err = c.Delete(ctx, name)
	}
	fmt.Println("done:", err)
	os.Stdin.Read(make([]byte, 1))
	return 0
}

// child starts a role, as another user if uid is not 0, and returns what it
// said.
func child(t *testing.T, what, path, name string, uid uint32) (*exec.Cmd, string) {
	t.Helper()
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), "NAMES_TEST_ROLE="+what, "NAMES_TEST_PATH="+path, "NAMES_TEST_NAME="+name)
	if uid != 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
	}
	if _, err := cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	buf := make([]byte, 4096)
	n, _ := out.Read(buf)
	return cmd, strings.TrimSpace(string(buf[:n]))
}

func testContext(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute) // machines may be slow
	t.Cleanup(cancel)
	return ctx
}

// testServer makes a server for all users in a directory of its own.
func testServer(t *testing.T) (*Server, string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "names")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "names")
	s, err := Listen(testContext(t), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s, path
}

func open(t *testing.T, path string) *Client {
	t.Helper()
	c, err := Open(testContext(t), Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func mustSet(t *testing.T, c *Client, name, value string) Entry {
	t.Helper()
	e, err := c.Set(testContext(t), name, []byte(value), 0)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestRequests(t *testing.T) {
	_, path := testServer(t)
	ctx := testContext(t)
	a, b := open(t, path), open(t, path)

	set := mustSet(t, a, "db.0", "first")
	if set.Name != "db.0" || set.UID != uint32(os.Getuid()) || set.PID != uint32(os.Getpid()) || set.Revision == 0 {
		t.Errorf("Set made %+v", set)
	}
	if got, err := b.Get(ctx, "db.0"); err != nil || !reflect.DeepEqual(got, set) {
		t.Errorf("Get: %+v, %v; set was %+v", got, err, set)
	}
	if _, err := b.Get(ctx, "nobody"); !errors.Is(err, ErrNotFound) {
		t.Errorf("Get of nothing: %v", err)
	}
	if _, err := b.Set(ctx, "db.0", nil, 0); !errors.Is(err, ErrExists) {
		t.Errorf("Set of a taken name: %v", err)
	}
	if _, err := b.Set(ctx, "db.0", []byte("second"), Replace); err != nil {
		t.Errorf("Set with Replace: %v", err)
	}
	mustSet(t, a, "db.1", "")
	mustSet(t, a, "db.x", "")
	mustSet(t, a, "dbase", "")
	for class, want := range map[string]int{"db": 2, "db.x": 1, "dbase": 1, "none": 0} {
		if n, err := b.Count(ctx, class); err != nil || n != want {
			t.Errorf("Count(%q) = %d, %v; want %d", class, n, err, want)
		}
	}
	list, err := b.List(ctx, "db.")
	if err != nil || len(list) != 3 || list[0].Name != "db.0" || string(list[0].Value) != "second" || list[2].Name != "db.x" {
		t.Errorf("List: %+v, %v", list, err)
	}
	if all, err := b.List(ctx, ""); err != nil || len(all) != 4 {
		t.Errorf("List of all: %+v, %v", all, err)
	}
	if err := b.Delete(ctx, "db.1"); err != nil { // the same user, another process
		t.Errorf("Delete: %v", err)
	}
	if err := b.Delete(ctx, "db.1"); !errors.Is(err, ErrNotFound) {
		t.Errorf("Delete of nothing: %v", err)
	}
	one, err := a.Set(ctx, "worker", nil, Sequence)
	two, err2 := b.Set(ctx, "worker", nil, Sequence)
	if err != nil || err2 != nil || one.Name == two.Name || Class(one.Name) != "worker" || Class(two.Name) != "worker" {
		t.Errorf("Sequence: %q %v, %q %v", one.Name, err, two.Name, err2)
	}
	// What b replaced is b's now.
	a.Close()
	if e, err := b.Get(ctx, "db.0"); err != nil || string(e.Value) != "second" {
		t.Errorf("after the first owner's end: %+v, %v", e, err)
	}
}

func TestInvalid(t *testing.T) {
	_, path := testServer(t)
	c := open(t, path)
	ctx := testContext(t)
	for _, name := range []string{"", ".a", "a.", "a..b", "a b", "ä", "a\x00", strings.Repeat("x", MaxName+1)} {
		if _, err := c.Set(ctx, name, nil, 0); !errors.Is(err, ErrInvalid) {
			t.Errorf("Set(%q): %v", name, err)
		}
	}
	if _, err := c.Set(ctx, "a", make([]byte, MaxValue+1), 0); !errors.Is(err, ErrInvalid) {
		t.Errorf("a long value: %v", err)
	}
	long := strings.Repeat("x", MaxName)
	value := strings.Repeat("y", MaxValue)
	mustSet(t, c, long, value)
	if e, err := c.Get(ctx, long); err != nil || string(e.Value) != value {
		t.Errorf("longest name and value: %v", err)
	}
	// The server refuses it too, and goes on.
	if _, err := c.call(ctx, packet{op: opSet, entry: Entry{Name: "a..b"}}); !errors.Is(err, ErrInvalid) {
		t.Errorf("the server, of a..b: %v", err)
	}
	if _, err := c.Set(ctx, long, nil, Sequence); !errors.Is(err, ErrInvalid) {
		t.Errorf("a sequence without room for a number: %v", err)
	}
}

// Waits do not hinder other requests on the same connection, and any number of
// them is pending at a time.
func TestManyInFlight(t *testing.T) {
	_, path := testServer(t)
	c, other := open(t, path), open(t, path)
	ctx := testContext(t)
	const n = 500
	var wg sync.WaitGroup
	for i := range n {
		wg.Add(1)
		go func() {
			defer wg.Done()
			name := fmt.Sprintf("late.%d", i)
			if e, err := c.WaitFor(ctx, name); err != nil || e.Name != name {
				t.Errorf("WaitFor(%s): %+v, %v", name, e, err)
			}
		}()
	}
	short, cancel := context.WithCancel(ctx)
	ended := make(chan error)
	go func() { _, err := c.WaitFor(short, "never"); ended <- err }()
	for i := range n {
		mustSet(t, other, fmt.Sprintf("late.%d", i), "")
	}
	wg.Wait()
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("a wait that was given up: %v", err)
	}
	if got, err := c.Count(ctx, "late"); err != nil || got != n {
		t.Errorf("Count = %d, %v", got, err)
	}
}

// next is an event, without those of the names that tests do not care for.
func next(t *testing.T, w Watcher) string {
	t.Helper()
	ev, err := w.Next(testContext(t))
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(fmt.Sprintf("%v %s %s", ev.Kind, ev.Entry.Name, ev.Entry.Value))
}

func want(t *testing.T, w Watcher, events ...string) {
	t.Helper()
	for _, e := range events {
		if got := next(t, w); got != e {
			t.Fatalf("event %q, want %q", got, e)
		}
	}
}

func TestWatch(t *testing.T) {
	_, path := testServer(t)
	a, b := open(t, path), open(t, path)
	ctx := testContext(t)
	mustSet(t, a, "s.1", "x")
	mustSet(t, a, "t.1", "x")
	w, err := b.Watch(ctx, "s.")
	if err != nil {
		t.Fatal(err)
	}
	want(t, w, "put s.1 x", "synced")
	mustSet(t, a, "s.2", "y")
	want(t, w, "put s.2 y")
	a.Set(ctx, "s.2", []byte("z"), Replace)
	want(t, w, "put s.2 z")
	a.Delete(ctx, "s.1")
	want(t, w, "gone s.1 x")
	a.Close() // s.2 dies with it
	want(t, w, "gone s.2 z")
	w.Close()
	if _, err := w.Next(ctx); !errors.Is(err, ErrClosed) {
		t.Errorf("Next after Close: %v", err)
	}
}

// A watcher that does not read gets the last state of each name, however many
// events there were.
func TestSlowWatcher(t *testing.T) {
	_, path := testServer(t)
	a, b := open(t, path), open(t, path)
	ctx := testContext(t)
	w, err := b.Watch(ctx, "")
	if err != nil {
		t.Fatal(err)
	}
	want(t, w, "synced")
	for i := range 5000 {
		if _, err := a.Set(ctx, "n."+fmt.Sprint(i%10), []byte(fmt.Sprint(i)), Replace); err != nil {
			t.Fatal(err)
		}
	}
	last := map[string]string{}
	for n, final := 0, 0; final < 10; n++ {
		ev, err := w.Next(ctx)
		if err != nil {
			t.Fatalf("%v; until then %v", err, last)
		}
		last[ev.Entry.Name] = string(ev.Entry.Value)
		if "499"+strings.TrimPrefix(ev.Entry.Name, "n.") == last[ev.Entry.Name] {
			final++
		}
		if n > 5000 {
			t.Fatal("too many events")
		}
	}
}

// A connection that reads nothing is told at last that its watch has ended, and
// costs the server a bounded queue.
func TestLaggingWatch(t *testing.T) {
	s := newStore()
	out, busy := newOutbox(), newOutbox()
	w, _ := s.join(1, 1, out)
	o, _ := s.join(1, 2, busy)
	if err := s.watch(w, 7, ""); err != nil {
		t.Fatal(err)
	}
	for i := range 3 * maxConnEvents {
		if _, err := s.set(o, "n", []byte{byte(i)}, Replace); err != nil {
			t.Fatal(err)
		}
	}
	got := out.take(nil)
	if len(got) != maxConnEvents+2 { // opOK, the events, and the failure
		t.Fatalf("%d packets are queued", len(got))
	}
	if lag := got[len(got)-1]; lag.op != opError || code(lag.arg) != codeLagged || lag.id != 7 {
		t.Errorf("the last one is %+v", lag)
	}
	if len(s.watches) != 0 || w.user.watches != 0 {
		t.Error("the watch is still there")
	}
}

func TestDeathOfOwner(t *testing.T) {
	_, path := testServer(t)
	c := open(t, path)
	ctx := testContext(t)
	w, err := c.Watch(ctx, "child")
	if err != nil {
		t.Fatal(err)
	}
	want(t, w, "synced")
	cmd, said := child(t, "set", path, "child", 0)
	if said != "done: <nil>" {
		t.Fatal(said)
	}
	want(t, w, "put child of a child")
	cmd.Process.Signal(syscall.SIGKILL)
	want(t, w, "gone child of a child")
	if _, err := c.Get(ctx, "child"); !errors.Is(err, ErrNotFound) {
		t.Errorf("Get after the owner's death: %v", err)
	}
}

// A name is its first user's, dead or alive.
func TestUsers(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("changing the user needs root")
	}
	_, path := testServer(t)
	const alice, bob = 54321, 54322
	cmd, said := child(t, "set", path, "bank", alice)
	if said != "done: <nil>" {
		t.Fatal(said)
	}
	refused := func(what string) {
		t.Helper()
		if _, said := child(t, what, path, "bank", bob); !strings.Contains(said, "belongs to user 54321") {
			t.Errorf("another user's %s: %s", what, said)
		}
	}
	refused("set")
	refused("delete")
	cmd.Process.Kill()
	cmd.Wait()
	c := open(t, path)
	for { // until the server has seen the death
		if _, err := c.Get(testContext(t), "bank"); errors.Is(err, ErrNotFound) {
			break
		}
	}
	refused("set")
	if _, said := child(t, "delete", path, "bank", alice); said != "done: <nil>" {
		t.Fatalf("the user's own delete: %s", said)
	}
	if _, said := child(t, "set", path, "bank", bob); said != "done: <nil>" {
		t.Errorf("set of a name that was freed: %s", said)
	}
}

// Programs serve themselves when nobody does; when the one that served is
// killed, another takes over, and entries, waits and watches go on.
func TestTakeOver(t *testing.T) {
	dir, err := os.MkdirTemp("", "names")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	path := filepath.Join(dir, "d", "names")
	cmd, said := child(t, "embed", path, "server", 0)
	if said != "done: <nil>" {
		t.Fatal(said)
	}
	a, b := open(t, path), open(t, path)
	if a.Embedded() || b.Embedded() {
		t.Fatal("there are two servers")
	}
	ctx := testContext(t)
	mustSet(t, a, "a", "1")
	mustSet(t, b, "b", "2")
	w, err := b.Watch(ctx, "")
	if err != nil {
		t.Fatal(err)
	}
	want(t, w, "put a 1", "put b 2", "put server of a child", "synced")
	waited := make(chan error)
	go func() { _, err := b.WaitFor(ctx, "late"); waited <- err }()

	cmd.Process.Signal(syscall.SIGKILL)
	want(t, w, "gone server of a child") // and nothing of a and b
	if !a.Embedded() && !b.Embedded() {
		t.Error("nobody serves")
	}
	if e, err := a.WaitFor(ctx, "b"); err != nil || string(e.Value) != "2" {
		t.Errorf("b after the take-over: %+v, %v", e, err)
	}
	if e, err := b.WaitFor(ctx, "a"); err != nil || string(e.Value) != "1" {
		t.Errorf("a after the take-over: %+v, %v", e, err)
	}
	mustSet(t, a, "late", "")
	if err := <-waited; err != nil {
		t.Errorf("a wait over the take-over: %v", err)
	}

	// A server of its own takes the embedded one's place.
	s, err := Listen(ctx, path)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := b.WaitFor(ctx, "a"); err != nil {
		t.Errorf("a at the new server: %v", err)
	}
	if a.Embedded() || b.Embedded() {
		t.Error("an embedded server still runs")
	}
	if _, err := Listen(ctx, path); !errors.Is(err, errTaken) {
		t.Errorf("a second server: %v", err)
	}
}

// An embedded server may end before it has said that it gives way.
func TestTakeOverWithoutAnswer(t *testing.T) {
	path := filepath.Join(t.TempDir(), "names")
	lock, err := lockFile(path + ".lock")
	if err != nil {
		t.Fatal(err)
	}
	l, err := listenAt(path, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	asked := make(chan op, 1)
	go func() {
		defer close(asked)
		defer lock.Close()
		defer l.Close()
		conn, err := l.AcceptUnix()
		if err != nil {
			return
		}
		defer conn.Close()
		buf := make([]byte, maxPacket+1)
		for range 2 {
			n, err := conn.Read(buf)
			if err != nil {
				return
			}
			p, err := decode(buf[:n])
			if err != nil {
				return
			}
			if p.op != opHello {
				asked <- p.op
				return
			}
			conn.Write((&packet{id: p.id, op: opOK, arg: 1, entry: Entry{Revision: wireVersion}}).append(nil))
		}
	}()
	s, err := Listen(testContext(t), path)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if what := <-asked; what != opYield {
		t.Errorf("request %v of a server that is to give way", what)
	}
}

// An entry that the next server does not take is lost, and its owner told.
func TestLost(t *testing.T) {
	s, path := testServer(t)
	lost := make(chan error, 1)
	c, err := Open(testContext(t), Options{Path: path, NoEmbed: true, OnLost: func(name string, err error) { lost <- err }})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	mustSet(t, c, "mine", "")
	s.Close()
	l, err := listenAt(path, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	server, err := l.AcceptUnix()
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	buf := make([]byte, maxPacket)
	for _, answer := range []packet{{op: opOK}, failure(0, ErrDenied)} {
		if _, err := server.Read(buf); err != nil {
			t.Fatal(err)
		}
		server.Write(answer.append(nil))
	}
	if err := <-lost; !errors.Is(err, ErrDenied) {
		t.Errorf("OnLost: %v", err)
	}
}

func TestNoServer(t *testing.T) {
	path := filepath.Join(t.TempDir(), "names")
	if _, err := Open(testContext(t), Options{Path: path, NoEmbed: true}); !errors.Is(err, ErrNoServer) {
		t.Errorf("Open: %v", err)
	}
	if _, err := Open(testContext(t), Options{Path: strings.Repeat("x/", 100) + "names", NoEmbed: true}); err == nil {
		t.Error("a path that is too long was opened")
	}
}

// Whatever a peer sends, the server ends that connection with a reason, and
// goes on.
func TestHostile(t *testing.T) {
	s, path := testServer(t)
	hello := string((&packet{id: 1, op: opHello, entry: Entry{Revision: wireVersion}}).append(nil))
	for what, packets := range map[string][]string{
		"short":        {"x"},
		"no hello":     {string((&packet{id: 1, op: opGet, entry: Entry{Name: "a"}}).append(nil))},
		"version":      {string((&packet{id: 1, op: opHello, entry: Entry{Revision: 99}}).append(nil))},
		"two hellos":   {hello, hello},
		"unknown":      {hello, string((&packet{id: 2, op: 77}).append(nil))},
		"an answer":    {hello, string((&packet{id: 2, op: opOK}).append(nil))},
		"long":         {hello, string(make([]byte, maxPacket+100))},
		"lengths":      {hello, string((&packet{id: 2, op: opGet, entry: Entry{Name: "abc"}}).append(nil)[:headerSize+1])},
		"flags":        {hello, string((&packet{id: 2, op: opSet, arg: 0x80, entry: Entry{Name: "abc"}}).append(nil))},
		"a user":       {hello, string((&packet{id: 2, op: opSet, entry: Entry{Name: "abc", UID: 1}}).append(nil))},
		"number twice": {hello, string((&packet{id: 2, op: opWait, entry: Entry{Name: "abc"}}).append(nil)), string((&packet{id: 2, op: opWait, entry: Entry{Name: "abc"}}).append(nil))},
	} {
		c, err := net.Dial("unixpacket", path)
		if err != nil {
			t.Fatal(err)
		}
		c.SetDeadline(time.Now().Add(time.Minute))
		for _, p := range packets {
			c.Write([]byte(p))
		}
		var last packet
		for {
			buf := make([]byte, maxPacket)
			n, err := c.Read(buf)
			if err != nil || n == 0 {
				break
			}
			if last, err = decode(buf[:n]); err != nil {
				t.Errorf("%s: the server's packet: %v", what, err)
			}
		}
		if last.op != opError || last.id != 0 || !errors.Is(last.err(), errProtocol) {
			t.Errorf("%s: the last words are %+v", what, last)
		}
		c.Close()
	}
	// One that asks for much and reads nothing.
	c := open(t, path)
	for i := range 400 {
		mustSet(t, c, fmt.Sprintf("big.%d", i), strings.Repeat("x", MaxValue))
	}
	deaf, err := net.Dial("unixpacket", path)
	if err != nil {
		t.Fatal(err)
	}
	deaf.Write([]byte(hello))
	deaf.SetWriteDeadline(time.Now().Add(100 * time.Millisecond))
	for i := range 1000 {
		if _, err := deaf.Write((&packet{id: uint64(2 + i), op: opList}).append(nil)); err != nil {
			break
		}
	}
	if list, err := c.List(testContext(t), "big"); err != nil || len(list) != 400 {
		t.Errorf("others' list: %d, %v", len(list), err)
	}
	// Its end frees it, as does the server's.
	s.Close()
	deaf.Close()
}

// What a connection holds is bounded, and all of it goes when it ends.
func TestLimits(t *testing.T) {
	s := newStore()
	o, _ := s.join(7, 1, newOutbox())
	other, _ := s.join(7, 2, newOutbox())
	for i := range maxConnEntries {
		if _, err := s.set(o, fmt.Sprintf("n.%d", i), nil, 0); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.set(o, "more", nil, 0); !errors.Is(err, ErrLimit) {
		t.Errorf("one entry more: %v", err)
	}
	if _, err := s.set(o, "n.1", nil, Replace); err != nil {
		t.Errorf("an entry again: %v", err)
	}
	for i := range maxConnWaits {
		if err := s.wait(o, uint64(i), "none"); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.wait(o, 1<<40, "none"); !errors.Is(err, ErrLimit) {
		t.Errorf("one wait more: %v", err)
	}
	for i := range maxConnWatches {
		if err := s.watch(o, 1<<41+uint64(i), "none"); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.watch(o, 1<<42, "none"); !errors.Is(err, ErrLimit) {
		t.Errorf("one watch more: %v", err)
	}
	s.leave(o)
	if s.entries.Len() != 0 || len(s.waits) != 0 || len(s.watches) != 0 || len(s.classes) != 0 || len(s.reserved) != MaxReserved {
		t.Errorf("left: %d entries, %d waits, %d watches, %d classes, %d reserved",
			s.entries.Len(), len(s.waits), len(s.watches), len(s.classes), len(s.reserved))
	}
	if u := s.users[7]; u.conns != 1 || u.entries != 0 || u.waits != 0 || u.watches != 0 {
		t.Errorf("the user: %+v", u)
	}
	for name := range s.reserved {
		if err := s.delete(other, name); err != nil {
			t.Fatal(err)
		}
	}
	s.leave(other)
	if len(s.users) != 0 {
		t.Error("the user is still there")
	}
}
