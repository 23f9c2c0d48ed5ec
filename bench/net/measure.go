package netbench

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	osbench "hardtack/bench/os"
)

// Config says what is measured.
type Config struct {
	osbench.Bench
	Repeats int      // measurements of a row
	Only    []string // rows by name; none: all
	CPUs    int
	pprof   int // the guest's port for Hardtack's profiles; 0 for none
}

// Figures are row → system → one figure a measurement.
type Figures map[string]map[string][]float64

// commands start the servers. NGINX and Redis come first: the others run until the end.
const commands = "& /usr/bin/redis-server /etc/redis.conf\n& /usr/sbin/nginx\nport 6379\nport 80\n& /bench/net\nforever\n"

// root is the guest's file system.
func (c *Config) root() (osbench.Tree, error) {
	t, err := osbench.Programs(c.Dirs, commands)
	if err != nil {
		return nil, err
	}
	servers, err := osbench.Servers(c.Dirs)
	if err != nil {
		return nil, err
	}
	t.Merge(servers)
	t.Add("srv/file", 0o644, bytes.Repeat([]byte("Hardtack"), 4096))
	name := filepath.Join(c.Dirs.Cache, "net")
	cc := exec.Command("gcc", "-static", "-O2", "-Wall", "-s", "-o", name, filepath.Join(c.Dirs.Repo, "bench", "net", "guest", "net.c"))
	if out, err := cc.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("gcc: %w\n%s", err, out)
	}
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	t.Add("bench/net", 0o755, data)
	return t, nil
}

// Measure boots each system once and counts the rows.
func (c *Config) Measure() (Figures, error) {
	root, err := c.root()
	if err != nil {
		return nil, err
	}
	f := Figures{}
	for _, system := range c.Systems {
		if err := c.Watch(system, root, func(count *counter) error { return c.rows(f, system, count) }); err != nil {
			return f, fmt.Errorf("%v: %w", system, err)
		}
	}
	return f, nil
}

// Watch boots a system and hands its counter to a function.
func (c *Config) Watch(system osbench.OS, root osbench.Tree, watch func(*counter) error) error {
	dir, err := os.MkdirTemp("", "net")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	cable := filepath.Join(dir, "cable")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: cable, Net: "unix"})
	if err != nil {
		return err
	}
	defer l.Close()
	m, err := osbench.Boot{OS: system, Root: root, CPUs: c.CPUs, Memory: "512M", ICount: true, Kernel: c.Kernel, Machine: c.Machine, Pprof: c.pprof,
		Netdev: "stream,server=off,addr.type=unix,addr.path=" + cable, Timeout: 20 * time.Minute}.Start(c.Dirs, c.Linux)
	if err != nil {
		return err
	}
	defer m.Stop()
	p, err := Accept(l, 30*time.Second)
	if err != nil {
		return fmt.Errorf("%w; the console:\n%s", err, m.Output())
	}
	defer p.Close()
	count := &counter{p: p, port: p.listen()}
	for began := time.Now(); ; {
		if _, err = p.Exchange(count.port, portControl, []byte("m"), time.Second); err == nil {
			break
		}
		if time.Since(began) > 3*time.Minute {
			return fmt.Errorf("%w; the console:\n%s", err, m.Output())
		}
	}
	if err := watch(count); err != nil {
		return fmt.Errorf("%w; the console:\n%s", err, m.Output())
	}
	return nil
}

func (c *Config) rows(f Figures, system osbench.OS, count *counter) error {
	for _, r := range Rows {
		if len(c.Only) > 0 && !slices.Contains(c.Only, r.Name) {
			continue
		}
		began := time.Now()
		per, err := count.measure(r, c.Repeats)
		if err != nil {
			return fmt.Errorf("%s: %w", r.Name, err)
		}
		if f[r.Name] == nil {
			f[r.Name] = map[string][]float64{}
		}
		f[r.Name][system.String()] = per
		slices.Sort(per)
		c.Log("%v: %s %.0f (%.0f to %.0f), %.1f s", system, r.Name, per[len(per)/2], per[0], per[len(per)-1], time.Since(began).Seconds())
	}
	return nil
}
