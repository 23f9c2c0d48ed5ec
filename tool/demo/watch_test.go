package main

import (
	"bytes"
	"testing"
)

func TestWatch(t *testing.T) {
	var out bytes.Buffer
	w := newWatch(&out, "up")
	isSeen := func() bool {
		select {
		case <-w.seen:
			return true
		default:
			return false
		}
	}
	for _, s := range []string{"not up\n", "u", "p", " yet\nupper\n", "u"} {
		w.Write([]byte(s))
		if isSeen() {
			t.Fatalf("seen after %q", out.String())
		}
	}
	w.Write([]byte("p\r\nup\n"))
	if !isSeen() || out.String() != "not up\nup yet\nupper\nup\r\nup\n" {
		t.Fatalf("%v, %q", isSeen(), out.String())
	}
}
