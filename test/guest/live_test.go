package guest

import (
	"archive/tar"
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"hardtack/tool/ptytest"
)

// machines runs the command with a folder of machines of the test's own.
type machines struct {
	t    *testing.T
	tool string
	root string
}

func (m *machines) command(args ...string) *exec.Cmd {
	cmd := exec.CommandContext(m.t.Context(), m.tool, args...)
	return cmd
}

// run returns what a command prints, and its status.
func (m *machines) run(input string, args ...string) (out, errs string, status int) {
	m.t.Helper()
	var o, e bytes.Buffer
	cmd := m.command(args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(input), &o, &e
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		m.t.Fatal(err)
	}
	return o.String(), e.String(), cmd.ProcessState.ExitCode()
}

// want runs a command that prints this and ends with this status.
func (m *machines) want(out string, status int, args ...string) {
	m.t.Helper()
	got, errs, n := m.run("", args...)
	if got != out || n != status {
		m.t.Errorf("hardtack %s: %q, status %d (%s); want %q, %d", strings.Join(args, " "), got, n, errs, out, status)
	}
}

// start runs a machine in the background.
func (m *machines) start(name string, flags ...string) {
	m.t.Helper()
	args := []string{"run", "-d", "--name", name, "--accel", "tcg", "--memory", "256M"}
	args = append(append(args, flags...), m.root, "--", "/live", "serve", name)
	out, errs, status := m.run("", args...)
	if out != name+"\n" || status != 0 {
		m.t.Fatalf("%v: %q, %d: %s", args, out, status, errs)
	}
	m.t.Cleanup(func() { exec.Command(m.tool, "rm", "-f", name).Run() })
}

func newMachines(t *testing.T) *machines {
	needGuest(t)
	repo, dir := repository(t), t.TempDir()
	if err := goBuild(repo, filepath.Join(dir, "live"), "./test/guest/live"); err != nil {
		t.Fatal(err)
	}
	m := &machines{t: t, tool: command(t, repo, dir), root: guestRoot(t, dir, "live")}
	for name, text := range map[string]string{
		"passwd": "root:x:0:0::/root:/bin/sh\nbob:x:1000:1001::/tmp:/bin/sh\n", "group": "root:x:0:\nbobs:x:1001:\n",
	} {
		if err := os.WriteFile(filepath.Join(m.root, "etc", name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	run, err := os.MkdirTemp("", "live") // short: sockets are in it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(run) })
	t.Setenv("XDG_RUNTIME_DIR", run)
	return m
}

// A machine in the background: its log, commands that name it, its end.
func TestNamedMachines(t *testing.T) {
	m := newMachines(t)
	m.start("web", "-e", "A=one")
	if _, errs, status := m.run("", "run", "-d", "--name", "web", m.root, "--", "/live"); status != 2 || !strings.Contains(errs, "is taken") {
		t.Errorf("a second machine of the name: %d %s", status, errs)
	}
	if _, errs, status := m.run("", "run", "-d", "--name", "no", m.root, "--", "/nothing"); status != 2 || !strings.Contains(errs, "/nothing") {
		t.Errorf("a program that is not there: %d %s", status, errs)
	}
	m.want("web\n", 0, "ps", "-q")
	m.want("web running [/live serve web]\n", 0, "inspect", "--format", "{{.Name}} {{.Status}} {{.Args}}", "web")
	follow := m.command("logs", "-f", "web")
	pipe, err := follow.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := follow.Start(); err != nil {
		t.Fatal(err)
	}
	log := bufio.NewReader(pipe)
	line := func(want string) {
		t.Helper()
		if got, err := log.ReadString('\n'); got != want+"\n" || err != nil {
			t.Fatalf("the log says %q, %v; want %q", got, err, want)
		}
	}
	line("serving web")
	m.want("web\n", 0, "kill", "-s", "USR1", "web")
	line("process 1 got user defined signal 1")
	if out, errs, status := m.run("", "stats", "--no-stream", "--format", "{{.Name}} {{.Processes}}", "web"); out != "web 1\n" || status != 0 {
		t.Errorf("stats: %q, %d: %s", out, status, errs)
	}
	wait := m.command("wait", "web")
	var status bytes.Buffer
	wait.Stdout = &status
	if err := wait.Start(); err != nil {
		t.Fatal(err)
	}
	m.want("", 1, "rm", "web")
	m.want("web\n", 0, "stop", "-t", "1000", "web")
	line("process 1 got terminated")
	if rest, err := io.ReadAll(log); len(rest) > 0 || err != nil {
		t.Errorf("behind the log's end: %q, %v", rest, err)
	}
	if err := follow.Wait(); err != nil {
		t.Error(err)
	}
	if err := wait.Wait(); err != nil || status.String() != "3\n" {
		t.Errorf("wait: %q, %v", status.String(), err)
	}
	m.want("", 0, "ps", "-q")
	said := "serving web\nprocess 1 got user defined signal 1\nprocess 1 got terminated\n"
	m.want(said, 0, "logs", "--since", "100h", "web")
	m.want("", 0, "logs", "--until", "2006-01-02", "web")
	if out, _, status := m.run("", "logs", "-t", "-n", "1", "web"); status != 0 || !regexp.MustCompile(`^20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z process 1 got terminated\n$`).MatchString(out) {
		t.Errorf("the last line with its time: %q, %d", out, status)
	}
	m.want("", 2, "logs", "--since", "yesterday", "web")
	m.want("web exited 3\n", 0, "ps", "-a", "--format", "{{.Name}} {{.Status}} {{.ExitCode}}")
	m.want("", 125, "exec", "web", "/live", "who")
	m.want("web\n", 0, "stop", "web") // it has ended
	m.want("web\n", 0, "ps", "-lq")
	m.want("", 0, "ps", "-n", "0", "-q")
	m.want("NAME EXITCODE\nweb 3\n", 0, "ps", "-a", "--format", "table {{.Name}} {{.ExitCode}}")
	m.want("web\t3\n", 0, "inspect", "-f", `{{.Name}}\t{{.ExitCode}}`, "web")
	m.want("web\n", 0, "rm", "-f", "none", "web")
	m.want("", 0, "rm", "-f", "web")
	m.want("", 1, "rm", "web")
	m.want("", 0, "ps", "-aq")

	// Killed: the emulator, then the process that has it.
	for _, who := range []string{"QEMU", "PID"} {
		m.start("web")
		out, _, _ := m.run("", "inspect", "--format", "{{."+who+"}}", "web")
		var pid int
		if _, err := fmt.Sscan(out, &pid); err != nil || pid < 2 {
			t.Fatalf("%s is %q", who, out)
		}
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		m.run("", "wait", "web")
		want := map[string]string{"QEMU": "exited 71\n", "PID": "dead 137\n"}[who]
		m.want(want, 0, "ps", "-a", "--format", "{{.Status}} {{.ExitCode}}")
		m.want("web\n", 0, "rm", "web")
	}
}

func TestExecInMachine(t *testing.T) {
	m := newMachines(t)
	m.start("web", "-e", "A=one", "-w", "/tmp", "--cpus", "2")
	exec := func(args ...string) []string { return append([]string{"exec"}, args...) }

	m.want("leaving with 0\n", 0, exec("web", "/live", "exit", "0")...)
	if out, errs, status := m.run("", exec("web", "/live", "exit", "77")...); out != "leaving with 77\n" || errs != "error 77\n" || status != 77 {
		t.Errorf("%q, %q, %d", out, errs, status)
	}
	m.want("", 128+9, exec("web", "/live", "die")...)
	m.want("", 127, exec("web", "/nothing")...)
	m.want("", 127, exec("web", "nothing")...)
	m.want("", 126, exec("web", "/etc/passwd")...)
	m.want("", 126, exec("web", "/etc")...)
	m.want("", 127, exec("-w", "/nowhere", "web", "/live", "who")...)
	m.want("", 125, exec("-u", "nobody", "web", "/live", "who")...)
	m.want("", 125, exec("nomachine", "/live")...)
	m.want("", 125, exec("--nothing", "web", "/live")...)
	m.want("0 0 root /tmp /root one 0 true true false\n", 0, exec("web", "/live", "who")...)
	m.want("1000 1001 bob /etc /tmp two 0 true true false\n", 0, exec("-u", "bob", "-w", "/etc", "-e", "A=two", "web", "/live", "who")...)

	m.want("0 0 root / /root one 0 true true false\n", 0, exec("-w", "/", "web", "/live", "who")...)
	m.want("", 0, exec("-d", "web", "/live", "fill", "/tmp/behind", "3")...)
	m.want("\x00\x00\x00\n", 0, exec("web", "/live", "await", "/tmp/behind")...)
	m.want("", 127, exec("-d", "web", "/nothing")...)
	m.want("", 125, exec("-d", "nomachine", "/live")...)

	text := strings.Repeat("0123456789abcdef", 1<<16)
	if out, errs, status := m.run(text, exec("-i", "web", "/live", "cat")...); out != text || status != 0 {
		t.Errorf("cat: %d bytes of %d, %d: %s", len(out), len(text), status, errs)
	}
	m.want("", 0, exec("web", "/live", "cat")...) // no input
	m.want("left a child: true\n", 0, exec("web", "/live", "leave")...)

	t.Run("signals", func(t *testing.T) {
		for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
			c := m.command(exec("web", "/live", "signal")...)
			p := piped(t, c)
			p.until(t, "^waiting")
			c.Process.Signal(sig)
			p.until(t, "^got "+sig.String())
			c.Wait()
			if n := c.ProcessState.ExitCode(); n != 40+int(sig) {
				t.Errorf("%v: status %d", sig, n)
			}
		}
	})
	t.Run("killed client", func(t *testing.T) {
		for i, flags := range [][]string{nil, {"-t"}} {
			got := fmt.Sprint("/tmp/got", i)
			c := m.command(append(exec(flags...), "web", "/live", "signal", got)...)
			piped(t, c).until(t, "^waiting")
			c.Process.Kill()
			c.Wait()
			m.want("hangup\n", 0, exec("web", "/live", "await", got)...)
		}
	})
	t.Run("many", func(t *testing.T) {
		var wg sync.WaitGroup
		for i := range 20 {
			wg.Go(func() {
				m.want(fmt.Sprintf("leaving with %d\n", i), i, exec("web", "/live", "exit", fmt.Sprint(i))...)
			})
		}
		// Somebody who does not read holds nobody up.
		c := m.command(exec("web", "/live", "flood")...)
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		c.Stdout = w
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		wg.Wait()
		m.want("1\n", 0, exec("web", "/live", "count", "flood")...)
		c.Process.Kill()
		c.Wait()
		w.Close()
		r.Close()
	})
	t.Run("terminal", func(t *testing.T) { m.terminal(t, "exec", "-it", "web", "/live", "tty") })
	t.Run("copy", func(t *testing.T) { m.copy(t, text) })
}

// What flags make of a machine before process 1 starts, and its figures.
func TestArrangedMachine(t *testing.T) {
	m := newMachines(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	m.start("web", "--hostname", "galley", "--read-only", "--tmpfs", "/run:size=64k", "--tmpfs", "/tmp:exec", "--init",
		"--add-host", "db:10.1.2.3", "--dns", "10.9.9.9", "--metrics", addr)
	m.want("127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n127.0.1.1\tgalley\n10.1.2.3\tdb\n", 0, "exec", "web", "/live", "show", "/etc/hosts")
	m.want("galley\n", 0, "exec", "web", "/live", "show", "/etc/hostname")
	m.want("nameserver 10.9.9.9\n", 0, "exec", "web", "/live", "show", "/etc/resolv.conf")
	m.want("read-only file system\n", 0, "exec", "web", "/live", "fill", "/x", "1")
	m.want("no space left on device\n", 0, "exec", "web", "/live", "fill", "/run/x", "70000")
	m.want("done\n", 0, "exec", "web", "/live", "fill", "/tmp/x", "70000")
	m.want("left a child: true\n", 0, "exec", "web", "/live", "leave", "exit", "0")
	m.want("0\n", 0, "exec", "web", "/live", "gone", "exit") // process 1 never waits
	out, errs, status := m.run("", "top", "--once", "--json", "web")
	var sample struct {
		Up        bool
		Processes []struct{ Command string }
	}
	if err := json.Unmarshal([]byte(out), &sample); err != nil || status != 0 || !sample.Up || strings.Count(out, "\n") != 1 {
		t.Errorf("top: %q, %d: %s; %v", out, status, errs, err)
	}
	r, err := http.Get("http://" + addr + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	for _, want := range []string{"hardtack_up 1\n", "hardtack_kernel_answers 1\n", "hardtack_processes 1\n", "hardtack_syscalls_total{call=\"openat\"} ", "hardtack_gc_cycles_total ", "hardtack_ledger_bytes{user=\"0\",kind=\"pages\"} "} {
		if err != nil || !strings.Contains(string(b), want) {
			t.Errorf("the metrics lack %q: %v\n%s", want, err, b)
		}
	}

	// A program that ignores what it does not know ends by a signal all the same.
	m.want("plain\n", 0, "run", "-d", "--name", "plain", "--accel", "tcg", "--memory", "256M", "--init", m.root, "--", "/live", "await", "/never")
	m.want("plain\n", 0, "stop", "-t", "1000", "plain")
	m.want("143\n", 0, "wait", "plain")
}

// output is what a command prints, line by line.
type output struct{ r *bufio.Reader }

func piped(t *testing.T, c *exec.Cmd) *output {
	t.Helper()
	r, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	return &output{bufio.NewReader(r)}
}

func (o *output) until(t *testing.T, pattern string) {
	t.Helper()
	var said strings.Builder
	for want := regexp.MustCompile(pattern); ; {
		line, err := o.r.ReadString('\n')
		if said.WriteString(line); want.MatchString(strings.TrimRight(line, "\r\n")) {
			return
		}
		if err != nil {
			t.Fatalf("nothing says %q: %v\n%s", pattern, err, said.String())
		}
	}
}

// terminal runs a program in a terminal, which follows the size of the host's, by a command.
func (m *machines) terminal(t *testing.T, command ...string) {
	master, slave := ptytest.Open(t)
	size := func(rows, cols uint16) {
		if err := unix.IoctlSetWinsize(int(master.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: rows, Col: cols}); err != nil {
			t.Fatal(err)
		}
	}
	size(31, 97)
	c := m.command(command...)
	c.Stdin, c.Stdout, c.Stderr = slave, slave, slave
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	slave.Close()
	o := &output{bufio.NewReader(master)}
	o.until(t, `^terminal /dev/pts/\d+ true true$`)
	o.until(t, "^size 31 97$")
	size(50, 120)
	o.until(t, "^size 50 120$")
	if _, err := master.Write([]byte{3}); err != nil { // Ctrl-C, which the guest's terminal makes a signal
		t.Fatal(err)
	}
	o.until(t, "got interrupt$")
	c.Wait()
	if n := c.ProcessState.ExitCode(); n != 5 {
		t.Errorf("status %d, want 5", n)
	}
}

// copy takes files in and out.
func (m *machines) copy(t *testing.T, text string) {
	dir := t.TempDir()
	in := filepath.Join(dir, "in")
	if err := os.MkdirAll(filepath.Join(in, "a", "b"), 0o750); err != nil {
		t.Fatal(err)
	}
	for i := range 1500 {
		if err := os.WriteFile(filepath.Join(in, "a", fmt.Sprintf("a-name-that-is-not-short-%d", i)), []byte(text[:i]), 0o640); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(in, "big"), []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("../nowhere", filepath.Join(in, "a", "link")); err != nil {
		t.Fatal(err)
	}
	m.want("", 0, "cp", in, "web:/tmp/copy")
	m.want("", 0, "cp", "web:/tmp/copy", filepath.Join(dir, "out"))
	if out, err := exec.Command("diff", "-r", "--no-dereference", in, filepath.Join(dir, "out")).CombinedOutput(); err != nil {
		t.Errorf("%v: %.1000s", err, out)
	}
	if a, err := os.Stat(filepath.Join(dir, "out", "big")); err != nil || a.Mode().Perm() != 0o755 {
		t.Errorf("the mode of a file: %v, %v", a, err)
	}
	// With /. what is in a folder; with -L what a link leads to; with - a tar.
	if err := os.Mkdir(filepath.Join(dir, "flat"), 0o755); err != nil {
		t.Fatal(err)
	}
	m.want("", 0, "cp", "web:/tmp/copy/.", filepath.Join(dir, "flat"))
	if out, err := exec.Command("diff", "-r", "--no-dereference", in, filepath.Join(dir, "flat")).CombinedOutput(); err != nil {
		t.Errorf("%v: %.1000s", err, out)
	}
	if err := os.Symlink("big", filepath.Join(in, "to-big")); err != nil {
		t.Fatal(err)
	}
	m.want("", 0, "cp", "-L", filepath.Join(in, "to-big"), "web:/tmp/whole")
	m.want(text, 0, "exec", "web", "/live", "show", "/tmp/whole")
	m.want("", 0, "cp", filepath.Join(in, "to-big"), "web:/tmp/copy/to-big")
	m.want("", 0, "cp", "-L", "web:/tmp/copy/to-big", filepath.Join(dir, "whole"))
	if b, err := os.ReadFile(filepath.Join(dir, "whole")); err != nil || string(b) != text {
		t.Errorf("what a link leads to: %d bytes, %v", len(b), err)
	}
	m.tar(t, in, filepath.Join(dir, "unpacked"))
	m.want("", 1, "cp", "web:/nowhere", "-")
	m.want("", 1, "cp", "-", "web:/nowhere")
	m.want("", 1, "cp", "web:/nowhere", dir)
	m.want("", 1, "cp", "web:/dev/null", filepath.Join(dir, "x"))
	m.want("", 1, "cp", in, "web:/nowhere/x")
	m.want("", 2, "cp", in, dir)
}

// tar copies a folder in and out as a tar.
func (m *machines) tar(t *testing.T, in, out string) {
	t.Helper()
	plain, err := exec.Command("tar", "-C", filepath.Dir(in), "-c", filepath.Base(in)).Output()
	if err != nil {
		t.Fatal(err)
	}
	if said, errs, status := m.run(string(plain), "cp", "-", "web:/tmp"); said != "" || status != 0 {
		t.Errorf("cp of a tar: %q, %d: %s", said, status, errs)
	}
	packed, errs, status := m.run("", "cp", "web:/tmp/"+filepath.Base(in), "-")
	if err := os.Mkdir(out, 0o755); err != nil {
		t.Fatal(err)
	}
	unpack := exec.Command("tar", "-C", out, "-x")
	unpack.Stdin = strings.NewReader(packed)
	if said, err := unpack.CombinedOutput(); err != nil || status != 0 {
		t.Fatalf("%d: %s; tar: %v, %s", status, errs, err, said)
	}
	if said, err := exec.Command("diff", "-r", "--no-dereference", in, filepath.Join(out, filepath.Base(in))).CombinedOutput(); err != nil {
		t.Errorf("%v: %.1000s", err, said)
	}
	for name, h := range map[string]tar.Header{
		"up":          {Name: "../escaped", Typeflag: tar.TypeReg},
		"device":      {Name: "null", Typeflag: tar.TypeChar, Devmajor: 1, Devminor: 3},
		"over a link": {Name: filepath.Base(in) + "/a/link", Typeflag: tar.TypeReg},
		"by a link":   {Name: filepath.Base(in) + "/a/link/x", Typeflag: tar.TypeReg},
	} {
		var b bytes.Buffer
		w := tar.NewWriter(&b)
		if err := errors.Join(w.WriteHeader(&h), w.Close()); err != nil {
			t.Fatal(err)
		}
		if _, _, status := m.run(b.String(), "cp", "-", "web:/tmp"); status == 0 {
			t.Errorf("a tar with a name that is %s was unpacked", name)
		}
	}
}
