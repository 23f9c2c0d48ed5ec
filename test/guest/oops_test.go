package guest

import (
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A Go panic in a system call kills the process and nobody else, unless a lock may be
// held or the machine was told to stop.
func TestOops(t *testing.T) {
	needGuest(t)
	t.Parallel()
	repo, dir := repository(t), t.TempDir()
	if err := goBuild(repo, filepath.Join(dir, "oops"), "./test/guest/oops"); err != nil {
		t.Fatal(err)
	}
	tool := command(t, repo, dir)
	root := guestRoot(t, dir, "oops")
	for _, c := range []struct {
		name, how string
		flags     []string
		stops     bool
		want      []string // in the console's text
	}{
		{name: "kill", how: "kill", want: []string{
			"as another user: the write returned operation not permitted",
			"panic: signal: killed", "nil: signal: killed", "index: signal: killed",
			"another word: the write returned invalid argument",
			"the neighbour says hello", "oopses: 6, <nil>",
			// The report: the reason, the call, the stack.
			"kernel: oops 2: panic: runtime error: invalid memory address or nil pointer dereference",
			"kernel: oops 3: panic: runtime error: index out of range [5] with length 3",
			"is killed; it was in pwrite64[0x3 ", "main.provoke(", "hardtack/kernel/syscall.Do",
		}},
		{name: "a lock", how: "lock", stops: true, want: []string{
			"kernel: a panic while a lock may be held, by main.provoke", "panic: asked for, with a lock", "goroutine "}},
		{name: "a lock further out", how: "position", stops: true, want: []string{
			"kernel: a panic while a lock may be held, by hardtack/kernel/syscall.writeFile", "panic: asked for"}},
		{name: "stop", how: "panic", flags: []string{"--panic", "stop"}, stops: true, want: []string{"panic: asked for", "goroutine "}},
	} {
		t.Run(c.name, func(t *testing.T) {
			out, err := inGuest(t, tool, root, 2*time.Minute, append([]string{"--memory", "128M"}, c.flags...), "/oops", c.how)
			if c.stops != (err != nil) {
				t.Errorf("the machine ended with %v", err)
			}
			out = strings.ReplaceAll(out, "\r", "")
			for _, want := range c.want {
				if !strings.Contains(out, want) {
					t.Errorf("the console lacks %q", want)
				}
			}
			if c.stops && strings.Contains(out, "signal: killed") {
				t.Error("the machine went on")
			}
			if t.Failed() {
				t.Log(tail(out, 150))
			}
		})
	}
}
