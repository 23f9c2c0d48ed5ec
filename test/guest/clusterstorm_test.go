package guest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestClusterStorm starts and kills programs in other clusters, moves processors and memory and
// ends clusters, all at random and at once; afterwards all is where it was. The long form,
// with HARDTACK_STORM, takes ten minutes a machine, or as many seconds as it says.
func TestClusterStorm(t *testing.T) {
	needGuest(t)
	t.Parallel()
	repo, dir := repository(t), t.TempDir()
	tool := command(t, repo, dir)
	for _, name := range []string{"storm", "work", "greedy"} {
		if err := goBuild(repo, filepath.Join(dir, name), "./test/guest/clusterstorm"); err != nil {
			t.Fatal(err)
		}
	}
	root := guestRoot(t, dir, "storm", "work", "greedy")
	if err := goBuild(repo, filepath.Join(root, "sbin", "cluster"), "./cmd/cluster"); err != nil {
		t.Fatal(err)
	}
	seconds, limit := "4", 9*time.Minute
	if long := os.Getenv("HARDTACK_STORM"); long != "" {
		if seconds = "600"; len(long) > 1 {
			seconds = long
		}
		limit = 40 * time.Minute
	}
	for _, m := range []struct {
		name  string
		flags []string
		more  []string
	}{
		{"two", []string{"--cluster", "cpus=2,memory=256M", "--cluster", "cpus=2,memory=192M"}, nil},
		{"four", []string{"--cluster", "cpus=2,memory=256M", "--cluster", "cpus=1,memory=128M", "--cluster", "cpus=2,memory=128M", "--cluster", "cpus=1,memory=128M"}, []string{"exhaust"}},
	} {
		t.Run(m.name, func(t *testing.T) {
			out, err := inGuest(t, tool, root, limit, m.flags, append([]string{"/storm", seconds}, m.more...)...)
			out = strings.ReplaceAll(out, "\r", "")
			if err != nil || strings.Contains(out, "WRONG") || strings.Contains(out, "panic") || strings.Contains(out, "hangs") || !strings.Contains(out, "\nthe end") {
				t.Fatalf("%v\n%s", err, tail(out, 100))
			}
			if m.more != nil && !strings.Contains(out, "programs ran in cluster 2 while cluster 1 was out of memory") {
				t.Error(tail(out, 50))
			}
			for line := range strings.Lines(out) {
				if strings.HasPrefix(line, "programs ") || strings.HasPrefix(line, "frames ") || strings.Contains(line, "out of memory") {
					t.Log(strings.TrimSpace(line))
				}
			}
		})
	}
}
