package cli

import (
	"bufio"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

const patience = 2 * time.Minute

// running is a program that runs until the test ends.
type running struct {
	cmd   *exec.Cmd
	lines *bufio.Reader
}

func startProgram(t *testing.T, env []string, name string, args ...string) *running {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	r := &running{cmd: exec.CommandContext(ctx, name, args...)}
	r.cmd.Env = append(os.Environ(), env...)
	r.cmd.Stderr = os.Stderr
	out, err := r.cmd.StdoutPipe()
	if err == nil {
		err = r.cmd.Start()
	}
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	r.lines = bufio.NewReader(out)
	t.Cleanup(func() { cancel(); r.cmd.Wait() })
	return r
}

// until reads lines until one matches.
func (r *running) until(t *testing.T, pattern string) string {
	t.Helper()
	want := regexp.MustCompile(pattern)
	var said strings.Builder
	for {
		line, err := r.lines.ReadString('\n')
		if want.MatchString(line) {
			return strings.TrimSpace(line)
		}
		said.WriteString(line)
		if err != nil {
			t.Fatalf("%s never says %s: %v\n%s", strings.Join(r.cmd.Args, " "), pattern, err, said.String())
		}
	}
}

// The commands that look at running programs, at programs that run: hardtack msg
// top and trace, hardtack names ls, watch, get and serve.
func TestLooking(t *testing.T) {
	dir, err := os.MkdirTemp("", "look") // short: sockets are in it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	bin := filepath.Join(hardtack(t), "hardtack")
	for _, example := range []string{"pingpong", "names"} {
		if out, err := exec.Command("go", "build", "-ldflags=-checklinkname=0", "-o", filepath.Join(dir, example), "hardtack/examples/"+example).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	env := []string{"HARDTACK_MSG_DIR=" + dir, "HARDTACK_NAMES=" + dir + "/n", "XDG_RUNTIME_DIR=" + dir, "XDG_STATE_HOME=" + dir}
	ask := func(args ...string) string {
		t.Helper()
		cmd := exec.Command(bin, args...)
		cmd.Env = append(os.Environ(), env...)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("hardtack %s: %v\n%s", strings.Join(args, " "), err, out)
		}
		return string(out)
	}

	// Messages.
	startProgram(t, env, filepath.Join(dir, "pingpong"), "serve").until(t, "serving")
	ping := startProgram(t, env, filepath.Join(dir, "pingpong"), "ping", "4000000000")
	go io.Copy(io.Discard, ping.lines)
	top := startProgram(t, env, bin, "msg", "top", "--every", "100ms", "-n", "600")
	top.until(t, `\s[1-9][0-9.]*k?\s+[1-9][0-9.]*k?\s+\d+\s+(awake|parked).*\bping\b.*pingpong`) // the first looks have no rates yet
	trace := startProgram(t, env, bin, "msg", "trace", "ping")
	trace.until(t, `ping \S+ ping\{client_id: \d+, msg_id: \d+\}`)
	trace.until(t, `ping \S+ pong\{client_id: \d+, msg_id: \d+\}`)

	// Names.
	serve := startProgram(t, env, bin, "names", "serve")
	serve.until(t, dir+"/n")
	watch := startProgram(t, env, bin, "names", "watch")
	watch.until(t, "the above exist")
	owner := startProgram(t, env, filepath.Join(dir, "names"), "worker", "alice")
	name := strings.TrimPrefix(owner.until(t, "alice is "), "alice is ")
	watch.until(t, `^\+ `+regexp.QuoteMeta(name)+` .*"alice"`)
	if out := ask("names", "ls", "work"); !strings.Contains(out, name) || !strings.Contains(out, "alice") {
		t.Errorf("ls: %q", out)
	}
	if out := ask("names", "get", "--wait", name); out != "alice\n" {
		t.Errorf("get: %q", out)
	}
	owner.cmd.Process.Kill()
	watch.until(t, `^- `+regexp.QuoteMeta(name))
	if out := ask("names", "ls"); strings.Contains(out, name) {
		t.Errorf("ls after its owner's death: %q", out)
	}
}
