package membench

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"hardtack/bench/internal/report"
)

const console = `begin none
row none rounds=266 failed=0 deaths=0 median=1333 worst=405278 gone=252 killed=-1 kills=0 used=16 root=1
end none ended=7 back=5 free=96
begin anonymous
kernel: out of memory: process 273 (memory), uid 1000, is killed
row anonymous rounds=330 failed=167 deaths=1 median=1250 worst=6575 gone=92 killed=113 kills=13 used=98 root=0 fork:ENOMEM:115
end anonymous ended=2 back=0 free=99
begin epolls
panic: kernel memory is exhausted
`

func TestParse(t *testing.T) {
	runs := Parse(console)
	if len(runs) != 3 {
		t.Fatalf("%d runs: %+v", len(runs), runs)
	}
	if r := runs[0]; !r.Good() || r.Rounds != 266 || r.Median != 1333*time.Microsecond || r.Killed >= 0 || r.Used != 16 {
		t.Errorf("none: %+v", r)
	}
	if r := runs[1]; r.Good() || r.Failed != 167 || r.Deaths != 1 || r.Root || r.Kills != 13 || len(r.Calls) != 1 || r.Killed != 113*time.Millisecond {
		t.Errorf("anonymous: %+v", r)
	}
	if r := runs[2]; r.Good() || r.Broken == "" || r.Offenders != "epolls" {
		t.Errorf("epolls: %+v", r)
	}
	if w := why(console, nil); w != "panic: kernel memory is exhausted" {
		t.Errorf("why: %q", w)
	}
	if runs := Parse(strings.Replace(console, "end anonymous", "", 1)); runs[1].Broken != "" || len(runs) != 3 {
		t.Errorf("a run without an end: %+v", runs)
	}
}

// A page has a row for each run and marks what should not be.
func TestMarkdown(t *testing.T) {
	r := Report{QEMU: "QEMU 0"}
	r.Add(Table{Memory: "128M", CPUs: 1, Each: time.Second, Runs: []Run{{Offenders: "old"}}})
	r.Add(Table{Memory: "48M", CPUs: 2, Each: time.Second, Same: true})
	runs := Parse(console)
	runs[2].Broken = why(console, nil)
	r.Add(Table{Memory: "128M", CPUs: 1, Each: time.Second, Runs: runs})
	page := r.Markdown()
	for _, want := range []string{
		"QEMU 0 (TCG)",
		"## 128M, 1 CPU\n\n3 runs of 1s; in 1 of them no call failed",
		"| none | 266 | 0 | 0 | 1.3 | 405.3 | — | 16 | yes |",
		"| anonymous | 330 | **167** | **1** | 1.2 | 6.6 | 0.02 | 98 | **no** |",
		"| epolls | **panic: kernel memory is exhausted** |",
		"## 48M, 2 CPUs, one user\n",
		"\n- 48M, 1 CPU: not run.\n",
		"\n- 128M, 1 CPU: 3 runs of 1s, of ",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("no %q in\n%s", want, page)
		}
	}
	if strings.Contains(page, "| old") || strings.Index(page, "## 48M") > strings.Index(page, "## 128M") {
		t.Errorf("the tables are not in order:\n%s", page)
	}
}

// TestKinds: the list is what the guest's program knows.
func TestKinds(t *testing.T) {
	files, err := filepath.Glob("guest/kinds_*.c")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	known := map[string]bool{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`(?m)^\t\{"(\w+)", \w+\},$`).FindAllStringSubmatch(string(text), -1) {
			known[m[1]] = true
		}
	}
	for _, k := range Kinds {
		if !known[k.Name] {
			t.Errorf("the guest's program does not know %s", k.Name)
		}
		delete(known, k.Name)
	}
	for name := range known {
		t.Errorf("%s is not in the list", name)
	}
}

// TestBeside is the short form of the experiment: every kind of offender on a small
// machine, for a moment. The machine survives, and the well-behaved program sees neither a
// failed call nor its end. HARDTACK_OFFENDERS names the kinds, or says all.
func TestBeside(t *testing.T) {
	only := os.Getenv("HARDTACK_OFFENDERS")
	if os.Getenv("HARDTACK_GUEST") == "" || only == "" {
		t.Skip("boots a guest; set HARDTACK_GUEST=1 HARDTACK_OFFENDERS=all")
	}
	if _, err := exec.LookPath("gcc"); err != nil {
		t.Skip("needs gcc: install gcc and libc6-dev")
	}
	repo, err := report.Root()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	m := Machine{Tool: filepath.Join(dir, "hardtack"), Kernel: filepath.Join(dir, "kernel.elf"), Root: filepath.Join(dir, "root"), Memory: "64M", CPUs: 1}
	if err := Build(repo, m.Root); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"go", "build", "-o", m.Tool, "./cmd/hardtack"}, {m.Tool, "build", "-o", m.Kernel}} {
		cmd := exec.Command(args[0], args[1:]...)
		cmd.Dir = repo
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
	}
	var offenders []string
	for _, k := range Kinds {
		offenders = append(offenders, k.Name)
	}
	if only != "all" {
		offenders = strings.Split(only, ",")
	}
	runs, err := m.Beside(offenders, time.Second, false)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range runs {
		if !r.Good() {
			t.Errorf("beside %s: %+v", r.Offenders, r)
		}
	}
}
