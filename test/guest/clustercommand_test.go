package guest

import (
	"strings"
	"testing"
	"time"
)

// The host's command lists the clusters of a machine with a name.
func TestClusterCommand(t *testing.T) {
	m := newMachines(t)
	m.start("pair", "--cluster", "cpus=1,memory=224M", "--cluster", "cpus=1,memory=128M")
	state := func(want string) {
		t.Helper()
		out := ""
		for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
			if out, _, _ = m.run("", "cluster", "ls", "pair"); strings.Contains("\n"+out, "\n"+want) {
				return
			}
		}
		t.Fatalf("cluster ls: %q, want %q", out, want)
	}
	state("1 running lives 1 cpus 1 memory 128 MiB")
}
