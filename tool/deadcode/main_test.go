package main

import (
	"slices"
	"strings"
	"testing"
)

func TestCheck(t *testing.T) {
	e, err := parse("# comment\nhardtack/msg/... a library\nhardtack/a.F tests\nhardtack/gone.G tests\n\n")
	if err != nil {
		t.Fatal(err)
	}
	got := e.check([]byte("x.go:1:2 hardtack/msg/wire.T.M\nx.go:3:4 hardtack/a.F\nx.go:5:6 hardtack/a.FF\nx.go:7:8 hardtack/msgs.F\n"))
	slices.Sort(got)
	want := []string{"an exception that nothing needs: hardtack/gone.G", "x.go:5:6: nothing uses hardtack/a.FF", "x.go:7:8: nothing uses hardtack/msgs.F"}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s", strings.Join(got, "\n"))
	}
	if _, err := parse("hardtack/a.F\n"); err == nil {
		t.Error("an exception needs a reason")
	}
}
