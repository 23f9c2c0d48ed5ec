package guest

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// copyFacts is what test/guest/live says of a machine; see there.
type copyFacts struct {
	Random, Device, Host, Boot, Machine string

	Time, Started, Up   int64
	Wiped, Kept, Inside bool
	Outside             string
}

// askCopy asks the machine behind a port of the host, which may still be starting to listen.
func askCopy(t *testing.T, port int) (f copyFacts) {
	t.Helper()
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	r, err := client.Get(fmt.Sprintf("http://127.0.0.1:%d/", port))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	if err := json.NewDecoder(r.Body).Decode(&f); err != nil {
		t.Fatal(err)
	}
	return f
}

// Copies of a machine that runs go on with its memory, and share nothing that must not be
// shared. The machine that was copied goes on.
func TestCopies(t *testing.T) {
	m := newMachines(t)
	if err := os.WriteFile(filepath.Join(m.root, "etc/machine-id"), []byte(strings.Repeat("0f", 16)+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	disk := filepath.Join(t.TempDir(), "disk")
	if err := os.WriteFile(disk, []byte(strings.Repeat("first...", 1<<17)), 0o600); err != nil {
		t.Fatal(err)
	}
	port, silent := freePort(t), freePort(t)
	args := []string{"run", "-d", "--name", "first", "--accel", "tcg", "--memory", "256M", "--disk", disk,
		"-p", fmt.Sprintf("%d:80", port), "-p", fmt.Sprintf("%d:81", silent), m.root, "--", "/live", "copies"}
	m.want("first\n", 0, args...)
	t.Cleanup(func() { exec.Command(m.tool, "rm", "-f", "first").Run() })
	for { // until it listens
		if out, _, _ := m.run("", "logs", "first"); strings.Contains(out, "serving copies") {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	first := askCopy(t, port)
	if first.Wiped || !first.Kept || !first.Inside || first.Host != "hardtack" {
		t.Fatalf("the first machine: %+v", first)
	}
	outside, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", silent))
	if err != nil {
		t.Fatal(err)
	}
	defer outside.Close()
	if line, err := bufio.NewReader(outside).ReadString('\n'); line != "go on\n" {
		t.Fatal(line, err)
	}
	snap := filepath.Join(t.TempDir(), "snap")
	if out, errs, status := m.run("", "snapshot", "first", "-o", snap); status != 0 || !strings.HasPrefix(out, snap) {
		t.Fatalf("%q, %d: %s", out, status, errs)
	}
	m.want("", 2, "snapshot", "first", "-o", snap)

	copies := 8
	if n, err := strconv.Atoi(os.Getenv("HARDTACK_COPIES")); err == nil && n > 0 {
		copies = n // the long form: as many, a few at once
	}
	atOnce := make(chan bool, 8)
	seen := map[string]bool{first.Random: true, first.Device: true, first.Host: true, first.Boot: true, first.Machine: true}
	var mu sync.Mutex
	var work sync.WaitGroup
	for i := range copies {
		name, port := fmt.Sprintf("copy%d", i), freePort(t)
		from := snap
		if i == copies-1 {
			from = "first" // which runs
		}
		atOnce <- true
		begun := time.Now()
		m.want(name+"\n", 0, "fork", from, "--name", name, "-p", fmt.Sprintf("%d:80", port))
		t.Cleanup(func() { exec.Command(m.tool, "rm", "-f", name).Run() })
		work.Go(func() {
			if i > 0 { // copy0 is entered below
				defer exec.Command(m.tool, "rm", "-f", name).Run()
			}
			defer func() { <-atOnce }()
			f := askCopy(t, port)
			for i := 0; f.Outside == "" && i < 1000; i++ { // who reads from it may not have run yet
				f.Outside = askCopy(t, port).Outside
			}
			mu.Lock()
			defer mu.Unlock()
			for _, s := range []string{f.Random, f.Device, f.Host, f.Boot, f.Machine} {
				if s == "" || seen[s] {
					t.Errorf("%s has what another machine has, too: %+v", name, f)
				}
				seen[s] = true
			}
			if !f.Wiped || !f.Kept || !f.Inside || f.Host != name || f.Started != first.Started {
				t.Errorf("%s: %+v", name, f)
			}
			if !strings.Contains(f.Outside, "connection reset by peer") {
				t.Errorf("%s: its connection with the outside ended with %q", name, f.Outside)
			}
			if at := time.Unix(0, f.Time); at.Before(begun) || at.After(time.Now()) {
				t.Errorf("%s: it is %v there", name, at)
			}
		})
	}
	work.Wait()
	if out, errs, status := m.run("", "exec", "copy0", "/live", "who"); status != 0 {
		t.Errorf("exec in a copy: %q, %d: %s", out, status, errs)
	}
	if f := askCopy(t, port); f.Boot != first.Boot || f.Machine != first.Machine || f.Wiped || f.Outside != "" {
		t.Errorf("the first machine after it was copied: %+v", f)
	}
	if _, errs, status := m.run("", "snapshot", "copy0", "-o", snap+"2"); status != 2 || !strings.Contains(errs, "is a copy itself") {
		t.Errorf("a snapshot of a copy: %d: %s", status, errs)
	}
	badSnapshots(t, m, snap)
}

// An image that was warmed goes on where it had printed a text.
func TestWarm(t *testing.T) {
	m := newMachines(t)
	snap := filepath.Join(t.TempDir(), "snap")
	m.want(snap+"\n", 0, "image", "warm", "-o", snap, "--when", "serving warm", "--", "--accel", "tcg", "--memory", "256M", m.root, "--", "/live", "serve", "warm")
	m.want("", 0, "ps", "-a", "-q")
	m.want("warm1\n", 0, "run", "-d", "--from", snap, "--name", "warm1")
	if out, errs, status := m.run("", "exec", "warm1", "/live", "exit", "7"); status != 7 || !strings.Contains(out, "leaving with 7") {
		t.Errorf("exec: %q, %d: %s", out, status, errs)
	}
	m.want("warm1\n", 0, "rm", "-f", "warm1")
	_, errs, status := m.run("", "image", "warm", "-o", snap+"2", "--when", "no such text", "--", "--accel", "tcg", "--memory", "256M", m.root, "--", "/live", "exit", "0")
	if status == 0 || !strings.Contains(errs, "never printed") {
		t.Errorf("a text that never comes: %d: %s", status, errs)
	}
	m.want("", 0, "ps", "-a", "-q")
}

// badSnapshots has what is no snapshot refused.
func badSnapshots(t *testing.T, m *machines, snap string) {
	refused := func(what, want string, flags ...string) {
		t.Helper()
		out, errs, status := m.run("", append([]string{"run", "--from", snap, "--timeout", "60s"}, flags...)...)
		if out != "" || status != 2 || !strings.Contains(errs, want) || strings.Count(errs, "\n") != 1 {
			t.Errorf("%s: %q, %d: %s; want %q", what, out, status, errs, want)
		}
	}
	damage := func(file string, change func(b []byte) []byte) (undo func()) {
		t.Helper()
		name := filepath.Join(snap, file)
		old, err := os.ReadFile(name)
		if err == nil {
			err = os.WriteFile(name, change([]byte(string(old))), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		return func() {
			if err := os.WriteFile(name, old, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	half := func(b []byte) []byte { return b[:len(b)/2] }
	refused("a program", "no ROOT", m.root, "--", "/live")
	refused("another size", "--memory", "--memory", "1G")
	refused("another kernel", "another kernel", "--kernel", filepath.Join(m.root, "live"))
	undo := damage("state", half)
	refused("half a state", "cut off")
	undo()
	undo = damage("snapshot.json", half)
	refused("half a description", "snapshot.json")
	undo()
	undo = damage("snapshot.json", func(b []byte) []byte { return []byte(strings.Replace(string(b), `"format": 1`, `"format": 99`, 1)) })
	refused("another version", "another version")
	undo()
	undo = damage("disk0", half)
	refused("half a disk", "has changed")
	undo()
	name := filepath.Join(snap, "memory")
	st, err := os.Stat(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(name, st.Size()/2); err != nil {
		t.Fatal(err)
	}
	refused("half a memory", "its memory")
	if err := os.RemoveAll(snap); err != nil {
		t.Fatal(err)
	}
	refused("no snapshot", "there is none")
}

// freePort is a port of the host that nobody has.
func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}
