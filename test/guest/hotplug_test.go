package guest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestHotplug has processors go and come on Linux 6.1 and on Hardtack, each in a machine of
// its own, where the same program must print the same. This machine's processors stay.
func TestHotplug(t *testing.T) {
	needGuest(t)
	t.Parallel()
	repo, dir := repository(t), t.TempDir()
	tool := command(t, repo, dir)
	if err := goBuild(repo, filepath.Join(dir, "guesttest"), "./test/guest/guesttest"); err != nil {
		t.Fatal(err)
	}
	programs := filepath.Join(dir, "programs")
	if err := os.Mkdir(programs, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := cBuild(filepath.Join(programs, "plug"), filepath.Join(repo, "test/guest/plug/plug.c")); err != nil {
		t.Skip(err)
	}
	if err := goBuild(repo, filepath.Join(programs, "follow"), "./bench/task/follow"); err != nil {
		t.Fatal(err)
	}
	names := []string{"follow", "plug"}
	root := guestRoot(t, dir, "guesttest", "programs")
	rounds := 100
	if os.Getenv("HARDTACK_STORM") != "" {
		rounds = 1000
	}
	if err := os.WriteFile(filepath.Join(root, "rounds"), []byte(strconv.Itoa(rounds)), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, cpus := range []int{2, 4} {
		t.Run(strconv.Itoa(cpus), func(t *testing.T) {
			out, err := inGuest(t, tool, root, 8*time.Minute, []string{"--cpus", strconv.Itoa(cpus)}, "/guesttest", "-limit", "400s", "/programs")
			got, _, _ := parse(out)
			want := reference{t: t, root: root, cpus: cpus}.run(names)
			if want == nil {
				t.Log("compared with nothing")
				want = got
			}
			for _, name := range names {
				if got[name] == nil || want[name] == nil {
					t.Fatalf("%s did not run: %v\n%s", name, err, tail(out, 60))
				}
				compare(t, want[name], got[name], "")
				if !strings.HasPrefix(got[name].verdict, "PASS") {
					t.Errorf("%s\n%s", got[name].verdict, tail(out, 60))
				}
			}
		})
	}
}

// TestBind has a program that "hardtack go" built bind itself to one processor, and to those
// of one cache, on Linux 6.1 and on Hardtack. The machine has two sockets with two processors each.
func TestBind(t *testing.T) {
	needGuest(t)
	t.Parallel()
	repo, dir := repository(t), t.TempDir()
	tool := command(t, repo, dir)
	if err := goBuild(repo, filepath.Join(dir, "guesttest"), "./test/guest/guesttest"); err != nil {
		t.Fatal(err)
	}
	programs := filepath.Join(dir, "programs")
	build := exec.Command(tool, "go", "build", "-o", filepath.Join(programs, "bind"), "./bench/affinity/bind")
	build.Dir, build.Env = repo, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	root := guestRoot(t, dir, "guesttest", "programs")
	sockets := []string{"-smp", "4,sockets=2,cores=2,threads=1"}
	out, err := inGuest(t, tool, root, 5*time.Minute, []string{"--cpus", "4", "--qemu-arg", sockets[0], "--qemu-arg", sockets[1]},
		"/guesttest", "-limit", "200s", "/programs")
	got, _, _ := parse(out)
	want := reference{t: t, root: root, cpus: 4, args: sockets}.run([]string{"bind"})
	if want == nil {
		t.Log("compared with nothing")
		want = got
	}
	if got["bind"] == nil || want["bind"] == nil {
		t.Fatalf("it did not run: %v\n%s", err, tail(out, 60))
	}
	compare(t, want["bind"], got["bind"], "")
	if !strings.HasPrefix(got["bind"].verdict, "PASS") {
		t.Errorf("%s\n%s", got["bind"].verdict, tail(out, 60))
	}
}

// TestHotplugMessages has processors go and come while threads call each other with limits of
// time, die and wait: who waits for a time must not wait for a processor that has gone. A program
// takes seconds, but on a busy host once in a while minutes: its limits are of the real clock, and
// while one processor is left nearly all of them run out before the other party has its turn.
func TestHotplugMessages(t *testing.T) {
	needGuest(t)
	t.Parallel()
	repo, dir := repository(t), t.TempDir()
	for name, source := range map[string]string{"beside": "plug/beside.c", "races": "ipc/races.c", "storm": "ipc/storm.c"} {
		if err := cBuild(filepath.Join(dir, name), filepath.Join(repo, "test/guest", source)); err != nil {
			t.Skip(err)
		}
	}
	tool := command(t, repo, dir)
	root := guestRoot(t, dir, "beside", "races", "storm")
	for _, program := range []string{"/races", "/storm"} {
		for range 3 {
			out, err := inGuest(t, tool, root, 10*time.Minute, []string{"--cpus", "2"}, "/beside", "2", program)
			if err != nil || !strings.Contains(out, program+": status 0") {
				t.Fatalf("%s: %v\n%s", program, err, tail(out, 40))
			}
		}
	}
}

// TestHotplugLate has processors go and come while threads compute, talk and sleep, in machines
// that count instructions. Nothing is lost, nobody is stuck, and whoever wakes is late by no more
// than a slice (4 ms), though the clock counts what all processors do. HARDTACK_STORM makes it
// 1,000 rounds.
func TestHotplugLate(t *testing.T) {
	needGuest(t)
	t.Parallel()
	repo, dir := repository(t), t.TempDir()
	if err := cBuild(filepath.Join(dir, "late"), filepath.Join(repo, "test/guest/plug/late.c")); err != nil {
		t.Skip(err)
	}
	tool := command(t, repo, dir)
	root := guestRoot(t, dir, "late")
	rounds := 30
	if os.Getenv("HARDTACK_STORM") != "" {
		rounds = 1000
	}
	for _, cpus := range []int{2, 4} {
		t.Run(strconv.Itoa(cpus), func(t *testing.T) {
			out, err := inGuest(t, tool, root, 30*time.Minute, []string{"--icount", "--cpus", strconv.Itoa(cpus)}, "/late", "child", strconv.Itoa(rounds))
			at := strings.Index(out, "rounds ")
			if err != nil || at < 0 {
				t.Fatalf("%v\n%s", err, tail(out, 40))
			}
			var n, wrong, stuck, late, bound int
			if _, err := fmt.Sscanf(out[at:], "rounds %d wrong %d stuck %d late %d bound %d", &n, &wrong, &stuck, &late, &bound); err != nil {
				t.Fatalf("%v\n%s", err, tail(out, 40))
			}
			t.Logf("%d rounds: %d wrong, %d stuck, %d µs late, those that are bound %d", n, wrong, stuck, late, bound)
			if n != rounds || wrong+stuck != 0 || max(late, bound) > 4000 {
				t.Errorf("something was lost, or late by more than a slice")
			}
		})
	}
}

// TestHotplugMany has processors of a machine that has as many as there can be go and come under
// load: each goes at least twice.
func TestHotplugMany(t *testing.T) {
	needGuest(t)
	t.Parallel()
	repo, dir := repository(t), t.TempDir()
	if err := cBuild(filepath.Join(dir, "late"), filepath.Join(repo, "test/guest/plug/late.c")); err != nil {
		t.Skip(err)
	}
	tool := command(t, repo, dir)
	root := guestRoot(t, dir, "late")
	out, err := inGuest(t, tool, root, 8*time.Minute, []string{"--cpus", "64", "--memory", "2G"}, "/late", "child", "130")
	if err != nil || !strings.Contains(out, "rounds 130 wrong 0 stuck 0 ") {
		t.Fatalf("%v\n%s", err, tail(out, 40))
	}
}
