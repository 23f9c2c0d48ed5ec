package interop

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"testing"

	"hardtack/idl/ping"
	"hardtack/idl/shapes"
	"hardtack/msg"
	"hardtack/msg/names"
)

// C programs ask the name service, and are found by it.
func TestNames(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	prog := program(t, "names_peer")
	path := filepath.Join(t.TempDir(), "names")
	env := []string{names.PathVariable + "=" + path, "STREAM_NAMES=1"}
	ask := func(args ...string) string {
		t.Helper()
		return start(t, env, prog, args...).ended(t)
	}
	if p := start(t, env, prog, "get", "a"); true {
		p.line(t, "open: no such name") // none serves yet
	}
	s, err := names.Listen(ctx, path)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	d, err := names.Open(ctx, names.Options{Path: path, NoEmbed: true})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()

	if _, err := d.Set(ctx, "go.1", []byte("from Go"), 0); err != nil {
		t.Fatal(err)
	}
	if got, want := ask("get", "go.1"), fmt.Sprintf("from Go by %d", pid); got != want {
		t.Errorf("get: %q, not %q", got, want)
	}
	if got := ask("get", "none"); got != `no such name (no such name: "none")` && got[:12] != "no such name" {
		t.Errorf("get of what is not there: %q", got)
	}
	if got := ask("wait", "none", "20"); got[:12] != "no such name" {
		t.Errorf("wait in vain: %q", got)
	}
	if got := ask("hold", "go.1", "x"); got[:10] != "name taken" {
		t.Errorf("set of what is taken: %q", got)
	}
	if got := ask("hold", "no name", "x"); got[:10] != "not a name" {
		t.Errorf("set of what is no name: %q", got)
	}
	if got := ask("count", "go"); got != "1" {
		t.Errorf("count: %q", got)
	}

	// A name that a C program holds is seen, and gone when the program is killed.
	waits := start(t, env, prog, "wait", "c", "-1")
	h := startHeld(t, env, prog, "hold", "c", "from C")
	h.line(t, "set")
	if got, want := waits.ended(t), fmt.Sprintf("from C by %d", h.cmd.Process.Pid); got != want {
		t.Errorf("wait: %q, not %q", got, want)
	}
	w, err := d.Watch(ctx, "c")
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	for _, want := range []names.EventKind{names.Put, names.Gone} {
		for {
			e, err := w.Next(ctx)
			if err != nil {
				t.Fatal(want, err)
			}
			if e.Kind == want && e.Entry.Name == "c" {
				break
			}
		}
		h.cmd.Process.Kill()
	}

	// Services of either language are found by programs of the other.
	stream := program(t, "stream", "shapes")
	const n = 300
	opts := &msg.Options{Resolver: names.Resolver(d)}
	c := start(t, env, stream, "server", "svc/c", strconv.Itoa(n), "50")
	c.line(t, "ready")
	conn, err := shapes.Connect(ctx, "svc/c", opts)
	if err != nil {
		t.Fatal(err)
	}
	if err := streamBoth(ctx, conn, n, 50, ""); err != nil {
		t.Fatal(err)
	}
	conn.Close()
	c.ended(t)

	early := start(t, env, stream, "client", "svc/go", strconv.Itoa(n), "0") // it waits for the name
	g, err := shapes.Export(ctx, "svc/go", opts)
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	if conn, err = g.Accept(ctx); err != nil {
		t.Fatal(err)
	}
	if err := streamBoth(ctx, conn, n, 0, ""); err != nil {
		t.Fatal(err)
	}
	early.ended(t)
	conn.Close()

	// The wrong interface is told with both names, before there is a connection.
	p, err := ping.Export(ctx, "svc/ping", opts)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	wrong := start(t, env, stream, "client", "svc/ping", "1", "0")
	if err := wrong.cmd.Wait(); err == nil || !contains(wrong.err.String(), `interface mismatch (this end speaks "shapes"`, `the peer "ping"`) {
		t.Errorf("mismatch: %v, %s", err, wrong.err.String())
	}
}

// A C program takes up an end that it is sent, serves on it, and gives it back:
// what had arrived comes along, and nothing is lost.
func TestAdopt(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	const pings = 100
	s := start(t, nil, program(t, "adopter", "shapes", "ping"), "adopter", strconv.Itoa(pings))
	s.line(t, "ready")
	c, err := shapes.Connect(ctx, "adopter", nil)
	if err != nil {
		t.Fatal(err)
	}
	here, there, err := ping.Pair(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer here.Close()
	sent, answered := uint32(0), uint32(0)
	trip := func(n int, serve func() error) {
		t.Helper()
		for range n {
			if err := here.Send(ctx, &ping.Ping{ClientID: 1, MsgID: sent}); err != nil {
				t.Fatal(err)
			}
			sent++
			if serve != nil {
				if err := serve(); err != nil {
					t.Fatal(err)
				}
			}
			m, err := here.Recv(ctx)
			if err != nil {
				t.Fatal(err)
			}
			if p, ok := m.(*ping.Pong); !ok || p.MsgID != answered {
				t.Fatalf("%v instead of pong %d", m, answered)
			}
			answered++
		}
	}
	const rounds = 5
	for range rounds {
		end, err := there.End()
		if err != nil {
			t.Fatal(err)
		}
		for range 7 { // these travel in the ring
			if err := here.Send(ctx, &ping.Ping{ClientID: 1, MsgID: sent}); err != nil {
				t.Fatal(err)
			}
			sent++
		}
		if err := c.Send(ctx, &shapes.Caps{Second: msg.Cap{End: end}}); err != nil {
			t.Fatal(err)
		}
		trip(pings-7, nil) // the answers of the seven come first
		for range 7 {
			m, err := here.Recv(ctx)
			if err != nil || m.(*ping.Pong).MsgID != answered {
				t.Fatal(m, err)
			}
			answered++
		}
		m, err := c.Recv(ctx)
		if err != nil {
			t.Fatal(err)
		}
		caps, ok := m.(*shapes.Caps)
		if !ok || caps.Second.End == nil {
			t.Fatalf("received %v", m)
		}
		if there, err = ping.Adopt(caps.Second.End, nil); err != nil {
			t.Fatal(err)
		}
		trip(70, func() error { // more than the ring has slots
			m, err := there.Recv(ctx)
			if err != nil {
				return err
			}
			p, ok := m.(*ping.Ping)
			if !ok {
				return fmt.Errorf("received %v", m)
			}
			return there.Send(ctx, &ping.Pong{ClientID: 1, MsgID: p.MsgID})
		})
	}
	c.Close()
	if got, want := s.ended(t), fmt.Sprintf("%d ends", rounds); got != want {
		t.Errorf("%q, not %q", got, want)
	}
	there.Close()
	if _, err := here.Recv(ctx); !errors.Is(err, msg.ErrPeerClosed) {
		t.Errorf("after the end: %v", err)
	}
}
