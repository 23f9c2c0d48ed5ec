package guest

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The suites of CPython and of Go: what passes on this machine's Linux, in a root
// directory of its own, passes on Hardtack, from a disk with the same files.

var suitePackages = []string{"bash", "coreutils", "busybox-static", "openssl", "python3", "libpython3.11-testsuite"}

// suiteParts are parts of the suites: Python's modules and Go's packages.
type suiteParts struct{ python, golang []string }

var (
	shortSuites = suiteParts{
		python: []string{"test_select", "test_pty", "test_openpty", "test_threadsignals"},
		golang: []string{"syscall", "os/signal"},
	}
	longSuites = suiteParts{
		python: []string{"test_asyncio", "test_multiprocessing_main_handling", "test_multiprocessing_fork",
			"test_multiprocessing_forkserver", "test_multiprocessing_spawn", "test_concurrent_futures", "test_signal",
			"test_select", "test_epoll", "test_poll", "test_selectors", "test_fcntl", "test_resource", "test_pty", "test_mmap",
			"test_os", "test_posix", "test_eintr", "test_wait3", "test_wait4", "test_fork1", "test_ioctl", "test_openpty",
			"test_thread", "test_threading", "test_threadsignals", "test_socket", "test_timeout", "test_socketserver",
			"test_subprocess", "test_shutil", "test_tempfile", "test_ssl"},
		golang: []string{"syscall", "internal/poll", "internal/syscall/unix", "os/user", "os/exec", "os/signal", "io/fs",
			"path/filepath", "time", "log/syslog", "os", "net", "net/http"},
	}
)

// suitesKnown are tests that Linux passes and Hardtack does not, and why: prefixes.
var suitesKnown = map[string]string{
	"syscall.TestExecPtrace":                       "there is no ptrace",
	"test.test_fcntl.TestFcntl.test_fcntl_64_bit":  "F_NOTIFY (dnotify) is EINVAL",
	"test.test_socket.BasicUDPLITETest":            "UDP-Lite is EPROTONOSUPPORT",
	"test.test_socket.SendmsgUDPLITETest":          "UDP-Lite is EPROTONOSUPPORT",
	"test.test_socket.RecvmsgUDPLITETest":          "UDP-Lite is EPROTONOSUPPORT",
	"test.test_socket.RecvmsgIntoUDPLITETest":      "UDP-Lite is EPROTONOSUPPORT",
	"test.test_socket.RecvmsgRFC3542":              "UDP-Lite is EPROTONOSUPPORT, in its UDPLITE variants",
	"test.test_socket.RecvmsgIntoRFC3542":          "UDP-Lite is EPROTONOSUPPORT, in its UDPLITE variants",
	"test.test_socket.SendmsgUDPLITE6Test":         "UDP-Lite is EPROTONOSUPPORT",
	"test.test_socket.RecvmsgUDPLITE6Test":         "UDP-Lite is EPROTONOSUPPORT",
	"test.test_socket.RecvmsgIntoUDPLITE6Test":     "UDP-Lite is EPROTONOSUPPORT",
	"test.test_socket.UDPLITETimeoutTest":          "UDP-Lite is EPROTONOSUPPORT",
	"test.test_socket.InterruptedSendTimeoutTest.": "takes longer than it may on a slow machine",
}

// outcomes reads what suites.sh printed: how each test ended.
func outcomes(text string) map[string]string {
	found := map[string]string{}
	pkg := ""
	for line := range strings.Lines(strings.ReplaceAll(text, "\r", "")) {
		line = strings.TrimRight(line, "\n")
		f := strings.SplitN(line, "\t", 4)
		w := strings.Fields(line)
		switch {
		case len(f) >= 3 && f[0] == "R":
			// A test with subtests may fail more than once, and then be told as passed.
			if old := found[f[2]]; old == "" || old == "ok" {
				found[f[2]] = f[1]
			}
		case len(w) == 2 && w[0] == "package":
			pkg = w[1]
		case len(w) >= 3 && w[0] == "---" && w[1] == "PASS:":
			found[pkg+"."+w[2]] = "ok"
		case len(w) >= 3 && w[0] == "---":
			found[pkg+"."+w[2]] = strings.ToLower(strings.TrimSuffix(w[1], ":"))
		case strings.HasPrefix(line, "package ended "):
			found[pkg] = "ok"
			if w[2] != "0" {
				found[pkg] = "status " + w[2]
			}
		}
	}
	return found
}

// suiteFiles puts the scripts, Go's tests and what they read into a directory.
func suiteFiles(t *testing.T, repo, add string, packages []string) {
	t.Helper()
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	src := filepath.Join(strings.TrimSpace(string(root)), "src")
	copies := map[string]string{filepath.Join(repo, "test/guest/scripts"): "scripts"}
	for _, p := range append([]string{"testdata"}, packages...) {
		if from := filepath.Join(src, p); exists(from) {
			copies[from] = filepath.Join("usr/local/go/src", p)
		}
	}
	// A folder before those inside it, which it has, too.
	for _, from := range slices.Sorted(maps.Keys(copies)) {
		if to := filepath.Join(add, copies[from]); !exists(to) {
			if err := os.CopyFS(to, os.DirFS(from)); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, p := range packages {
		out := filepath.Join(add, "suites", strings.ReplaceAll(p, "/", "_")+".test")
		cmd := exec.Command("go", "test", "-c", "-o", out, p)
		cmd.Dir = src
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=")
		if text, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("go test -c %s: %v\n%s", p, err, text)
		}
	}
}

func exists(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}

// inRoot runs suites.sh on this machine's Linux, with namespaces and a root of its
// own, unpacked from a tar.
func inRoot(t *testing.T, dir, tar string, args []string) string {
	t.Helper()
	root := filepath.Join(dir, "root")
	if err := os.Mkdir(root, 0o755); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("tar", "-C", root, "-xf", tar).CombinedOutput(); err != nil {
		t.Fatalf("tar: %v\n%s", err, out)
	}
	const enter = `r=$1; shift; mount --bind /dev $r/dev && mount -t tmpfs tmpfs $r/dev/shm && mount -t tmpfs tmpfs $r/tmp &&
		mount -t devpts devpts $r/dev/pts -o newinstance,ptmxmode=0666,mode=620,gid=5 && exec chroot $r /bin/bash /scripts/suites.sh "$@"`
	cmd := exec.Command("unshare", append([]string{"-m", "-p", "-f", "-n", "-u", "-i", "--mount-proc=" + root + "/proc",
		"sh", "-c", enter, "sh", root}, args...)...)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("on Linux: %v\n%s", err, tail(string(out), 20))
	}
	return string(out)
}

// wantedSuites are those that somebody asked for: some by name, all, or a few.
func wantedSuites(names string) suiteParts {
	switch names {
	case "":
		return shortSuites
	case "all":
		return longSuites
	}
	var parts suiteParts
	for _, name := range strings.Fields(names) {
		if strings.HasPrefix(name, "test_") {
			parts.python = append(parts.python, name)
		} else {
			parts.golang = append(parts.golang, name)
		}
	}
	return parts
}

// TestSuites runs a few parts of the suites, or with HARDTACK_SUITES=all all that is
// listed (make suites), or those that it names.
func TestSuites(t *testing.T) {
	needGuest(t)
	if os.Geteuid() != 0 {
		t.Skip("a root directory on this machine's Linux needs root")
	}
	if testing.Short() {
		t.Skip("runs suites, for a minute")
	}
	parts := wantedSuites(os.Getenv("HARDTACK_SUITES"))
	t.Parallel()
	repo, dir := repository(t), t.TempDir()
	tool := command(t, repo, dir)
	add := filepath.Join(dir, "add")
	suiteFiles(t, repo, add, parts.golang)
	disk := debianDisk(t, repo, tool, dir, "suites", add, "3G", suitePackages)
	args := append(append(slices.Clone(parts.python), "--"), parts.golang...)
	want := outcomes(inRoot(t, dir, filepath.Join(dir, "suites.tar"), args))
	var out console
	cmd := fromDisk(tool, disk, &out, "suites", args...)
	if i := slices.Index(cmd.Args, "--timeout"); i > 0 {
		cmd.Args[i+1] = "5h"
	}
	if err := cmd.Run(); err != nil {
		t.Errorf("suites: %v\n%s", err, tail(out.String(), 20))
	}
	got := outcomes(out.String())
	counts := map[string]int{}
	for name, outcome := range want {
		counts["Linux "+outcome]++
		counts["Hardtack "+got[name]]++
		if !worse(outcome, got[name]) || known(name, want, got) {
			continue
		}
		t.Errorf("%s: %q\n%s", name, got[name], reason(out.String(), name))
	}
	t.Log(counts)
	if counts["Linux ok"] < 50 {
		t.Error("the suites ran hardly any test on Linux")
	}
}

// worse reports whether a test that passes on Linux does not pass here. What a test
// skips depends on the machine.
func worse(linux, hardtack string) bool {
	return linux == "ok" && hardtack != "ok" && hardtack != "skip"
}

// known reports whether a difference is known: of a test, or of a package all of
// whose failures are.
func known(name string, want, got map[string]string) bool {
	for prefix := range suitesKnown {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	if got[name] != "status 1" {
		return false
	}
	for other := range want {
		if strings.HasPrefix(other, name+".Test") && worse(want[other], got[other]) && !known(other, want, got) {
			return false
		}
	}
	return true
}

// reason is what the console says about a test that failed.
func reason(text, name string) string {
	for line := range strings.Lines(text) {
		if f := strings.SplitN(line, "\t", 4); len(f) == 4 && f[2] == name {
			return strings.ReplaceAll(f[3], "|", "\n")
		}
	}
	_, test, _ := strings.Cut(name, ".")
	if _, after, ok := strings.Cut(text, fmt.Sprintf("=== RUN   %s\r\n", test)); ok {
		lines := strings.SplitAfterN(after, "\n", 21)
		return strings.Join(lines[:min(20, len(lines))], "")
	}
	return ""
}

func TestOutcomes(t *testing.T) {
	text := "R\tok\ttest.a.B.c\t\r\nR\tfailure\ttest.a.B.d\twhy|more\r\nR\tok\ttest.a.B.d\t\n" +
		"package os/signal\n=== RUN   TestX\r\n--- PASS: TestX (0.00s)\n--- FAIL: TestY (0.00s)\n    --- SKIP: TestY/sub (0.00s)\npackage ended 1\n" +
		"package syscall\n--- FAIL: TestExecPtrace (0.00s)\n--- SKIP: TestRlimit (0.00s)\npackage ended 1\n"
	got := outcomes(text)
	for name, want := range map[string]string{"test.a.B.c": "ok", "test.a.B.d": "failure", "os/signal.TestX": "ok",
		"os/signal.TestY": "fail", "os/signal.TestY/sub": "skip", "os/signal": "status 1", "syscall": "status 1"} {
		if got[name] != want {
			t.Errorf("%s: %q, want %q", name, got[name], want)
		}
	}
	linux := map[string]string{"os/signal.TestX": "ok", "os/signal.TestY": "ok", "os/signal": "ok", "syscall": "ok",
		"syscall.TestExecPtrace": "ok", "syscall.TestRlimit": "ok"}
	if known("os/signal", linux, got) || known("os/signal.TestY", linux, got) || !known("syscall", linux, got) ||
		!known("syscall.TestExecPtrace", linux, got) {
		t.Error("what is known is not told from what is not")
	}
	if why := reason(text, "test.a.B.d"); why != "why\nmore\r\n" {
		t.Errorf("%q", why)
	}
}
