package debug

import (
	"context"
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"hardtack/idl/ping"
)

func start(t *testing.T) (dir string, a, b *ping.Conn) {
	t.Helper()
	base, err := os.MkdirTemp("", "debug")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(base) })
	t.Setenv("XDG_RUNTIME_DIR", base)
	stop, err := Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	if a, b, err = ping.Pair(testContext(t), nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close(); b.Close() })
	return Directory(), a, b
}

func testContext(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func TestLook(t *testing.T) {
	dir, a, b := start(t)
	ctx := testContext(t)
	pids, err := Processes(dir)
	if err != nil || !slices.Equal(pids, []int{os.Getpid()}) {
		t.Fatalf("Processes: %v, %v", pids, err)
	}
	for i := range 200 {
		if err := a.SendPing(ctx, &ping.Ping{MsgID: uint32(i)}); err != nil {
			t.Fatal(err)
		}
		if _, err := b.Recv(ctx); err != nil {
			t.Fatal(err)
		}
	}
	s, err := LookAt(ctx, dir, os.Getpid())
	if err != nil || s.PID != os.Getpid() || len(s.Connections) != 2 {
		t.Fatalf("LookAt: %+v, %v", s, err)
	}
	sent, arrived := uint64(0), uint64(0)
	for _, c := range s.Connections {
		if c.Interface != "ping" {
			t.Errorf("%+v", c)
		}
		sent += c.Sent
		arrived += c.Arrived
	}
	if sent != 200 || arrived == 0 || arrived > 200 {
		t.Errorf("%d were sent, %d arrived: %+v", sent, arrived, s.Connections)
	}
	// A process that has ended leaves a socket behind, which goes.
	gone := filepath.Join(dir, strconv.Itoa(1<<22+1)) // more than a pid can be
	if err := os.WriteFile(gone, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if pids, err := Processes(dir); err != nil || len(pids) != 1 {
		t.Errorf("Processes: %v, %v", pids, err)
	}
	if _, err := os.Stat(gone); !os.IsNotExist(err) {
		t.Error("the socket of a process that has ended is still there")
	}
}

func TestTrace(t *testing.T) {
	dir, a, b := start(t)
	ctx, cancel := context.WithCancel(testContext(t))
	defer cancel()
	traced := make(chan Traced, 100)
	for _, req := range []Request{{Interface: "ping"}, {Interface: "another"}} {
		go func() {
			for r, err := range Trace(ctx, dir, os.Getpid(), req) {
				if err != nil {
					t.Error(err)
					return
				}
				if req.Interface != "ping" {
					t.Errorf("traced %+v", r)
				}
				traced <- r
			}
		}()
	}
	// Until the tracer is there, messages pass unseen.
	var out, in *Traced
	for i := uint32(0); out == nil || in == nil; i++ {
		if err := a.SendPing(ctx, &ping.Ping{ClientID: 7, MsgID: i}); err != nil {
			t.Fatal(err)
		}
		if _, err := b.Recv(ctx); err != nil {
			t.Fatal(err)
		}
		select {
		case r := <-traced:
			if r.Out {
				out = &r
			} else {
				in = &r
			}
		case <-time.After(time.Millisecond):
		}
	}
	for _, r := range []*Traced{out, in} {
		if r.Interface != "ping" || !strings.Contains(r.Text, "client_id: 7") {
			t.Errorf("traced %+v", r)
		}
	}
	cancel()
	for _, err := range Trace(ctx, dir, os.Getpid(), Request{}) {
		t.Errorf("traced when nobody wants it any more: %v", err)
	}
	// The owners are left alone again.
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		hub.mu.Lock()
		n := len(hub.askers)
		hub.mu.Unlock()
		if n == 0 {
			break
		}
		if time.Now().After(end) {
			t.Fatal("the tracer stays")
		}
	}
}

// Askers that say nonsense, or nothing, or too much, get nothing.
func TestBadAskers(t *testing.T) {
	dir, _, _ := start(t)
	path := filepath.Join(dir, strconv.Itoa(os.Getpid()))
	for _, what := range []string{"\n", "x\n", "{\n", "[1,2]\n", `{"Trace":7}` + "\n", strings.Repeat("x", 100000)} {
		c, err := net.Dial("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		c.SetDeadline(time.Now().Add(time.Minute))
		c.Write([]byte(what))
		var s Snapshot
		if err := json.NewDecoder(c).Decode(&s); err == nil {
			t.Errorf("%.20q was answered with %+v", what, s)
		}
		c.Close()
	}
	if _, err := LookAt(testContext(t), dir, os.Getpid()); err != nil {
		t.Error(err)
	}
}
