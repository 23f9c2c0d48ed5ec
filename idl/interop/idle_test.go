package interop

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"hardtack/idl/ping"
)

// A C server with many connections that are idle does nothing, and each of them
// works again when it is used. bench/msg/crowd has ten thousand.
func TestIdle(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	const many = 600
	s := start(t, nil, program(t, "pingpong", "ping"), "server", "idle", "1000000")
	s.line(t, "ready")
	var all []*ping.Conn
	trip := func(c *ping.Conn, i int) {
		t.Helper()
		if err := c.Send(ctx, &ping.Ping{MsgID: uint32(i)}); err != nil {
			t.Fatal(i, err)
		}
		if m, err := c.Recv(ctx); err != nil || m.(*ping.Pong).MsgID != uint32(i) {
			t.Fatal(i, m, err)
		}
	}
	for i := range many {
		c, err := ping.Connect(ctx, "idle", nil)
		if err != nil {
			t.Fatal(i, err)
		}
		defer c.Close()
		all = append(all, c)
		trip(c, i)
	}
	busy := func() time.Duration { // that the server's one thread has run
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/schedstat", s.cmd.Process.Pid))
		var ns int64
		if _, serr := fmt.Sscan(strings.TrimSpace(string(text)), &ns); err != nil || serr != nil {
			t.Skip("no times of other processes here")
		}
		return time.Duration(ns)
	}
	least := time.Hour
	for range 20 {
		before := busy()
		time.Sleep(50 * time.Millisecond)
		least = min(least, busy()-before)
	}
	if least > time.Millisecond {
		t.Errorf("with %d idle connections the server runs for %v of 50 ms", many, least)
	}
	for range 6 { // more than the wakes that go by the socket
		for i, c := range all {
			trip(c, i)
		}
	}
	for i, c := range all { // one that is busy does not keep the others from being heard
		if i%7 == 0 {
			trip(all[0], i)
		}
		trip(c, i)
	}
}
