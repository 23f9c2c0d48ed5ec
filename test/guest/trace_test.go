package guest

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// What a line of strace or of /proc/hardtack/trace has that differs each time: the thread's
// number, time and duration, addresses, and how columns are filled; and what only strace
// shows, of calls that begin before another's end and of a few others.
var traceNoise = []struct {
	noise *regexp.Regexp
	text  string
}{
	{regexp.MustCompile(`(?m)^[0-9]+ +([0-9]+\.[0-9]{6} )?`), ""},
	{regexp.MustCompile(`(?m) <[0-9]+\.[0-9]{6}>$`), ""},
	{regexp.MustCompile(` += `), " = "},
	{regexp.MustCompile(`0x[0-9a-f]{6,}`), "ADDR"},
	{regexp.MustCompile(`(?m)^(kill|wait4)\([0-9]+`), "$1(PID"},
	{regexp.MustCompile(`(?m)^(getpid\(\)|wait4.*) = [0-9]+$`), "$1 = PID"},
	{regexp.MustCompile(`(?m)^(clone|rt_sigreturn|syscall_0x190)\(.*\) = (-1 .*|[0-9]+)$`), "$1"},
	{regexp.MustCompile(`(si_code=[A-Z_]+), .*}`), "$1}"},
	{regexp.MustCompile(`(?m)^set_robust_list.*\n`), ""},
	{regexp.MustCompile(`(?m)^getcwd\(.*\n`), ""},
}

// traceLines is the text of the calls from the first one of calls.c's main on, without what
// differs each time, thread by thread.
func traceLines(text string) string {
	at := strings.Index(text, `openat(AT_FDCWD, "/tmp/calls"`)
	if at < 0 {
		return ""
	}
	var threads []string
	lines := map[string][]string{}
	for line := range strings.Lines(text[strings.LastIndexByte(text[:at], '\n')+1:]) {
		thread, _, _ := strings.Cut(line, " ")
		if lines[thread] == nil {
			threads = append(threads, thread)
		}
		lines[thread] = append(lines[thread], line)
	}
	text = ""
	for _, thread := range threads {
		text += strings.Join(lines[thread], "")
	}
	for _, n := range traceNoise {
		text = n.noise.ReplaceAllString(text, n.text)
	}
	return text
}

// TestTrace: a program's calls are shown as strace shows them. testdata/trace.txt is what
// "strace -f" of Debian 12 printed for the same program, passed through traceLines, with the
// lines of calls that another one interrupted joined, and without signals that nobody takes.
func TestTrace(t *testing.T) {
	needGuest(t)
	t.Parallel()
	repo, dir := repository(t), t.TempDir()
	if err := goBuild(repo, filepath.Join(dir, "tracing"), "./test/guest/tracing"); err != nil {
		t.Fatal(err)
	}
	if err := cBuild(filepath.Join(dir, "calls"), filepath.Join(repo, "test/guest/tracing/c/calls.c")); err != nil {
		t.Fatal(err)
	}
	root := guestRoot(t, dir, "tracing", "calls")
	out, err := inGuest(t, command(t, repo, dir), root, 2*time.Minute, []string{"--memory", "128M"}, "/tracing", "/calls")
	if err != nil {
		t.Fatalf("%v\n%s", err, tail(out, 40))
	}
	out = strings.ReplaceAll(out, "\r", "")
	_, out, _ = strings.Cut(out, "begin\n")
	out, _, _ = strings.Cut(out, "end\n")
	want, err := os.ReadFile("testdata/trace.txt")
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Split(traceLines(out), "\n")
	for i, line := range strings.Split(string(want), "\n") {
		if i >= len(got) {
			t.Fatalf("nothing after line %d:\n%s", i, out)
		}
		if got[i] != line {
			t.Errorf("line %d: %s\nstrace: %s", i+1, got[i], line)
		}
	}
	if t.Failed() {
		t.Log(out)
	}
}
