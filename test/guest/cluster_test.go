package guest

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// Two kernels in one machine: neither reaches the other's memory, their monitors answer,
// and the first one kills, stops and restarts the second.
func TestClusters(t *testing.T) {
	needGuest(t)
	t.Parallel()
	repo, dir := repository(t), t.TempDir()
	roots := func(dir, pkg string, programs ...string) string {
		for _, name := range programs {
			if err := goBuild(repo, filepath.Join(dir, name), "./test/guest/"+pkg); err != nil {
				t.Fatal(err)
			}
		}
		return guestRoot(t, dir, programs...)
	}
	tool := command(t, repo, dir)
	root := roots(dir, "cluster", "first", "other", "panics", "hangs", "ticks", "survivor", "bystander", "many", "reaches", "awaits")
	second := func(cpus, program string) []string {
		return []string{"--cluster", "cpus=1,memory=160M", "--cluster", "cpus=" + cpus + ",memory=96M,init=" + program}
	}
	run := func(t *testing.T, command []string, flags []string, want ...string) string {
		t.Helper()
		out, err := inGuest(t, tool, root, 10*time.Minute, flags, command...)
		out = "\n" + strings.ReplaceAll(out, "\r", "")
		for _, text := range want {
			if !strings.Contains(out, text) {
				t.Errorf("the console lacks %q", text)
			}
		}
		if err != nil || t.Failed() {
			t.Fatalf("%v\n%s", err, tail(out, 100))
		}
		return out
	}
	for _, cpus := range []string{"1", "2"} {
		t.Run(cpus+" CPUs", func(t *testing.T) {
			out := run(t, []string{"/first"}, second(cpus, "/other"),
				"[1] reaching out: write /proc/hardtack/oops: operation not permitted\n",
				"cluster 0 reaches cluster 1", "kill and again", "stop and again", "restart and again", "the end")
			// Lines of the other cluster's may stand within one of this one's.
			own := regexp.MustCompile(`\[1\] [^\n]*\n`).ReplaceAllString(out, "")
			if want := "\nreaching out: write /proc/hardtack/oops: operation not permitted\n"; !strings.Contains(own, want) {
				t.Errorf("the console lacks %q\n%s", want, tail(out, 100))
			}
			for _, bad := range []string{"foreign pages: 1", "was taken", "lacks", " took ", "panic"} {
				if strings.Contains(out, bad) {
					t.Errorf("the console has %q\n%s", bad, tail(out, 100))
				}
			}
		})
	}
	t.Run("reach", func(t *testing.T) {
		run(t, []string{"/awaits"}, second("1", "/reaches"), "[1] cluster 1 reaches cluster 0", "cluster 1 has ended")
	})
	if os.Getenv("HARDTACK_STORM") != "" {
		t.Run("1000 restarts", func(t *testing.T) {
			out := run(t, []string{"/first", "1000"}, second("1", "/other"), "1000 restarts, frames", "the end")
			t.Log(tail(out, 3))
			if strings.Contains(out, "lacks") {
				t.Errorf("%s", tail(out, 100))
			}
		})
	}
	t.Run("panic", func(t *testing.T) {
		run(t, []string{"/bystander", "3"}, second("2", "/panics,restart=always"),
			"[1] cluster 1 panics", "[1] panic: asked for, with a lock", "kernel: cluster 1 panicked", "cluster 0 goes on")
	})
	for _, cpus := range []string{"1", "2"} {
		t.Run("hang, CPUs "+cpus, func(t *testing.T) {
			flags := append(second(cpus, "/hangs,restart=always"), "--cluster", "cpus=1,memory=96M,init=/ticks")
			out := run(t, []string{"/survivor"}, flags, "cluster 0 goes on")
			_, meanwhile, _ := strings.Cut(out, "[1] cluster 1 is to hang")
			t.Log("a processor that is left tells:", strings.Contains(meanwhile, "takes no interrupts"))
			meanwhile, _, found := strings.Cut(meanwhile, "kernel: cluster 1 hangs")
			if ticks := strings.Count(meanwhile, "[2] tick"); !found || ticks < 3 || strings.Contains(out, "lacks") {
				t.Errorf("%d ticks of cluster 2 while cluster 1 hung\n%s", ticks, tail(out, 100))
			}
		})
	}
	t.Run("four", func(t *testing.T) {
		run(t, []string{"/first"}, []string{"--clusters", "4", "--cpus", "4", "--memory", "448M"}, "the end")
	})
	t.Run("sixteen", func(t *testing.T) {
		out := run(t, []string{"/many", "16"}, []string{"--clusters", "16", "--cpus", "16", "--memory", "2G"}, "\n16 clusters run")
		if strings.Contains(out, "lacks") || !strings.Contains(out, "\nforeign pages: 0") {
			t.Error(tail(out, 100))
		}
	})
	t.Run("run", func(t *testing.T) {
		root = roots(t.TempDir(), "clusterrun", "runner", "helper")
		if err := goBuild(repo, filepath.Join(root, "sbin", "cluster"), "./cmd/cluster"); err != nil {
			t.Fatal(err)
		}
		out := run(t, []string{"/runner"}, []string{"--cluster", "cpus=1,memory=224M", "--cluster", "cpus=1,memory=160M"}, "the end")
		if strings.Contains(out, "WRONG") {
			t.Errorf("%s", tail(out, 100))
		}
	})
}
