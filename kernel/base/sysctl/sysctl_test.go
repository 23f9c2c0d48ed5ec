package sysctl

import (
	"slices"
	"sync"
	"sync/atomic"
	"testing"
)

func TestLater(t *testing.T) {
	var made atomic.Int32
	Later("late/below", func() []File {
		made.Add(1)
		return []File{Kept("late/below/b", 7, 0, 9, ""), Kept("late/below/deep/c", 1, 0, 9, "")}
	})
	AddDir("late/empty")
	Later("late", func() []File { return []File{Kept("late/a", 1, 0, 9, ""), Kept("late/below/d", 1, 0, 9, "")} })
	if !slices.Contains(Root().Names(), "late") {
		t.Fatalf("%q lacks late", Root().Names())
	}
	_, late := Root().Find("late")
	if got, want := late.Names(), []string{"a", "below", "empty"}; !slices.Equal(got, want) {
		t.Errorf("names %q, want %q", got, want)
	}
	_, below := late.Find("below")
	if n := made.Load(); n != 0 {
		t.Errorf("made %d times before anybody looked", n)
	}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if f, _ := below.Find("b"); f == nil {
				t.Error("b is not there")
			}
		})
	}
	all.Wait()
	if n := made.Load(); n != 1 {
		t.Errorf("made %d times, want once", n)
	}
	if got, want := below.Names(), []string{"b", "d", "deep"}; !slices.Equal(got, want) {
		t.Errorf("names %q, want %q", got, want)
	}
}
