package overlay

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// here is the toolchain that runs the test.
func here(t *testing.T) Toolchain {
	t.Helper()
	out, err := exec.Command("go", "env", "GOVERSION", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	f := strings.Split(string(out), "\n")
	return Toolchain{f[0], f[1], "linux", runtime.GOARCH}
}

func TestVersionIsTheModules(t *testing.T) {
	data, err := os.ReadFile("../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(data), "\ntoolchain "+Version+"\n") {
		t.Errorf("the overlay is made for %s, and go.mod names another toolchain", Version)
	}
}

func TestPrepare(t *testing.T) {
	tc := here(t)
	o := Options{Policy: "group", Cache: t.TempDir()}
	first, err := Prepare(tc, o)
	if err != nil {
		t.Fatal(err)
	}
	again, err := Prepare(tc, o)
	if err != nil || !first.Changed || again.Changed || again.List != first.List {
		t.Fatalf("the second time: %+v, %v; the first: %+v", again, err, first)
	}
	data, err := os.ReadFile(first.List)
	if err != nil {
		t.Fatal(err)
	}
	var list struct{ Replace map[string]string }
	if err := json.Unmarshal(data, &list); err != nil || len(list.Replace) != len(first.Files) {
		t.Fatalf("%d files in %s, %d told; %v", len(list.Replace), first.List, len(first.Files), err)
	}
	for from, to := range list.Replace {
		data, err := os.ReadFile(to)
		if err != nil || !strings.HasPrefix(from, tc.Root) {
			t.Errorf("%s → %s: %v", from, to, err)
		}
		if strings.HasSuffix(from, "affinity_default.go") && !bytes.Contains(data, []byte("affDefault = 3 // group")) {
			t.Errorf("%s", data)
		}
	}
	// A cache that was tampered with is fixed.
	if err := os.WriteFile(list.Replace[filepath.Join(tc.Root, "src/runtime/chan.go")], []byte("package broken"), 0o644); err != nil {
		t.Fatal(err)
	}
	if mended, err := Prepare(tc, o); err != nil || !mended.Changed {
		t.Errorf("a broken file was kept: %+v, %v", mended, err)
	}
	other, err := Prepare(tc, Options{Cache: o.Cache})
	if err != nil || other.List == first.List {
		t.Errorf("two policies, one list: %v", err)
	}
}

func TestPrepareBad(t *testing.T) {
	good := here(t)
	for name, c := range map[string]struct {
		change func(*Toolchain, *Options)
		want   string
	}{
		"version": {func(t *Toolchain, o *Options) { t.Version = "go1.25.3" }, "GOTOOLCHAIN=" + Version},
		"os":      {func(t *Toolchain, o *Options) { t.OS = "windows" }, "linux"},
		"arch":    {func(t *Toolchain, o *Options) { t.Arch = "386" }, "amd64"},
		"policy":  {func(t *Toolchain, o *Options) { o.Policy = "grup" }, "want off"},
		"topic":   {func(t *Toolchain, o *Options) { o.Topics = []string{"gc"} }, "affinity"},
		"root":    {func(t *Toolchain, o *Options) { t.Root = "/nonexistent" }, "missing"},
	} {
		tc, o := good, Options{Cache: t.TempDir()}
		c.change(&tc, &o)
		if _, err := Prepare(tc, o); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	// A Go whose files were edited is not patched.
	root := t.TempDir()
	os.MkdirAll(filepath.Join(root, "src/runtime"), 0o755)
	for _, f := range []string{"chan.go", "select.go", "proc.go", "runtime2.go"} {
		data, err := os.ReadFile(filepath.Join(good.Root, "src/runtime", f))
		if err != nil {
			t.Fatal(err)
		}
		os.WriteFile(filepath.Join(root, "src/runtime", f), append(data, '\n'), 0o644)
	}
	tc := good
	tc.Root = root
	if _, err := Prepare(tc, Options{Cache: t.TempDir()}); err == nil || !strings.Contains(err.Error(), "has been changed") {
		t.Errorf("an edited Go: %v", err)
	}
}

// build builds a program of this module with the overlay. It uses the user's
// cache, so that the standard library is compiled once, not in every test.
func build(t *testing.T, flags ...string) string {
	t.Helper()
	return buildWith(t, Options{Policy: "off"}, flags...)
}

func buildWith(t *testing.T, options Options, flags ...string) string {
	t.Helper()
	o, err := Prepare(here(t), options)
	if err != nil {
		t.Fatal(err)
	}
	exe := filepath.Join(t.TempDir(), "program")
	args := append([]string{"build", "-overlay=" + o.List, "-o", exe}, flags...)
	if out, err := exec.Command("go", args...).CombinedOutput(); err != nil {
		t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return exe
}

func TestStress(t *testing.T) {
	exe := build(t, "./testdata/stress")
	for _, policy := range append([]string{"group on one CPU"}, Policies...) {
		t.Run(policy, func(t *testing.T) {
			cmd := exec.Command(exe, "1")
			if p, one := strings.CutSuffix(policy, " on one CPU"); one {
				taskset, err := exec.LookPath("taskset")
				if err != nil {
					t.Skip("no taskset")
				}
				policy, cmd = p, exec.Command(taskset, "-c", "0", exe, "1")
			}
			cmd.Env = append(os.Environ(), "HARDTACK_AFFINITY="+policy, "HARDTACK_AFFINITY_PERIOD=5ms", "GOMAXPROCS=3")
			if out, err := cmd.CombinedOutput(); err != nil || string(out) != "ok\n" {
				t.Errorf("%v\n%.4000s", err, out)
			}
		})
	}
}

// One warning line for bad settings, and the program runs on.
func TestBadEnvironment(t *testing.T) {
	exe := build(t, "./testdata/settings")
	for _, c := range []struct{ name, value, warn, policy string }{
		{"HARDTACK_AFFINITY", "group", "", "group 500ms 800"},
		{"HARDTACK_AFFINITY", "grup", "want off, process, node or group", "off 500ms 800"},
		{"HARDTACK_AFFINITY", "a\nb\x1b[1m", "a?b?[1m", "off 500ms 800"},
		{"HARDTACK_AFFINITY", strings.Repeat("x", 5000), strings.Repeat("x", 64) + ":", "off 500ms 800"},
		{"HARDTACK_AFFINITY_PERIOD", "20ms", "", "group 20ms 800"},
		{"HARDTACK_AFFINITY_PERIOD", "2s", "", "group 2s 800"},
		{"HARDTACK_AFFINITY_PERIOD", "0ms", "want 1ms", "off 500ms 800"},
		{"HARDTACK_AFFINITY_PERIOD", "-5s", "want 1ms", "off 500ms 800"},
		{"HARDTACK_AFFINITY_PERIOD", "99999999999999999999s", "want 1ms", "off 500ms 800"},
		{"HARDTACK_AFFINITY_PERIOD", "500", "want 1ms", "off 500ms 800"},
		{"HARDTACK_AFFINITY_TOUCHES", "10", "", "group 500ms 10"},
		{"HARDTACK_AFFINITY_TOUCHES", "0", "want a positive", "off 500ms 800"},
		{"HARDTACK_AFFINITY_TOUCHES", "many", "want a positive", "off 500ms 800"},
		{"HARDTACK_AFFINITY_LOG", "/nonexistent/log", "cannot open", "off 500ms 800"},
	} {
		cmd := exec.Command(exe)
		cmd.Env = append(os.Environ(), "HARDTACK_AFFINITY=group", c.name+"="+c.value)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if err != nil || strings.TrimSpace(string(out)) != c.policy {
			t.Errorf("%s=%.20q: %q, %v", c.name, c.value, out, err)
		}
		lines := strings.Count(stderr.String(), "\n")
		if c.warn == "" && lines != 0 || c.warn != "" && (lines != 1 || !strings.Contains(stderr.String(), c.warn)) {
			t.Errorf("%s=%.20q: standard error %q, want %q", c.name, c.value, stderr.String(), c.warn)
		}
	}
}

// The tests of hardtack/affinity that need the overlay.
func TestAffinityPackage(t *testing.T) {
	o, err := Prepare(here(t), Options{Policy: "off"})
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("go", "test", "-overlay="+o.List, "-v", "hardtack/affinity/...").CombinedOutput()
	if err != nil || bytes.Contains(out, []byte("built without the overlay")) || !bytes.Contains(out, []byte("PASS: TestChannelsShowCreationSite")) ||
		!bytes.Contains(out, []byte("PASS: TestExpvar")) {
		t.Errorf("%v\n%s", err, out)
	}
}

// Go's own tests of channels, under the policy that changes the most; "make
// test-overlay" runs all of them with all policies.
func TestGoItself(t *testing.T) {
	o, err := Prepare(here(t), Options{Policy: "off"})
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("go", "test", "-overlay="+o.List, "-count=1", "-short", "-timeout", "30m",
		"-run", "Chan|Select|Gosched|GOMAXPROCS|Yield", "runtime")
	cmd.Env = append(os.Environ(), "HARDTACK_AFFINITY=group", "HARDTACK_AFFINITY_PERIOD=20ms", "GOFLAGS=")
	if out, err := cmd.CombinedOutput(); err != nil || !bytes.Contains(out, []byte("ok  \truntime")) {
		t.Errorf("%v\n%s", err, out)
	}
}

// What a goroutine has allocated is counted exactly, beside the other topic too.
func TestAllocated(t *testing.T) {
	exe := buildWith(t, Options{Topics: Topics()}, "-ldflags=-checklinkname=0", "./testdata/allocated")
	if out, err := exec.Command(exe).CombinedOutput(); err != nil || string(out) != "ok\n" {
		t.Errorf("%v\n%.2000s", err, out)
	}
}

// A goroutine's clock runs while it does, and not while it is blocked in any way.
func TestRan(t *testing.T) {
	exe := buildWith(t, Options{Topics: Topics()}, "-ldflags=-checklinkname=0", "./testdata/ran")
	if out, err := exec.Command(exe).CombinedOutput(); err != nil || string(out) != "ok\n" {
		t.Errorf("%v\n%.2000s", err, out)
	}
}

// Marking in small pieces loses nothing, with one processor and several. In the second
// form the runtime marks again after each collection with the world stopped, and ends the
// program if the first time missed an object.
func TestCollector(t *testing.T) {
	exe := buildWith(t, Options{Topics: []string{"allocated", "collector", "ran"}}, "-ldflags=-checklinkname=0", "./testdata/collector")
	for _, c := range []struct{ rounds, procs, debug string }{
		{"4", "1", ""}, {"4", "2", ""}, {"4", "5", ""}, {"2", "1", "gccheckmark=1"}, {"2", "3", "gccheckmark=1"},
	} {
		cmd := exec.Command(exe, c.rounds)
		cmd.Env = append(os.Environ(), "GOMAXPROCS="+c.procs, "GODEBUG="+c.debug)
		if out, err := cmd.CombinedOutput(); err != nil || string(out) != "ok\n" {
			t.Errorf("%+v: %v\n%.4000s", c, err, out)
		}
	}
}

// Goroutines that wait for turns are taken by their keys, and none is forgotten.
func TestTurns(t *testing.T) {
	exe := buildWith(t, Options{Topics: Topics()}, "-ldflags=-checklinkname=0", "./testdata/turns")
	if out, err := exec.Command(exe).CombinedOutput(); err != nil || string(out) != "ok\n" {
		t.Errorf("%v\n%.2000s", err, out)
	}
}

// One list of several; what two replace is an error.
func TestJoin(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	a, b := write("a", `{"Replace":{"x":"1","y":"2"}}`), write("b", `{"Replace":{"z":"3"}}`)
	all := filepath.Join(dir, "all")
	if err := Join(all, a, b); err != nil {
		t.Fatal(err)
	}
	var list struct{ Replace map[string]string }
	if data, err := os.ReadFile(all); err != nil || json.Unmarshal(data, &list) != nil || len(list.Replace) != 3 || list.Replace["z"] != "3" {
		t.Errorf("%v, %v", list, err)
	}
	if err := Join(all, a, b, a); err == nil || !strings.Contains(err.Error(), "two lists replace") {
		t.Errorf("twice: %v", err)
	}
	if err := Join(all, write("bad", "{")); err == nil {
		t.Error("half a list was taken")
	}
}

// A channel must not grow: 112 bytes are a size class.
func TestSizeOfChannels(t *testing.T) {
	exe := build(t, "./testdata/size")
	out, err := exec.Command(exe).CombinedOutput()
	if err != nil || string(out) != "112\n" {
		t.Errorf("an unbuffered channel takes %s bytes, want 112 (%v)", bytes.TrimSpace(out), err)
	}
}

// The verb runs a program, passes its output on and draws.
func TestAffinityVerb(t *testing.T) {
	exe := build(t, "../bench/affinity/programs")
	hardtack := filepath.Join(t.TempDir(), "hardtack")
	if out, err := exec.Command("go", "build", "-o", hardtack, "../cmd/hardtack").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	svg := filepath.Join(t.TempDir(), "talk.svg")
	cmd := exec.Command(hardtack, "affinity", "--compare", "-o", svg, exe, "many", "-messages", "1000000")
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil || strings.Count(stdout.String(), "message ") != 2 || !strings.Contains(stderr.String(), "touches") {
		t.Errorf("%v\n%s\n%s", err, stdout.String(), stderr.String())
	}
	if data, err := os.ReadFile(svg); err != nil || !bytes.Contains(data, []byte("<svg")) || !bytes.Contains(data, []byte("<path")) {
		t.Errorf("the drawing: %v, %.300s", err, data)
	}
	cmd = exec.Command(hardtack, "affinity", exe, "many", "-messages", "0")
	if err := cmd.Run(); cmd.ProcessState.ExitCode() != 1 {
		t.Errorf("the program's own exit status is lost: %v", err)
	}
}

// The vote binds the process and frees it; a thread that the program bound
// itself keeps its mask.
func TestProcessPolicy(t *testing.T) {
	if runtime.NumCPU() < 2 {
		t.Skip("one CPU only")
	}
	exe := build(t, "./testdata/pin")
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), "HARDTACK_AFFINITY=process", "HARDTACK_AFFINITY_PERIOD=20ms")
	if out, err := cmd.CombinedOutput(); err != nil || string(out) != "ok\n" {
		t.Errorf("%v\n%s", err, out)
	}
}

// Locks taken in two orders are found, and both places are told.
func TestLocks(t *testing.T) {
	exe := buildWith(t, Options{Topics: []string{"allocated", "locks", "ran"}}, "-ldflags=-checklinkname=0", "./testdata/locks")
	cmd := exec.Command(exe)
	var told bytes.Buffer
	cmd.Stderr = &told
	out, err := cmd.Output()
	if err != nil || string(out) != "ok\n" {
		t.Fatalf("%v\n%s\n%.4000s", err, out, told.String())
	}
	for _, want := range []string{"before, the other way", "taken twice by one goroutine: main.lockData", "testdata/locks/main.go:"} {
		if !strings.Contains(told.String(), want) {
			t.Errorf("no %q:\n%.4000s", want, told.String())
		}
	}
}
