package guest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// words is what a console's text says of a failure: the lines from where the
// kernel stops, or else its end.
func words(s string, lines int) string {
	for _, begin := range []string{"panic: ", "fatal error: "} {
		if i := strings.Index(s, begin); i >= 0 {
			all := strings.SplitN(s[i:], "\n", lines+1)
			return strings.Join(all[:min(len(all), lines)], "\n") + "\n…\n" + tail(s, 5)
		}
	}
	return tail(s, lines)
}

// TestStress uses every resource of a small machine up and checks that it lives
// on. HARDTACK_STRESS names a single one.
func TestStress(t *testing.T) {
	needGuest(t)
	if _, err := exec.LookPath("gcc"); err != nil {
		t.Skip("needs gcc: install gcc and libc6-dev")
	}
	t.Parallel()
	repo, dir := repository(t), t.TempDir()
	if err := cBuild(filepath.Join(dir, "stress"), filepath.Join(repo, "test", "guest", "stress", "stress.c")); err != nil {
		t.Fatal(err)
	}
	tool := command(t, repo, dir)
	root := guestRoot(t, dir, "stress")
	argv := []string{"/stress"}
	if only := os.Getenv("HARDTACK_STRESS"); only != "" {
		argv = append(argv, only)
	}
	out, err := inGuest(t, tool, root, 10*time.Minute, []string{"--memory", "192M"}, argv...)
	if err != nil || !strings.Contains(out, "stress: ok") {
		t.Errorf("stress: %v\n%s", err, tail(out, 120))
	}
}

// TestUsersShare has a user take as much as it gets of everything that there is little
// of, and asks whether others are served. HARDTACK_STRESS names a single one.
func TestUsersShare(t *testing.T) {
	needGuest(t)
	if _, err := exec.LookPath("gcc"); err != nil {
		t.Skip("needs gcc: install gcc and libc6-dev")
	}
	t.Parallel()
	repo, dir := repository(t), t.TempDir()
	if err := cBuild(filepath.Join(dir, "users"), filepath.Join(repo, "test", "guest", "stress", "users.c")); err != nil {
		t.Fatal(err)
	}
	tool := command(t, repo, dir)
	root := guestRoot(t, dir, "users")
	argv := []string{"/users"}
	if only := os.Getenv("HARDTACK_STRESS"); only != "" {
		argv = append(argv, only)
	}
	out, err := inGuest(t, tool, root, 6*time.Minute, []string{"--memory", "192M"}, argv...)
	if err != nil || !strings.Contains(out, "users: ok") {
		t.Errorf("users: %v\n%s", err, tail(out, 120))
	}
}

// TestHeap has a user leave no memory to files and then fill the kernel's heap: nobody's
// program may stop the machine so. HARDTACK_STRESS names a single way.
func TestHeap(t *testing.T) {
	needGuest(t)
	if _, err := exec.LookPath("gcc"); err != nil {
		t.Skip("needs gcc: install gcc and libc6-dev")
	}
	t.Parallel()
	repo, dir := repository(t), t.TempDir()
	if err := cBuild(filepath.Join(dir, "heap"), filepath.Join(repo, "test", "guest", "stress", "heap.c")); err != nil {
		t.Fatal(err)
	}
	tool := command(t, repo, dir)
	root := guestRoot(t, dir, "heap")
	argv := []string{"/heap"}
	if only := os.Getenv("HARDTACK_STRESS"); only != "" {
		argv = append(argv, only)
	}
	out, err := inGuest(t, tool, root, 6*time.Minute, []string{"--memory", "128M"}, argv...)
	if err != nil || !strings.Contains(out, "heap: ok") {
		t.Errorf("heap: %v\n%s", err, words(out, 60))
	}
	// Limits may stop all ways before anybody must be killed.
	t.Logf("killed for memory: %d", strings.Count(out, "out of memory: process"))
}

// TestReserve has users take all memory in many ways beside a program that behaves: none
// of its calls may fail. HARDTACK_STRESS names a single way, HARDTACK_STORM is for how many
// seconds each.
func TestReserve(t *testing.T) {
	needGuest(t)
	if _, err := exec.LookPath("gcc"); err != nil {
		t.Skip("needs gcc: install gcc and libc6-dev")
	}
	t.Parallel()
	repo, dir := repository(t), t.TempDir()
	if err := cBuild(filepath.Join(dir, "reserve"), filepath.Join(repo, "test", "guest", "stress", "reserve.c")); err != nil {
		t.Fatal(err)
	}
	tool := command(t, repo, dir)
	root := guestRoot(t, dir, "reserve")
	argv := []string{"/reserve", "400"}
	if long := os.Getenv("HARDTACK_STORM"); long != "" {
		argv[1] = long + "000"
	}
	if only := os.Getenv("HARDTACK_STRESS"); only != "" {
		argv = append(argv, only)
	}
	run := func(memory, cpus string, argv ...string) {
		out, err := inGuest(t, tool, root, 10*time.Minute, []string{"--memory", memory, "--cpus", cpus}, argv...)
		if err != nil || !strings.Contains(out, "reserve: ok") {
			t.Errorf("reserve with %s on %s CPUs: %v\n%s", memory, cpus, err, words(out, 60))
		}
	}
	run("128M", "1", argv...)
	run("128M", "2", argv...)
	run("48M", "1", "/reserve", "2500", "keepers")
}

// TestClash has threads and processes use what others close, unmount, exit from or
// replace at the same moment, on a kernel that checks its locks. HARDTACK_STORM is for how
// many seconds each, HARDTACK_STRESS names a single one.
func TestClash(t *testing.T) {
	needGuest(t)
	if _, err := exec.LookPath("gcc"); err != nil {
		t.Skip("needs gcc: install gcc and libc6-dev")
	}
	t.Parallel()
	repo, dir := repository(t), t.TempDir()
	if err := cBuild(filepath.Join(dir, "clash"), filepath.Join(repo, "test", "guest", "storm", "clash.c")); err != nil {
		t.Fatal(err)
	}
	tool := command(t, repo, dir, "--check-locks")
	root := guestRoot(t, dir, "clash")
	argv := []string{"/clash", "1"}
	if long := os.Getenv("HARDTACK_STORM"); long != "" {
		argv[1] = long
	}
	if only := os.Getenv("HARDTACK_STRESS"); only != "" {
		argv = append(argv, only)
	}
	for _, cpus := range []string{"2", "4"} {
		out, err := inGuest(t, tool, root, 10*time.Minute, []string{"--memory", "256M", "--cpus", cpus}, argv...)
		if err != nil || !strings.Contains(out, "clash: over") {
			t.Errorf("clash on %s CPUs: %v\n%s", cpus, err, words(out, 60))
		}
	}
}
