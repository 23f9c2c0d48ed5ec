package guest

import (
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Processes of three kernels have rings in common: they talk, write nonsense into them, and die,
// as do kernels; and nothing is left of the rings.
func TestClusterRings(t *testing.T) {
	needGuest(t)
	t.Parallel()
	repo, dir := repository(t), t.TempDir()
	for _, name := range []string{"runner", "helper"} {
		if err := goBuild(repo, filepath.Join(dir, name), "./test/guest/clusterrings"); err != nil {
			t.Fatal(err)
		}
	}
	if err := goBuild(repo, filepath.Join(dir, "anywhere"), "./examples/anywhere"); err != nil {
		t.Fatal(err)
	}
	tool, root := command(t, repo, dir), guestRoot(t, dir, "runner", "helper", "anywhere")
	if err := goBuild(repo, filepath.Join(root, "sbin", "cluster"), "./cmd/cluster"); err != nil {
		t.Fatal(err)
	}
	flags := []string{"--cluster", "cpus=1,memory=224M"}
	for range 2 {
		flags = append(flags, "--cluster", "cpus=1,memory=128M")
	}
	out, err := inGuest(t, tool, root, 15*time.Minute, flags, "/runner")
	out = strings.ReplaceAll(out, "\r", "")
	for _, text := range []string{"talks\n", "anywhere\n", "hostile\n", "bells\n", "copies\n", "ends\n", "storm\n", "moves\n", "the end\n"} {
		if !strings.Contains(out, text) {
			t.Errorf("the console lacks %q", text)
		}
	}
	if err != nil || strings.Contains(out, "WRONG") || t.Failed() {
		t.Fatalf("%v\n%s", err, tail(out, 100))
	}
}
