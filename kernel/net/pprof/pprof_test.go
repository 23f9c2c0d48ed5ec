package pprof_test

import (
	"bufio"
	"crypto/rand"
	"io"
	"net/http"
	"strings"
	"testing"

	"hardtack/abi/linux"
	"hardtack/kernel/net/inet"
	"hardtack/kernel/net/pprof"
	"hardtack/kernel/net/sock"
	. "hardtack/kernel/net/socktest"
)

// A program of the machine reads a profile and the variables.
func TestServe(tt *testing.T) {
	t := New(tt)
	n := inet.New(inet.Config{Rand: rand.Reader})
	hello := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "hello") })
	if err := pprof.Serve(n, 6060, map[string]http.Handler{"/hello": hello}); err != nil {
		t.Fatal(err)
	}
	if err := pprof.Serve(n, 6060, nil); err == nil {
		t.Fatal("the port was given twice")
	}
	for path, want := range map[string]string{
		"/debug/pprof/goroutine?debug=1": "goroutine profile: total",
		"/debug/vars":                    `"memstats"`,
		"/hello":                         "hello",
	} {
		s, e := n.Socket(t.C, linux.AF_INET, linux.SOCK_STREAM, 0)
		t.OK(e, "socket")
		f := sock.NewFile(s, 0)
		t.OK(s.Connect(t.C, nil, In4(127, 0, 0, 1, 6060), false), "connect")
		t.Write(f, "GET "+path+" HTTP/1.0\r\n\r\n")
		var got strings.Builder
		for {
			s := t.Read(f, 4096)
			if s == "" {
				break
			}
			got.WriteString(s)
		}
		f.Put()
		r, err := http.ReadResponse(bufio.NewReader(strings.NewReader(got.String())), nil)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(r.Body)
		if r.StatusCode != 200 || !strings.Contains(string(body), want) {
			t.Errorf("%s: %s, %.200q", path, r.Status, body)
		}
	}
}
