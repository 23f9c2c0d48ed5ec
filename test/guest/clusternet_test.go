package guest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Programs of three kernels reach each other over TCP/IP, with 10 MB each way. Connections to
// one that is killed are reset, and nobody sends in another's name.
func TestClusterNetwork(t *testing.T) {
	needGuest(t)
	t.Parallel()
	repo, dir := repository(t), t.TempDir()
	for _, name := range []string{"runner", "helper"} {
		if err := goBuild(repo, filepath.Join(dir, name), "./test/guest/clusternet"); err != nil {
			t.Fatal(err)
		}
	}
	tool, root := command(t, repo, dir), guestRoot(t, dir, "runner", "helper")
	if err := goBuild(repo, filepath.Join(root, "sbin", "cluster"), "./cmd/cluster"); err != nil {
		t.Fatal(err)
	}
	flags := []string{"--cluster", "cpus=1,memory=224M"}
	for range 2 {
		flags = append(flags, "--cluster", "cpus=1,memory=128M")
	}
	if os.Getenv("HARDTACK_COUNT") != "" { // instructions, for docs/clusters.md
		out, err := inGuest(t, tool, root, 10*time.Minute, append(flags, "--icount"), "/runner", "count")
		t.Logf("%v\n%s", err, tail(out, 20))
		return
	}
	out, err := inGuest(t, tool, root, 10*time.Minute, flags, "/runner")
	out = strings.ReplaceAll(out, "\r", "")
	for _, text := range []string{"from 0 to 1\n", "from 1 to 0\n", "from 2 to 1\n", "names\n", "after a restart\n", "the end\n"} {
		if !strings.Contains(out, text) {
			t.Errorf("the console lacks %q", text)
		}
	}
	if err != nil || strings.Contains(out, "WRONG") || t.Failed() {
		t.Fatalf("%v\n%s", err, tail(out, 100))
	}
}
