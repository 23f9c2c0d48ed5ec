package guest

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// recorded is a file of hardtack record.
type recorded struct {
	TraceEvents []struct {
		Ph   string
		Name string
		PID  int64
		Dur  float64
	}
}

func readRecord(t *testing.T, name string) (r recorded) {
	t.Helper()
	b, err := os.ReadFile(name)
	if err == nil {
		err = json.Unmarshal(b, &r)
	}
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// count counts the events of a name, or whose name begins so.
func (r *recorded) count(name string) (n int) {
	for _, e := range r.TraceEvents {
		if e.Ph != "M" && strings.HasPrefix(e.Name, name) {
			n++
		}
	}
	return n
}

// The flight recorder of a machine that runs, of a call that panics, and of a kernel that
// panics.
func TestRecord(t *testing.T) {
	m := newMachines(t)
	m.start("web", "--panic", "stop", "--ui", ":0")
	file := filepath.Join(t.TempDir(), "web.json")
	if _, errs, status := m.run("", "record", "web", "-o", file); status != 0 {
		t.Fatalf("record: %d, %s", status, errs)
	}
	r := readRecord(t, file)
	if r.count("goroutine ") == 0 || r.count("irq ") == 0 {
		t.Errorf("the record has %d runs of goroutines and %d interrupts", r.count("goroutine "), r.count("irq "))
	}

	// All calls while it is asked for, beside a trace that is refused meanwhile.
	rec := m.command("record", "--for", "3s", "web", "-o", file)
	if err := rec.Start(); err != nil {
		t.Fatal(err)
	}
	for range 20 {
		m.want("leaving with 0\n", 0, "exec", "web", "/live", "exit", "0")
		if rec.ProcessState != nil {
			break
		}
	}
	if err := rec.Wait(); err != nil {
		t.Fatal(err)
	}
	if r = readRecord(t, file); r.count("write") == 0 || r.count("mmap") == 0 || r.count("thread ") == 0 {
		t.Errorf("of all calls the record has %d writes, %d mmaps, and %d runs of threads that have ended", r.count("write"), r.count("mmap"), r.count("thread "))
	}
	// The way of all calls is as ever afterwards.
	if _, errs, status := m.run("", "trace", "-p", "999999", "web"); status != 2 {
		t.Errorf("a trace after it: %d, %s", status, errs)
	}

	page, _, _ := m.run("", "inspect", "--format", "{{.Page}}", "web")
	a, err := http.Get(strings.TrimSpace(page) + "flame?seconds=1")
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	var flame struct{ Name string }
	if err := json.NewDecoder(a.Body).Decode(&flame); err != nil || a.StatusCode != 200 || flame.Name != "kernel" {
		t.Errorf("the flame graph: %d %v, %v", a.StatusCode, flame, err)
	}

	m.run("", "exec", "web", "/live", "put", "/proc/hardtack/oops", "panic")
	out, _, _ := m.run("", "wait", "web")
	if out != "70\n" {
		t.Fatalf("a kernel that panics ends with %q", out)
	}
	if out, errs, status := m.run("", "record", "web", "-o", file); status != 0 || !strings.Contains(out, "events") {
		t.Fatalf("record of a machine whose kernel panicked: %d, %s", status, errs)
	}
	if r = readRecord(t, file); r.count("thread ") == 0 || r.count("goroutine ") == 0 {
		t.Errorf("a kernel that panics leaves %d runs of threads, %d of goroutines", r.count("thread "), r.count("goroutine "))
	}
	if out, _, _ := m.run("", "logs", "web"); !strings.Contains(out, "panic: asked for") || strings.Contains(out, "flight recorder") {
		t.Errorf("the log of it:\n%s", tail(out, 30))
	}
	m.want("web\n", 0, "rm", "web")
}
