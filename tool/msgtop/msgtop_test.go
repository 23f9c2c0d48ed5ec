package msgtop

import (
	"bytes"
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"hardtack/idl/ping"
	"hardtack/msg/debug"
)

type lines chan string

func (l lines) Write(b []byte) (int, error) {
	select {
	case l <- string(b):
	default:
	}
	return len(b), nil
}

func TestTopAndTrace(t *testing.T) {
	base, err := os.MkdirTemp("", "msgtop")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(base)
	t.Setenv("XDG_RUNTIME_DIR", base)
	stop, err := debug.Start()
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	a, b, err := ping.Pair(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	defer b.Close()
	exchange := func() {
		for range 100 {
			if err := a.SendPing(ctx, &ping.Ping{ClientID: 7}); err != nil {
				t.Fatal(err)
			}
			if _, err := b.Recv(ctx); err != nil {
				t.Fatal(err)
			}
		}
	}
	top := Top{Dir: debug.Directory()}
	rows, err := top.Look(ctx)
	if err != nil || len(rows) != 2 || rows[0].Out != 0 || rows[0].PID != os.Getpid() {
		t.Fatalf("first look: %+v, %v", rows, err)
	}
	exchange()
	if rows, err = top.Look(ctx); err != nil || len(rows) != 2 || rows[0].Out+rows[0].In <= 0 {
		t.Fatalf("second look: %+v, %v", rows, err)
	}
	var out bytes.Buffer
	if err := Print(&out, rows); err != nil || strings.Count(out.String(), "\n") != 3 || !strings.Contains(out.String(), "ping") {
		t.Errorf("printed %q, %v", out.String(), err)
	}

	said := make(lines, 10)
	tracing, end := context.WithCancel(ctx)
	traced := make(chan error, 1)
	go func() { traced <- Trace(tracing, said, debug.Directory(), Want{Interface: "ping"}) }()
	for done := false; !done; {
		exchange()
		select {
		case line := <-said:
			done = true
			if !strings.Contains(line, " ping ") || !strings.Contains(line, "client_id: 7") {
				t.Errorf("line %q", line)
			}
		case <-time.After(time.Millisecond):
		}
	}
	end()
	if err := <-traced; err != nil {
		t.Errorf("Trace: %v", err)
	}
	if err := Trace(ctx, said, debug.Directory(), Want{PID: 1 << 22}); err == nil {
		t.Error("a process that is not there was traced")
	}
}

func TestParseWant(t *testing.T) {
	for name, want := range map[string]Want{"ping": {Interface: "ping"}, "12": {PID: 12}, "12/3": {PID: 12, Conn: 3}} {
		if got, err := ParseWant(name); err != nil || got != want {
			t.Errorf("ParseWant(%q) = %+v, %v", name, got, err)
		}
	}
	for _, name := range []string{"12/", "12/x", "12/0", "ping/3"} {
		if got, err := ParseWant(name); err == nil {
			t.Errorf("ParseWant(%q) = %+v", name, got)
		}
	}
}
