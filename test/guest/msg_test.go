package guest

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// channelTests are tests of typed channels, and which of them run in the guest:
// all, or a choice where the others say nothing more about a kernel.
var channelTests = []struct {
	pkg, run string
	flags    []string
}{
	{pkg: "msg", run: "UMP|Caps|End|Caller|Channels|Rebind|Kill"},
	// It counts on both ends being on one processor, and the kernel keeps no thread on one.
	{pkg: "msg", run: "Hand", flags: []string{"--cpus", "1"}},
	{pkg: "msg/names", run: "Test"},
	{pkg: "examples/pingpong", run: "Go"},
	{pkg: "examples/workers", run: "Test"},
	{pkg: "examples/names", run: "Test"},
	{pkg: "idl/bank", run: "Scenarios", flags: []string{"--cpus", "1"}},
	{pkg: "task/conn", run: "Test"},
}

// TestChannels runs the tests of typed channels between processes in a guest: the
// same binaries as on Linux.
func TestChannels(t *testing.T) {
	needGuest(t)
	t.Parallel()
	repo, dir := repository(t), t.TempDir()
	tool := command(t, repo, dir)
	var names []string
	for _, c := range channelTests {
		name := strings.ReplaceAll(c.pkg, "/", "-") + ".test"
		build := exec.Command("go", "test", "-c", "-o", filepath.Join(dir, name), "./"+c.pkg)
		build.Dir, build.Env = repo, append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("go test -c %s: %v\n%s", c.pkg, err, out)
		}
		names = append(names, name)
	}
	root := guestRoot(t, dir, slices.Compact(slices.Clone(names))...)
	for i, c := range channelTests {
		t.Run(c.pkg, func(t *testing.T) {
			flags := append([]string{"--memory", "1G"}, c.flags...)
			out, err := inGuest(t, tool, root, 10*time.Minute, flags, "/"+names[i], "-test.run", c.run)
			if err != nil || !strings.Contains(out, "PASS") {
				t.Errorf("%v\n%s", err, tail(out, 100))
			}
		})
	}
}
