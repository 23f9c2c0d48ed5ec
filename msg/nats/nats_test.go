package nats

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"hardtack/msg"
	"hardtack/msg/names"
)

// The test binary is also the peer that the tests start and kill.
func TestMain(m *testing.M) {
	if what := os.Getenv("NATS_TEST_ROLE"); what != "" {
		os.Exit(role(what))
	}
	os.Exit(m.Run())
}

func role(what string) int {
	ctx := context.Background()
	fail := func(err error) int { fmt.Println("error:", err); return 1 }
	n, err := Open(ctx, Options{URL: os.Getenv("NATS_TEST_URL")})
	if err != nil {
		return fail(err)
	}
	switch what {
	case "listen":
		l, err := n.Listen(ctx, "x", "child")
		if err != nil {
			return fail(err)
		}
		fmt.Println("ready")
		k, err := l.Accept(ctx)
		if err != nil {
			return fail(err)
		}
		for {
			frame, _, err := k.Recv(ctx)
			if err != nil {
				return fail(err)
			}
			if err := k.Send(ctx, frame, nil); err != nil {
				return fail(err)
			}
		}
	case "name":
		b, err := n.Bucket(ctx)
		if err != nil {
			return fail(err)
		}
		if _, err := b.Set(ctx, "child", []byte("value"), 0); err != nil {
			return fail(err)
		}
		fmt.Println("ready")
		select {}
	}
	return 1
}

func child(t *testing.T, what, url string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), "NATS_TEST_ROLE="+what, "NATS_TEST_URL="+url)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	buf := make([]byte, 1000)
	n, _ := out.Read(buf)
	if said := strings.TrimSpace(string(buf[:n])); said != "ready" {
		t.Fatalf("the child said %q", said)
	}
	return cmd
}

func testContext(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute) // machines may be slow
	t.Cleanup(cancel)
	return ctx
}

// testServer runs a server that the test can stop and start at one address.
type testServer struct {
	t    testing.TB
	opts server.Options
	srv  *server.Server
	url  string
}

func newServer(t testing.TB) *testServer {
	s := &testServer{t: t, opts: server.Options{
		Host: "127.0.0.1", Port: freePort(t), NoLog: true, NoSigs: true,
		JetStream: true, StoreDir: t.TempDir(), JetStreamMaxMemory: 64 << 20, JetStreamMaxStore: 64 << 20,
	}}
	s.url = fmt.Sprintf("nats://127.0.0.1:%d", s.opts.Port)
	s.start()
	t.Cleanup(s.stop)
	return s
}

func (s *testServer) start() {
	opts := s.opts
	srv, err := server.NewServer(&opts)
	if err != nil {
		s.t.Fatal(err)
	}
	srv.Start()
	if !srv.ReadyForConnections(20 * time.Second) {
		s.t.Fatal("the NATS server does not start")
	}
	s.srv = srv
}

func (s *testServer) stop() {
	if s.srv != nil {
		s.srv.Shutdown()
		s.srv.WaitForShutdown()
		s.srv = nil
	}
}

func freePort(t testing.TB) int {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

func open(t testing.TB, url string) *Node {
	t.Helper()
	n, err := Open(testContext(t), Options{URL: url, Lease: 2 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { n.Close() })
	return n
}

// pair makes a link from a to b.
func pair(t testing.TB, a, b *Node) (client, serving msg.Link) {
	t.Helper()
	ctx := testContext(t)
	l, err := b.Listen(ctx, "test", "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	if client, err = a.Dial(ctx, l.Addr()); err != nil {
		t.Fatal(err)
	}
	if serving, err = l.Accept(ctx); err != nil {
		t.Fatal(err)
	}
	return client, serving
}

// stream sends n numbered frames of random lengths and checks that they arrive
// once and in order, then the end.
func stream(ctx context.Context, from, to msg.Link, n int, seed uint64) error {
	sent := make(chan error, 1)
	go func() {
		rnd := rand.New(rand.NewPCG(seed, 1))
		for i := range n {
			if err := from.Send(ctx, frame(rnd, i), nil); err != nil {
				sent <- fmt.Errorf("frame %d: %w", i, err)
				return
			}
		}
		sent <- nil
	}()
	rnd := rand.New(rand.NewPCG(seed, 1))
	for i := range n {
		got, _, err := to.Recv(ctx)
		if err != nil {
			return fmt.Errorf("receiving frame %d: %w", i, err)
		}
		if want := frame(rnd, i); string(got) != string(want) {
			return fmt.Errorf("frame %d: %d bytes, number %d; want %d bytes", i, len(got), binary.LittleEndian.Uint64(got), len(want))
		}
	}
	return <-sent
}

func frame(rnd *rand.Rand, i int) []byte {
	n := 8 + rnd.IntN(200)
	switch rnd.IntN(50) {
	case 0:
		n = msg.MaxFrame
	case 1:
		n = 8 + rnd.IntN(msg.MaxFrame-8)
	}
	b := make([]byte, n)
	binary.LittleEndian.PutUint64(b, uint64(i))
	b[n-1] ^= byte(i)
	return b
}

// both streams in both directions at once.
func both(t *testing.T, a, b msg.Link, n int) {
	t.Helper()
	ctx := testContext(t)
	back := make(chan error, 1)
	go func() { back <- stream(ctx, b, a, n, 2) }()
	if err := stream(ctx, a, b, n, 1); err != nil {
		t.Error("there: ", err)
	}
	if err := <-back; err != nil {
		t.Error("back: ", err)
	}
}

func TestLink(t *testing.T) {
	s := newServer(t)
	client, serving := pair(t, open(t, s.url), open(t, s.url))
	both(t, client, serving, 1000)
	ctx := testContext(t)

	if err := client.Send(ctx, make([]byte, msg.MaxFrame+1), nil); !errors.Is(err, msg.ErrTooLarge) {
		t.Errorf("a frame that is too long: %v", err)
	}
	if err := client.Send(ctx, []byte("x"), []*os.File{os.Stdin}); !errors.Is(err, msg.ErrNoCaps) {
		t.Errorf("a file: %v", err)
	}
	// What was sent before the end arrives before it.
	for i := range 100 {
		if err := client.Send(ctx, []byte{byte(i)}, nil); err != nil {
			t.Fatal(err)
		}
	}
	client.Close()
	if _, _, err := client.Recv(ctx); !errors.Is(err, msg.ErrClosed) {
		t.Errorf("Recv after Close: %v", err)
	}
	for i := range 100 {
		if got, _, err := serving.Recv(ctx); err != nil || got[0] != byte(i) {
			t.Fatalf("frame %d: %v, %v", i, got, err)
		}
	}
	if _, _, err := serving.Recv(ctx); err != io.EOF {
		t.Errorf("after the end: %v", err)
	}
	serving.Close()
}

func TestNobodyListens(t *testing.T) {
	s := newServer(t)
	n := open(t, s.url)
	if _, err := n.Dial(testContext(t), "nats:nobody"); err == nil || !strings.Contains(err.Error(), "nobody listens at nats:nobody") {
		t.Errorf("Dial: %v", err)
	}
	for _, addr := range []string{"", "unix:x", "nats:", "nats:a b", "nats:>", "nats:*", "nats:.a"} {
		if _, err := n.Dial(testContext(t), addr); err == nil {
			t.Errorf("Dial(%q) succeeded", addr)
		}
	}
	l, err := n.Listen(testContext(t), "x", "closing")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	if _, err := l.Accept(testContext(t)); !errors.Is(err, msg.ErrClosed) {
		t.Errorf("Accept after Close: %v", err)
	}
	if len(n.links) != 0 {
		t.Errorf("%d links are left", len(n.links))
	}
}

// A receiver that takes nothing stops the sender at the window, and only until
// it takes something.
func TestBackPressure(t *testing.T) {
	s := newServer(t)
	client, serving := pair(t, open(t, s.url), open(t, s.url))
	for _, size := range []int{10, msg.MaxFrame} {
		ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
		n := 0
		for ; ; n++ {
			if err := client.Send(ctx, make([]byte, size), nil); errors.Is(err, context.DeadlineExceeded) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
		}
		cancel()
		if n > windowFrames || n*size > windowBytes {
			t.Errorf("%d frames of %d bytes were sent before anything was taken", n, size)
		}
		ctx = testContext(t)
		for range n {
			if _, _, err := serving.Recv(ctx); err != nil {
				t.Fatal(err)
			}
		}
	}
	both(t, client, serving, 100)
}

// Packets that get lost, any of them, are sent again.
func TestLoss(t *testing.T) {
	s := newServer(t)
	a, b := open(t, s.url), open(t, s.url)
	var lost atomic.Int64
	for _, n := range []*Node{a, b} {
		n.drop = func([]byte) bool {
			if rand.IntN(20) == 0 {
				lost.Add(1)
				return true
			}
			return false
		}
	}
	client, serving := pair(t, a, b)
	both(t, client, serving, 200)
	go client.Close()
	if _, _, err := serving.Recv(testContext(t)); err != io.EOF {
		t.Errorf("the end: %v", err)
	}
	if lost.Load() < 5 {
		t.Errorf("only %d packets were lost", lost.Load())
	}
}

// The server stops and starts again while frames are on their way.
func TestServerRestart(t *testing.T) {
	s := newServer(t)
	client, serving := pair(t, open(t, s.url), open(t, s.url))
	stop := make(chan struct{})
	var restarts sync.WaitGroup
	restarts.Go(func() {
		for range 3 {
			select {
			case <-stop:
				return
			case <-time.After(50 * time.Millisecond):
			}
			s.stop()
			time.Sleep(50 * time.Millisecond)
			s.start()
		}
	})
	ctx := testContext(t)
	for round := range 10 {
		back := make(chan error, 1)
		go func() { back <- stream(ctx, serving, client, 100, uint64(round)) }()
		if err := stream(ctx, client, serving, 100, uint64(round)); err != nil {
			t.Fatalf("round %d there: %v", round, err)
		}
		if err := <-back; err != nil {
			t.Fatalf("round %d back: %v", round, err)
		}
		time.Sleep(40 * time.Millisecond)
	}
	close(stop)
	restarts.Wait()
}

// A killed peer is the end of its links.
func TestPeerKilled(t *testing.T) {
	s := newServer(t)
	cmd := child(t, "listen", s.url)
	n := open(t, s.url)
	ctx := testContext(t)
	l, err := n.Dial(ctx, "nats:child")
	if err != nil {
		t.Fatal(err)
	}
	l.Send(ctx, []byte("hello"), nil)
	if got, _, err := l.Recv(ctx); err != nil || string(got) != "hello" {
		t.Fatalf("echo: %q, %v", got, err)
	}
	time.Sleep(time.Duration(100+rand.IntN(100)) * time.Millisecond) // at any moment between two pings
	cmd.Process.Signal(syscall.SIGKILL)
	killed := time.Now()
	if _, _, err := l.Recv(ctx); err != io.EOF {
		t.Errorf("Recv from a killed peer: %v", err)
	}
	t.Logf("noticed after %v", time.Since(killed).Round(time.Millisecond))
	if err := l.Send(ctx, []byte("x"), nil); !errors.Is(err, msg.ErrPeerClosed) {
		t.Errorf("Send to a killed peer: %v", err)
	}
	l.Close()
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.links) != 0 || len(n.peers) != 0 {
		t.Errorf("%d links and %d peers are left", len(n.links), len(n.peers))
	}
}

// A link to a process that has forgotten it ends.
func TestForgotten(t *testing.T) {
	s := newServer(t)
	a, b := open(t, s.url), open(t, s.url)
	client, serving := pair(t, a, b)
	b.remove(serving.(*link)) // as if it had lingered for long enough
	ctx := testContext(t)
	client.Send(ctx, []byte("x"), nil)
	if _, _, err := client.Recv(ctx); err != io.EOF {
		t.Errorf("Recv: %v", err)
	}
}

// Without a URL the first process serves, and when it ends the next one does.
func TestEmbedded(t *testing.T) {
	opts := Options{Listen: fmt.Sprintf("127.0.0.1:%d", freePort(t)), Dir: t.TempDir(), Lease: 2 * time.Second}
	ctx := testContext(t)
	var nodes []*Node
	for range 3 {
		n, err := Open(ctx, opts)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { n.Close() })
		nodes = append(nodes, n)
	}
	if !nodes[0].Serving() || nodes[1].Serving() || nodes[2].Serving() {
		t.Fatal("not just the first one serves")
	}
	bucket, err := nodes[1].Bucket(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := bucket.Set(ctx, "kept", []byte("v"), 0); err != nil {
		t.Fatal(err)
	}
	client, serving := pair(t, nodes[1], nodes[2])
	both(t, client, serving, 200)
	nodes[0].Close()
	both(t, client, serving, 200)
	if !nodes[1].Serving() && !nodes[2].Serving() {
		t.Error("nobody serves")
	}
	other, err := nodes[2].Bucket(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if e, err := other.WaitFor(ctx, "kept"); err != nil || string(e.Value) != "v" {
		t.Errorf("a name after its server's end: %+v, %v", e, err)
	}
	// Others need the secret.
	if n, err := Open(ctx, Options{URL: "nats://" + opts.Listen}); err == nil {
		n.Close()
		t.Error("a connection without the secret was let in")
	}
	n, err := Open(ctx, Options{URL: nodes[1].URL()})
	if err != nil {
		t.Fatalf("with the secret: %v", err)
	}
	n.Close()
}

func TestBucket(t *testing.T) {
	s := newServer(t)
	a, b := open(t, s.url), open(t, s.url)
	ctx := testContext(t)
	one, err := a.Bucket(ctx)
	if err != nil {
		t.Fatal(err)
	}
	two, err := b.Bucket(ctx)
	if err != nil {
		t.Fatal(err)
	}
	w, err := two.Watch(ctx, "db")
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	next := func(want string) {
		t.Helper()
		ev, err := w.Next(ctx)
		if got := strings.TrimSpace(fmt.Sprintf("%v %s %s", ev.Kind, ev.Entry.Name, ev.Entry.Value)); err != nil || got != want {
			t.Fatalf("event %q, %v; want %q", got, err, want)
		}
	}
	next("synced")
	if _, err := two.Get(ctx, "db.1"); !errors.Is(err, names.ErrNotFound) {
		t.Errorf("Get of nothing: %v", err)
	}
	waited := make(chan error, 1)
	go func() { _, err := two.WaitFor(ctx, "db.1"); waited <- err }()
	if _, err := one.Set(ctx, "db.1", []byte("x"), 0); err != nil {
		t.Fatal(err)
	}
	next("put db.1 x")
	if err := <-waited; err != nil {
		t.Errorf("WaitFor: %v", err)
	}
	if e, err := two.Get(ctx, "db.1"); err != nil || string(e.Value) != "x" || e.UID != names.NoUser {
		t.Errorf("Get: %+v, %v", e, err)
	}
	if _, err := two.Set(ctx, "db.1", nil, names.Replace); !errors.Is(err, names.ErrExists) {
		t.Errorf("Set of another's name: %v", err)
	}
	if _, err := one.Set(ctx, "db.1", nil, 0); !errors.Is(err, names.ErrExists) {
		t.Errorf("Set again without Replace: %v", err)
	}
	if _, err := one.Set(ctx, "db.1", []byte("y"), names.Replace); err != nil {
		t.Errorf("Set again: %v", err)
	}
	next("put db.1 y")
	if err := two.Delete(ctx, "db.1"); !errors.Is(err, names.ErrDenied) {
		t.Errorf("Delete of another's name: %v", err)
	}
	for _, n := range []string{"db.2", "other"} {
		if _, err := one.Set(ctx, n, nil, 0); err != nil {
			t.Fatal(err)
		}
	}
	next("put db.2")
	first, err := one.Set(ctx, "seq", nil, names.Sequence)
	if err != nil || names.Class(first.Name) != "seq" || first.Name == "seq" {
		t.Errorf("Sequence: %+v, %v", first, err)
	}
	if n, err := two.Count(ctx, "db"); err != nil || n != 2 {
		t.Errorf("Count = %d, %v", n, err)
	}
	if list, err := two.List(ctx, ""); err != nil || len(list) != 4 || list[0].Name != "db.1" {
		t.Errorf("List: %+v, %v", list, err)
	}
	if err := one.Delete(ctx, "db.1"); err != nil {
		t.Errorf("Delete: %v", err)
	}
	next("gone db.1 y")
	// Entries go on over the lease, and end with their directory.
	time.Sleep(3 * time.Second)
	if _, err := two.Get(ctx, "db.2"); err != nil {
		t.Errorf("after more than a lease: %v", err)
	}
	one.Close()
	next("gone db.2")
	if _, err := one.Set(ctx, "late", nil, 0); !errors.Is(err, names.ErrClosed) {
		t.Errorf("Set after Close: %v", err)
	}
}

// The names of a killed process are free at once, and gone from watches when
// the lease is over.
func TestBucketOfKilled(t *testing.T) {
	s := newServer(t)
	cmd := child(t, "name", s.url)
	n := open(t, s.url)
	ctx := testContext(t)
	b, err := n.Bucket(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if e, err := b.Get(ctx, "child"); err != nil || string(e.Value) != "value" {
		t.Fatalf("Get: %+v, %v", e, err)
	}
	w, err := b.Watch(ctx, "child")
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if ev, err := w.Next(ctx); err != nil || ev.Kind != names.Put {
		t.Fatalf("%+v, %v", ev, err)
	}
	cmd.Process.Signal(syscall.SIGKILL)
	cmd.Wait()
	if _, err := b.Get(ctx, "child"); !errors.Is(err, names.ErrNotFound) {
		t.Errorf("Get after the kill: %v", err)
	}
	for {
		ev, err := w.Next(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if ev.Kind == names.Gone {
			break
		}
	}
	if _, err := b.Set(ctx, "child", nil, 0); err != nil {
		t.Errorf("Set of a dead process's name: %v", err)
	}
}

// A process is not alive because the server passed a question on to it just before it
// saw its end; one that is only slow is.
func TestAliveLost(t *testing.T) {
	s := newServer(t)
	n := open(t, s.url)
	ask := func(process string, answered int) bool {
		t.Helper()
		sub, err := n.nc.SubscribeSync(n.subject("p", process, "ping"))
		if err != nil {
			t.Fatal(err)
		}
		sub.AutoUnsubscribe(answered)
		n.nc.Flush()
		return n.alive(testContext(t), process)
	}
	if ask(randomID(), 1) {
		t.Error("one that has heard one question and gone is alive")
	}
	if !ask(randomID(), 1000) {
		t.Error("one that hears and does not answer is not alive")
	}
}

// Whatever arrives for a link or listener, nothing panics, and what is wrong
// ends the link.
func FuzzPackets(f *testing.F) {
	for _, p := range []packet{
		{kind: kindData, seq: 1, payload: []byte("hello")},
		{kind: kindData, seq: 2, ack: 1, done: 1, payload: []byte("again")},
		{kind: kindEnd, seq: 2, ack: 3, done: 3},
		{kind: kindAck, ack: 2, done: 1},
		{kind: kindMissed, ack: 1},
		{kind: kindRefuse, payload: []byte("no")},
		{kind: kindAccept, payload: []byte(strings.Repeat("a", 2*idLen))},
	} {
		b := p.append(nil)
		f.Add(append(append([]byte{byte(len(b))}, b...), b...), true)
		f.Add(append([]byte{byte(len(b))}, b...), false)
	}
	f.Fuzz(func(t *testing.T, data []byte, accepted bool) {
		n := &Node{
			process: randomID(), kick: make(chan struct{}, 1), links: map[string]*link{},
			peers: map[string]*presence{}, drop: func([]byte) bool { return true },
		}
		l := newLink(n, peerID{n.process, randomID()}, "nats:x")
		if err := n.add(l); err != nil {
			t.Fatal(err)
		}
		if accepted {
			l.accept(peerID{randomID(), randomID()})
			for range 3 {
				l.Send(context.Background(), []byte("data"), nil)
			}
		}
		taken := uint64(0)
		done, cancel := context.WithCancel(context.Background())
		cancel()
		for len(data) > 0 {
			size := min(int(data[0]), len(data)-1)
			b := data[1 : 1+size]
			data = data[1+size:]
			p, err := decode(b)
			if err != nil {
				continue
			}
			if back := p.append(nil); string(back) != string(b) {
				t.Fatalf("%x is decoded as %x", b, back)
			}
			l.receive(p)
			if _, _, err := l.Recv(done); err == nil {
				taken++
			}
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		if taken != l.taken || l.done > l.acked || l.acked > l.sent || len(l.kept) != len(l.sizes) || l.err == nil && len(l.kept) != int(l.sent-l.done) {
			t.Fatalf("taken %d; %+v", taken, l)
		}
	})
}
