// Command report measures what it takes to start machines, to copy one that runs, and to run
// a program in it, and writes docs/bench/operate.md.
//
//	report [-reps 7] [-parts starts,copies,looking,folders]
//
// Figures of parts that are not measured are those of the last time, which build/bench keeps.
//
// It needs QEMU, gcc, and apt for Debian's kernel and servers.
package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"hardtack/bench/internal/report"
	osbench "hardtack/bench/os"
)

func main() { report.Main(run) }

// bench is what is measured.
type bench struct {
	osbench.Bench
	tool string
	dir  string               // of archives and snapshots
	part string               // that is being measured
	rows map[string][]float64 // by part and row, as in "copies pause"
}

func (b *bench) add(row string, v float64) {
	row = b.part + " " + row
	b.rows[row] = append(b.rows[row], v)
}

func run() error {
	reps := flag.Int("reps", 7, "measurements of a row")
	parts := flag.String("parts", "starts,copies,looking,folders", "what is measured")
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
	kept := filepath.Join(inner.Dirs.Cache, "operate.json")
	if text, err := os.ReadFile(kept); err == nil {
		if err := json.Unmarshal(text, &b.rows); err != nil {
			return fmt.Errorf("%s: %w", kept, err)
		}
	}
	all := map[string]func(reps int) error{"starts": b.starts, "copies": b.copies, "looking": b.looking, "folders": b.folders}
	for part := range strings.SplitSeq(*parts, ",") {
		if all[part] == nil {
			return fmt.Errorf("-parts: there is no part %q", part)
		}
		maps.DeleteFunc(b.rows, func(row string, _ []float64) bool { return strings.HasPrefix(row, part+" ") })
		b.part = part
		if err := all[part](*reps); err != nil {
			return err
		}
		if attr, err := unix.SchedGetAttr(0, 0); err == nil && (attr.Policy == unix.SCHED_FIFO || attr.Policy == unix.SCHED_RR) {
			b.add("realtime", 1)
		}
		if load, err := os.ReadFile("/proc/loadavg"); err == nil {
			if v, err := strconv.ParseFloat(strings.Fields(string(load))[0], 64); err == nil {
				b.add("load", v)
			}
		}
	}
	text, err := json.Marshal(b.rows)
	if err != nil {
		return err
	}
	if err := os.WriteFile(kept, text, 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(inner.Dirs.Repo, "docs/bench/operate.md"), b.page(qemu), 0o644)
}

func (b *bench) starts(reps int) error {
	for i := range reps {
		b.Log("starts, %d of %d", i+1, reps)
		if err := b.start(); err != nil {
			return err
		}
	}
	return nil
}

// start boots an image that is empty but for what measures it, and one with Redis.
func (b *bench) start() error {
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
		if err := b.fromDisk(system, servers); err != nil {
			return err
		}
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
		if err := b.idle(snap); err != nil {
			return err
		}
	}
	return b.many(snap)
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
	all, guest, code, err := b.private("copy")
	b.add("private", all)
	b.add("guest", guest)
	b.add("code", code)
	return err
}

// idle measures a copy that nobody has asked anything.
func (b *bench) idle(snap string) error {
	defer b.hardtack("rm", "-f", "idle")
	if _, err := b.hardtack("fork", snap, "--name", "idle"); err != nil {
		return err
	}
	time.Sleep(time.Second)
	all, _, _, err := b.private("idle")
	b.add("idle", all)
	return err
}

// private is how many MB of memory are a machine's QEMU's alone: not of a file. (Private_Dirty would
// count pages of the snapshot that have not reached the disk yet and that one copy uses.)
// Of those guest are the machine's memory, and code is what QEMU translated.
func (b *bench) private(name string) (all, guest, code float64, err error) {
	out, err := b.hardtack("inspect", "--format", "{{.QEMU}}", name)
	if err != nil {
		return 0, 0, 0, err
	}
	text, err := os.ReadFile(filepath.Join("/proc", strings.TrimSpace(string(out)), "smaps"))
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
