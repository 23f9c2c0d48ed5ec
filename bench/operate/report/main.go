// Command report measures what it takes to start machines, to copy one that runs, and to run
// a program in it, and writes docs/bench/operate.md.
//
//	report [-reps 7]
//
// It needs QEMU, gcc, and apt for Debian's kernel and servers.
package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"hardtack/bench/internal/report"
	osbench "hardtack/bench/os"
)

func main() { report.Main(run) }

// bench is what is measured: milliseconds or megabytes by row.
type bench struct {
	osbench.Bench
	tool string
	dir  string // of archives and snapshots
	rows map[string][]float64
}

func (b *bench) add(row string, v float64) { b.rows[row] = append(b.rows[row], v) }

func run() error {
	reps := flag.Int("reps", 7, "measurements of a row")
	flag.Parse()
	if err := report.AtLeastOne("reps", *reps); err != nil {
		return err
	}
	inner, qemu, err := osbench.Setup("linux,hardtack", report.Log)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "operate")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := os.Setenv("XDG_RUNTIME_DIR", dir); err != nil {
		return err
	}
	b := &bench{Bench: inner, tool: filepath.Join(inner.Dirs.Repo, "bin", "hardtack"), dir: dir, rows: map[string][]float64{}}
	for i := range *reps {
		b.Log("starts, %d of %d", i+1, *reps)
		if err := b.starts(); err != nil {
			return err
		}
	}
	if err := b.copies(*reps); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(inner.Dirs.Repo, "docs/bench/operate.md"), b.page(qemu, *reps), 0o644)
}

// starts boots an image that is empty but for what measures it, and one with Redis.
func (b *bench) starts() error {
	servers, err := osbench.Servers(b.Dirs)
	if err != nil {
		return err
	}
	empty, err := osbench.Programs(b.Dirs, "")
	if err != nil {
		return err
	}
	redis, err := osbench.Programs(b.Dirs, "& /usr/bin/redis-server /etc/redis.conf\nport 6379\nforever\n")
	if err != nil {
		return err
	}
	redis.Merge(servers)
	for _, system := range b.Systems {
		boot := osbench.Boot{OS: system, Root: empty, CPUs: 2, Memory: "256M", Machine: "microvm", Timeout: 5 * time.Minute}
		m, err := boot.Start(b.Dirs, b.Linux)
		if err != nil {
			return err
		}
		if _, err := m.Wait(); err != nil {
			return err
		}
		b.add(fmt.Sprint("empty ", system), ms(m.Booted()))
		port, err := freePort()
		if err != nil {
			return err
		}
		boot.Root, boot.Ports = redis, map[int]int{port: 6379}
		begun := time.Now()
		if m, err = boot.Start(b.Dirs, b.Linux); err != nil {
			return err
		}
		if err = answer(port); err == nil {
			b.add(fmt.Sprint("redis ", system), ms(time.Since(begun)))
		} else { // the figure is of fewer starts then
			b.Log("%v: %v: %s", system, err, m.Output())
		}
		m.Stop()
	}
	return nil
}

// copies forks a machine with Redis.
func (b *bench) copies(reps int) error {
	servers, err := osbench.Servers(b.Dirs)
	if err != nil {
		return err
	}
	servers.Add("tmp", os.ModeDir|0o777, nil) // where Redis works
	root, snap := filepath.Join(b.dir, "redis.cpio"), filepath.Join(b.dir, "snap")
	if err := os.WriteFile(root, servers.CPIO(), 0o600); err != nil {
		return err
	}
	port, err := freePort()
	if err != nil {
		return err
	}
	if _, err := b.hardtack("run", "-d", "--name", "first", "--accel", "tcg", "--memory", "256M", "-p", fmt.Sprintf("%d:6379", port),
		root, "--", "/usr/bin/redis-server", "/etc/redis.conf"); err != nil {
		return err
	}
	defer b.hardtack("rm", "-f", "first")
	if err := answer(port); err != nil {
		return err
	}
	for i := range reps {
		b.Log("copies, %d of %d", i+1, reps)
		if err := os.RemoveAll(snap); err != nil {
			return err
		}
		out, err := b.hardtack("snapshot", "--json", "first", "-o", snap)
		if err != nil {
			return err
		}
		var said struct{ Paused float64 }
		if err := json.Unmarshal(out, &said); err != nil {
			return err
		}
		b.add("pause", said.Paused*1000)
		begun := time.Now()
		if _, err := b.hardtack("exec", "first", "/usr/bin/redis-server", "--version"); err != nil {
			return err
		}
		b.add("exec", ms(time.Since(begun)))
		if err := b.copy(snap); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) copy(snap string) error {
	port, err := freePort()
	if err != nil {
		return err
	}
	begun := time.Now()
	defer b.hardtack("rm", "-f", "copy")
	if _, err := b.hardtack("fork", snap, "--name", "copy", "-p", fmt.Sprintf("%d:6379", port)); err != nil {
		return err
	}
	b.add("fork", ms(time.Since(begun)))
	if err := answer(port); err != nil {
		return err
	}
	b.add("reply", ms(time.Since(begun)))
	out, err := b.hardtack("inspect", "--format", "{{.QEMU}}", "copy")
	if err != nil {
		return err
	}
	all, guest, code, err := private(strings.TrimSpace(string(out)))
	b.add("private", all)
	b.add("guest", guest)
	b.add("code", code)
	return err
}

// private is how many MB of memory are a process's alone: not of a file. (Private_Dirty would
// count pages of the snapshot that have not reached the disk yet and that one copy uses.)
// Of those guest are the machine's memory, and code is what QEMU translated.
func private(pid string) (all, guest, code float64, err error) {
	text, err := os.ReadFile("/proc/" + pid + "/smaps")
	of := &code
	for line := range strings.Lines(string(text)) {
		w := strings.Fields(line)
		switch {
		case len(w) >= 5 && !strings.HasSuffix(w[0], ":"):
			var other float64
			if of = &other; len(w) == 6 && strings.HasSuffix(w[5], "/memory") {
				of = &guest
			} else if w[1] == "rwxp" {
				of = &code
			}
		case len(w) > 1 && w[0] == "Anonymous:":
			var kib float64
			if kib, err = strconv.ParseFloat(w[1], 64); err != nil {
				return 0, 0, 0, err
			}
			*of += kib / 1024
			all += kib / 1024
		}
	}
	return all, guest, code, err
}

func (b *bench) hardtack(args ...string) ([]byte, error) {
	var errs bytes.Buffer
	cmd := exec.Command(b.tool, args...)
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("hardtack %s: %w: %s", args[0], err, errs.Bytes())
	}
	return out, err
}

// answer waits until Redis answers behind a port of the host: QEMU accepts before the
// guest listens.
func answer(port int) error {
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
		if ping(port) {
			return nil
		}
	}
	return fmt.Errorf("nobody answers behind port %d", port)
}

func ping(port int) bool {
	c, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return false
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(time.Second))
	if _, err := io.WriteString(c, "PING\r\n"); err != nil {
		return false
	}
	var b [7]byte
	_, err = io.ReadFull(c, b[:])
	return err == nil && string(b[:]) == "+PONG\r\n"
}

func freePort() (int, error) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

func ms(d time.Duration) float64 { return d.Seconds() * 1000 }

func (b *bench) page(qemu string, reps int) []byte {
	var p bytes.Buffer
	load, _ := os.ReadFile("/proc/loadavg")
	fmt.Fprintf(&p, `# Starting, copying and entering machines

Milliseconds on the host's clock: the median of %d, with the least and the most in brackets. %s,
microvm, TCG, 2 CPUs, 256 MiB; Linux is Debian's %s with the same programs. Written by
`+"`make bench-operate`"+`. The host's load over the last minute was %s at the end; times of a busy
host are longer, and the least is closest to an idle one.

| | Hardtack | Linux |
| --- | ---: | ---: |
| an empty image, to the first line of init | %s | %s |
| Redis from an archive, to the first PONG | %s | %s |
| Redis by `+"`hardtack fork`"+` of a snapshot, until the command returns | %s | |
| the same, to the first PONG | %s | |
| the first machine stands still while it is saved | %s | |
| private memory of a copy's QEMU after its first PONG, MiB | %s | |
| of that the copy's own pages of the machine's memory | %s | |
| of that code that QEMU translated (TCG) | %s | |
| `+"`hardtack exec`"+` of redis-server --version, dynamically linked | %s | |

The goals for an idle host were 20 ms of standing still, 100 ms to the first reply of a copy and
12 MiB of private memory. The last is missed because of the emulator: besides translated code,
QEMU's own heap and the libraries that it relocates are 14 MiB, and a copy writes to less than
2 MiB of the machine's memory. Not measured yet: starts from a disk, folders by 9P, and what
metrics and traces cost.
`, reps, qemu, b.Linux.Release, strings.Fields(string(load) + " ?")[0],
		b.cell("empty Hardtack"), b.cell("empty Linux"), b.cell("redis Hardtack"), b.cell("redis Linux"),
		b.cell("fork"), b.cell("reply"), b.cell("pause"), b.cell("private"), b.cell("guest"), b.cell("code"), b.cell("exec"))
	return p.Bytes()
}

func (b *bench) cell(row string) string {
	v := b.rows[row]
	if len(v) == 0 {
		return "?"
	}
	return fmt.Sprintf("%.0f [%.0f … %.0f]", report.Median(v), slices.Min(v), slices.Max(v))
}
