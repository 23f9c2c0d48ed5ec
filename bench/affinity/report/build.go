package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	affinitybench "hardtack/bench/affinity"
	"hardtack/bench/internal/report"
)

// programs are what is built, without the overlay and with it. Those of in come from
// the module proxy: without one their rows are left out.
var programs = []struct {
	name, in, policy string
	args             []string
}{
	{"programs", ".", "group", []string{"build", "./bench/affinity/programs"}},
	// It also runs where there is no environment to set a policy in.
	{"runtime", ".", "off", []string{"test", "-c", "runtime"}},
	{"scc", "bench/peers/affinity", "group", []string{"build", "github.com/boyter/scc/v3"}},
	{"nsqd", "bench/peers/affinity", "group", []string{"test", "-c", "github.com/nsqio/nsq/nsqd"}},
	{"nats", "bench/peers/servers", "group", []string{"test", "-c", "github.com/nats-io/nats-server/v2/test"}},
	{"natscore", "bench/peers/servers", "group", []string{"test", "-c", "github.com/nats-io/nats-server/v2/server"}},
	{"etcd", "bench/peers/servers", "group", []string{"test", "-c", "go.etcd.io/etcd/server/v3/storage/mvcc"}},
	{"prometheus", "bench/peers/prometheus", "group", []string{"test", "-c", "github.com/prometheus/prometheus/storage/remote"}},
	{"hugo", "bench/peers/hugo", "group", []string{"test", "-c", "github.com/gohugoio/hugo/hugolib"}},
	{"gopls", "bench/peers/gopls", "group", []string{"test", "-c", "golang.org/x/tools/gopls/internal/test/integration/bench"}},
}

// needed are the programs of the rows whose title has the text.
func needed(only string) (names []string) {
	for _, row := range affinitybench.Rows {
		if !strings.Contains(row.Title, only) {
			continue
		}
		if row.Peer == "" {
			names = append(names, "programs")
		}
		names = append(names, row.Peer)
	}
	if only == "" {
		names = append(names, "runtime")
	}
	return append(names, "programs") // it tells how many cores are free
}

// build makes the programs that the rows need, into dir.
func build(b *affinitybench.Bench, dir string, lists map[string]string, only string) error {
	names := needed(only)
	for _, p := range programs {
		if !slices.Contains(names, p.name) {
			continue
		}
		b.Log("building %s", p.name)
		for _, patched := range []bool{false, true} {
			exe, list := filepath.Join(dir, fmt.Sprintf("%s-%v", p.name, patched)), ""
			if patched {
				list = lists[p.policy]
			}
			var err error
			for n := 0; n < max(b.Layouts, 1) && err == nil && (n == 0 || p.name != "runtime"); n++ {
				err = link(p.in, list, affinitybench.Layout(exe, n), n, p.args)
			}
			if err != nil && p.in == "." {
				return err
			} else if err != nil {
				lines := strings.Split(strings.TrimSpace(err.Error()), "\n")
				b.Missing[p.name] = "it could not be built here: " + lines[len(lines)-1]
				b.Log("left out: %s: %v", p.name, err)
				break
			}
			if patched {
				b.Patched[p.name] = exe
			} else {
				b.Stock[p.name] = exe
			}
		}
	}
	return nil
}

// link builds a program with its functions in the n-th order. Static: the guest that
// counts instructions has no libraries.
func link(in, overlay, exe string, n int, words []string) error {
	args := []string{words[0], "-o", exe, fmt.Sprintf("-ldflags=-checklinkname=0 -randlayout=%d", n)}
	if overlay != "" {
		args = append(args, "-overlay="+overlay)
	}
	return report.Build(in, []string{"CGO_ENABLED=0"}, "go", append(args, words[1:]...)...)
}

// workspace is a copy of a small module without dependencies, for gopls to load.
func workspace(dir string) (string, error) {
	from, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "golang.org/x/sync").Output()
	if err != nil {
		return "", err
	}
	to := filepath.Join(dir, "workspace")
	return to, os.CopyFS(to, os.DirFS(strings.TrimSpace(string(from))))
}
