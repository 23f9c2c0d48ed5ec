// Package tcp plays scripts of TCP segments against a guest and compares what comes back
// with what Linux 6.1 sent.
//
// A script in testdata has a line for each step; what came is written below the line that
// it came after. NAME.tcp is the script, NAME.linux its trace on Linux, NAME.hardtack the
// trace of Hardtack where it differs, after a line that says why. Renew Linux's:
//
//	HARDTACK_GUEST=1 go test ./test/tcp -run TestScripts -linux
//
// HARDTACK_KERNEL names another image of Hardtack.
//
// The steps:
//
//	> FLAGS WORDS   a segment to the guest: letters of FSRPAUEW or -, then seq=N ack=N (from
//	                the first numbers, with a sign from the next), len=N, text=T, win=N, urg=N,
//	                sum (a wrong checksum), tos=N, offset=N, block=N-N, mss=N, ws=N, sack,
//	                ts (ts=N: N older than now), nots, hex=BYTES
//	< N             waits for N segments
//	acked           waits until all is acknowledged, in however many segments
//	fence           shows what the guest sent until it had seen all before
//	pause N         the same, after N milliseconds
//	open OPTIONS    the guest listens and accepts a connection in socket 0
//	dial            the guest connects socket 0 to us
//	other, again N  another connection; the same addresses with another first number
//	fill N          segments of N bytes until the guest's window is shut
//	: REQUEST       a request to guest/agent.c
//
// The guest's acknowledgements may wait for a while, so a script waits for each of them.
package tcp

import (
	"bufio"
	"flag"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	osbench "hardtack/bench/os"
)

var (
	linux = flag.Bool("linux", false, "boot Debian's kernel and renew its traces")
	known = flag.Bool("known", false, "write the traces that differ from Linux's; their reasons are written by hand")
	only  = flag.String("script", "", "play only scripts whose names contain this")
)

// boot starts a machine whose agent answers.
func boot(t *testing.T, system osbench.OS) *cable {
	t.Helper()
	if os.Getenv("HARDTACK_GUEST") == "" {
		t.Skip("boots a guest; set HARDTACK_GUEST=1")
	}
	for _, tool := range []string{"qemu-system-x86_64", "gcc"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip("needs " + tool)
		}
	}
	d, err := osbench.FindDirs()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	command := func(name string, args ...string) {
		c := exec.Command(name, args...)
		c.Dir = d.Repo
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", name, err, out)
		}
	}
	repo := d.Repo
	d.Cache = dir // of the programs
	root, err := osbench.Programs(d, "& /bench/agent\nforever\n")
	if err != nil {
		t.Fatal(err)
	}
	agent := filepath.Join(dir, "agent")
	command("gcc", "-static", "-O2", "-Wall", "-Wextra", "-o", agent, "test/tcp/guest/agent.c")
	program, err := os.ReadFile(agent)
	if err != nil {
		t.Fatal(err)
	}
	root.Add("bench/agent", 0o755, program)
	b := osbench.Boot{OS: system, Root: root, CPUs: 1, Memory: "512M", Machine: "microvm", Timeout: 20 * time.Minute}
	var kernel osbench.LinuxKernel
	if system == osbench.OnLinux {
		debian := d
		debian.Cache = filepath.Join(repo, "build", "bench")
		if kernel, err = osbench.Linux(debian); err != nil {
			t.Fatal(err)
		}
	} else {
		d.Tool, b.Kernel = filepath.Join(dir, "hardtack"), os.Getenv("HARDTACK_KERNEL")
		command("go", "build", "-o", d.Tool, "./cmd/hardtack")
		if b.Kernel == "" {
			b.Kernel = filepath.Join(dir, "kernel.elf")
			command(d.Tool, "build", "-o", b.Kernel)
		}
	}
	name := filepath.Join(dir, "cable")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: name, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	b.Netdev = "stream,server=off,addr.type=unix,addr.path=" + name
	m, err := b.Start(d, kernel)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		m.Stop()
		if t.Failed() {
			t.Log("the console:\n" + m.Output())
		}
	})
	l.SetDeadline(time.Now().Add(3 * time.Minute))
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err, m.Output())
	}
	t.Cleanup(func() { c.Close() })
	cable := &cable{c: c, r: bufio.NewReaderSize(c, 1<<20)}
	for began := time.Now(); ; {
		if _, err := cable.ask(time.Second, "reset"); err == nil {
			break
		} else if time.Since(began) > 5*time.Minute {
			t.Fatal(err)
		}
	}
	// Answers to the first attempts may still come.
	if err := cable.fence(patient); err != nil {
		t.Fatal(err)
	}
	// Linux limits its answers to bad segments in time, which no script waits for.
	if _, err := cable.ask(patient, "sysctl /proc/sys/net/ipv4/tcp_invalid_ratelimit 0"); err != nil {
		t.Fatal(err)
	}
	return cable
}

// TestScripts plays all scripts. A guest that had no processor for a while sends again what
// nobody acknowledged: a script whose trace is wrong and has a segment twice is played again, and
// must be right once in five times.
func TestScripts(t *testing.T) {
	scripts, err := filepath.Glob("testdata/*" + *only + "*.tcp")
	if err != nil || len(scripts) == 0 {
		t.Fatal("no scripts", err)
	}
	system := osbench.OnHardtack
	if *linux {
		system = osbench.OnLinux
	}
	c := boot(t, system)
	for i, name := range scripts {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".tcp"), func(t *testing.T) {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			base := strings.TrimSuffix(name, ".tcp")
			for attempt := 1; ; attempt++ {
				trace, err := run(c, port(i), string(text))
				if err != nil {
					t.Fatalf("%v\n%s", err, trace)
				}
				if *linux || *known {
					renew(t, base, trace)
					return
				}
				wrong := compare(t, base, trace)
				if wrong == "" {
					return
				}
				if attempt == 5 || !sentAgain(trace) {
					t.Fatalf("- as it should be, + as it is:\n%s", wrong)
				}
				t.Logf("- as it should be, + as it is, and it is played again:\n%s", wrong)
				i += len(scripts)
			}
		})
	}
}

// sentAgain tells whether the guest has sent some data, SYN or FIN twice.
func sentAgain(trace string) bool {
	seen := map[string]bool{}
	for line := range strings.Lines(trace) {
		w := strings.Fields(line) // "< FA seq 1 ack 1 len 1000 ts"
		if len(w) < 4 || w[0] != "<" || w[2] != "seq" || !strings.ContainsAny(w[1], "SF") && !slices.Contains(w, "len") {
			continue
		}
		if seen[w[1]+w[3]] {
			return true
		}
		seen[w[1]+w[3]] = true
	}
	return false
}

// port is where the i-th play begins; some need several.
func port(i int) uint16 { return uint16(8000 + 50*i) }

// renew writes a trace: Linux's, or one that differs from it.
func renew(t *testing.T, base, trace string) {
	t.Helper()
	if *linux {
		if err := os.WriteFile(base+".linux", []byte(trace), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(base + ".linux")
	if err != nil {
		t.Fatal(err)
	}
	reason, _ := differs(base)
	os.Remove(base + ".hardtack")
	if trace != string(want) {
		if err := os.WriteFile(base+".hardtack", []byte(reason+trace), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// differs is the trace that is known to differ from Linux's, and why it does.
func differs(base string) (reason, trace string) {
	kept, _ := os.ReadFile(base + ".hardtack")
	trace = string(kept)
	for strings.HasPrefix(trace, "#") {
		line, rest, _ := strings.Cut(trace, "\n")
		reason, trace = reason+line+"\n", rest
	}
	return reason, trace
}

// compare says where a trace is not Linux's, or not the one that is known to differ.
func compare(t *testing.T, base, trace string) string {
	t.Helper()
	linux, err := os.ReadFile(base + ".linux")
	if err != nil {
		t.Fatal(err)
	}
	want := string(linux)
	if reason, kept := differs(base); kept != "" {
		if reason == "" {
			t.Error("nobody says why it differs from Linux")
		}
		if trace == want {
			return base + ".hardtack is no longer needed\n"
		}
		want = kept
	}
	return difference(want, trace)
}

// difference marks the lines in which two traces of one script differ.
func difference(want, got string) string {
	if want == got {
		return ""
	}
	a, b := strings.Split(want, "\n"), strings.Split(got, "\n")
	same := make([][]int, len(a)+1) // the longest common part from two lines on
	for i := range same {
		same[i] = make([]int, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if same[i][j] = max(same[i+1][j], same[i][j+1]); a[i] == b[j] {
				same[i][j] = 1 + same[i+1][j+1]
			}
		}
	}
	var text strings.Builder
	for i, j := 0, 0; i < len(a) || j < len(b); {
		switch {
		case i < len(a) && j < len(b) && a[i] == b[j]:
			text.WriteString("  " + a[i] + "\n")
			i, j = i+1, j+1
		case j == len(b) || i < len(a) && same[i+1][j] >= same[i][j+1]:
			text.WriteString("- " + a[i] + "\n")
			i++
		default:
			text.WriteString("+ " + b[j] + "\n")
			j++
		}
	}
	return text.String()
}
