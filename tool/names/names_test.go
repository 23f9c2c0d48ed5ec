package names

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"hardtack/msg"
	"hardtack/msg/names"
	"hardtack/tool/fault"
)

// lines is a writer that a test can wait on.
type lines chan string

func (l lines) Write(b []byte) (int, error) { l <- string(b); return len(b), nil }

func (l lines) want(t *testing.T, what string) {
	t.Helper()
	select {
	case got := <-l:
		if !strings.Contains(got, what) {
			t.Errorf("said %q, want %q", got, what)
		}
	case <-time.After(time.Minute):
		t.Fatalf("nothing was said, want %q", what)
	}
}

func TestVerbs(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	path := t.TempDir() + "/names"
	var out bytes.Buffer
	if err := List(ctx, &out, path, ""); fault.Status(err) != fault.Input || !strings.Contains(err.Error(), "no name service runs") {
		t.Errorf("List without a service: %v", err)
	}
	said := make(lines, 10)
	served := make(chan error, 1)
	go func() { served <- Serve(ctx, said, path) }()
	said.want(t, "serving names at "+path)

	watched := make(lines, 10)
	go Watch(ctx, watched, path, "")
	watched.want(t, "# the above exist")
	c, err := names.Open(ctx, names.Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	value := names.FormatEndpoint(msg.Endpoint{Interface: "ping", Addrs: []string{"unix:/x\x1b"}})
	if _, err := c.Set(ctx, "service", value, 0); err != nil {
		t.Fatal(err)
	}
	watched.want(t, "+ service user=")
	if err := List(ctx, &out, path, "serv"); err != nil || !strings.Contains(out.String(), "ping at unix:/x?\n") {
		t.Errorf("List: %q, %v", out.String(), err)
	}
	out.Reset()
	if err := Get(ctx, &out, path, "service", false); err != nil || !strings.Contains(out.String(), "unix:/x?\n") {
		t.Errorf("Get: %q, %v", out.String(), err)
	}
	if err := Get(ctx, &out, path, "nobody", false); fault.Status(err) != fault.Input {
		t.Errorf("Get of nothing: %v", err)
	}
	if err := c.Delete(ctx, "service"); err != nil {
		t.Fatal(err)
	}
	watched.want(t, "- service")
	cancel()
	if err := <-served; err != nil {
		t.Errorf("Serve: %v", err)
	}
}
