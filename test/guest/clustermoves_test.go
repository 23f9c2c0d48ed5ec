package guest

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// TestClusterMoves has processors and memory move between kernels while tasks run in both.
func TestClusterMoves(t *testing.T) {
	needGuest(t)
	t.Parallel()
	repo, dir := repository(t), t.TempDir()
	tool := command(t, repo, dir)
	for _, name := range []string{"first", "follows"} {
		if err := goBuild(repo, filepath.Join(dir, name), "./test/guest/clustermoves"); err != nil {
			t.Fatal(err)
		}
	}
	root := guestRoot(t, dir, "first", "follows")
	flags := []string{"--cluster", "cpus=4,memory=192M", "--cluster", "cpus=2,memory=192M,init=/follows"}
	out, err := inGuest(t, tool, root, 9*time.Minute, flags, "/first")
	out = strings.ReplaceAll(out, "\r", "")
	if err != nil || strings.Contains(out, "WRONG") || strings.Contains(out, " lacks ") || strings.Contains(out, "panic") {
		t.Fatalf("%v\n%s", err, tail(out, 100))
	}
	own := regexp.MustCompile(`\[1\] [^\n]*\n`).ReplaceAllString(out, "")
	for _, line := range []string{
		"at first online 0-3 present 0-3 possible 0-5, 4 directories, nproc 4, cpuinfo 4",
		"cores 2 0 1: <nil>",
		"2 workers, 2 Ps, wrong sums: 0, goes on: true",
		"events: offline@cpu3 remove@cpu3 offline@cpu2 remove@cpu2",
		"then online 0-1 present 0-1 possible 0-5, 2 directories, nproc 2, cpuinfo 2",
		"cores 4 0 1: write /proc/hardtack/clusters: numerical result out of range",
		"cores 1 0 1: write /proc/hardtack/clusters: numerical result out of range",
		"cluster 0: the cluster has no processor to give but its first",
		"later online 0-2 present 0-2 possible 0-5, 3 directories, nproc 3, cpuinfo 3",
		"cores 1 0 1: write /proc/hardtack/clusters: no such device",
		"back online 0-3 present 0-3 possible 0-5, 4 directories, nproc 4, cpuinfo 4",
		"cores 1 1 0: <nil>",
		"5 workers, 5 Ps, wrong sums: 0, goes on: true",
		"0 running lives 1 cpus 4 ",
		"1 running lives 5 cpus 2 ",
		"memory 32M 0 1: <nil>", "memory 32M 1 0: <nil>", "memory 16M 0 1: <nil>",
		"1 running lives 5 cpus 2 memory 160 MiB",
		"memory 1G 0 1: write /proc/hardtack/clusters: cannot allocate memory",
		"cluster 0: the cluster has no whole pieces of free memory left to give",
		"apart: true",
		"the end",
	} {
		if !strings.Contains(own, line) {
			t.Errorf("the console lacks %q", line)
		}
	}
	for _, line := range []string{"[1] 2 workers", "[1] 4 workers", "[1] 5 workers", "[1] 3 workers", "[1] now online 0-4 present 0-4 possible 0-5, 5 directories, nproc 5, cpuinfo 5"} {
		if !strings.Contains(out, line) {
			t.Errorf("the console lacks %q", line)
		}
	}
	if t.Failed() {
		t.Log(tail(out, 100))
	}
}
