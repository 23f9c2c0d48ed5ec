package osbench

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"
)

// Profile writes a profile of Hardtack's kernel for the compiler
// (cmd/kernel/default.pgo): of each load of the servers from the host, for a
// while each, and of the rows of the table, which share as long a while.
func (b *Bench) Profile(out string) error {
	dir, err := os.MkdirTemp(b.Dirs.Cache, "profile")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	loads := func(host map[int][]int, pprof int) (parts []string, err error) {
		for i, load := range Loads {
			b.Log("profiling %s", load.Name)
			done := make(chan error, 1)
			go func() {
				_, _, err := load.Run(host[load.Port], b.Load+time.Second)
				done <- err
			}()
			part := filepath.Join(dir, strconv.Itoa(i))
			if err := fetchProfile(pprof, b.Load, part); err != nil {
				return nil, err
			}
			if err := <-done; err != nil {
				return nil, err
			}
			parts = append(parts, part)
		}
		return parts, nil
	}
	rows := func(_ map[int][]int, pprof int) ([]string, error) {
		b.Log("profiling the rows of the table")
		part := filepath.Join(dir, "rows")
		return []string{part}, fetchProfile(pprof, time.Duration(len(Loads))*b.Load, part)
	}
	parts, err := b.profiled(HostCommands, loads)
	if err != nil {
		return err
	}
	more, err := b.profiled(RowCommands(), rows)
	if err != nil {
		return err
	}
	return mergeProfiles(out, append(parts, more...))
}

// profiled boots a machine with the servers and these commands, and has watch take
// profiles of it.
func (b *Bench) profiled(commands string, watch func(host map[int][]int, pprof int) ([]string, error)) ([]string, error) {
	servers, err := Servers(b.Dirs)
	if err != nil {
		return nil, err
	}
	root, err := Programs(b.Dirs, commands)
	if err != nil {
		return nil, err
	}
	root.Merge(servers)
	ports, host, err := forwards()
	if err != nil {
		return nil, err
	}
	pprof, err := freePort()
	if err != nil {
		return nil, err
	}
	m, err := Boot{OS: OnHardtack, Root: root, CPUs: 1, Memory: "512M", Machine: b.Machine, Ports: ports,
		Pprof: pprof, Timeout: 10 * time.Minute}.Start(b.Dirs, b.Linux)
	if err != nil {
		return nil, err
	}
	defer m.Stop()
	if err := waitServers(m, host); err != nil {
		return nil, err
	}
	return watch(host, pprof)
}

// mergeProfiles makes one profile of several.
func mergeProfiles(out string, parts []string) error {
	f, err := os.Create(out)
	if err != nil {
		return err
	}
	cmd := exec.Command("go", append([]string{"tool", "pprof", "-proto"}, parts...)...)
	cmd.Stdout = f
	err = cmd.Run()
	if e := f.Close(); err == nil {
		err = e
	}
	if err != nil {
		return fmt.Errorf("go tool pprof -proto: %w", err)
	}
	return nil
}

// fetchProfile lets the kernel watch itself.
func fetchProfile(port int, d time.Duration, name string) error {
	r, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d/debug/pprof/profile?seconds=%d", port, max(int(d.Seconds()), 1)))
	if err != nil {
		return err
	}
	defer r.Body.Close()
	data, err := io.ReadAll(r.Body)
	if err == nil && r.StatusCode != http.StatusOK {
		err = fmt.Errorf("the profile: %s: %.100s", r.Status, data)
	}
	if err != nil {
		return err
	}
	return os.WriteFile(name, data, 0o644)
}
