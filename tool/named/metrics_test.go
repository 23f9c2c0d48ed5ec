package named

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"hardtack/idl/live"
)

// measured is a guest with files of /proc/hardtack.
type measured struct {
	*guest
	files map[string]string
}

func (g measured) Health(context.Context, live.HealthCall) (live.HealthReply, error) {
	return live.HealthReply{Processors: 3}, nil
}

func (g measured) Read(_ context.Context, in live.ReadCall) (out live.ReadReply, err error) {
	text := g.files[strings.TrimPrefix(in.Path, "/proc/hardtack/")]
	text = text[min(int(in.At), len(text)):]
	return live.ReadReply{Data: []byte(text[:min(len(text), 60)])}, nil // pieces that end within a line
}

func TestMetrics(t *testing.T) {
	base(t)
	m := create(t, "web")
	g := measured{files: map[string]string{
		"heap":       "HeapAlloc 12\nPauseTotalNs 2000000000\nNumGC\nHeapIdle -3\nunknown 5\n",
		"syscalls":   "read 10 5000000000 ns 7 B\nwri\"te 1 2 ns 3 B\nopen x y ns z B\nclose 2 3 ns 4 B\n",
		"ledger":     "process 1 user 0 total 7 files 3 pages 4\nuser 0 total 2 files 2\nuser x total 1\nuser 5 total\n",
		"latencies":  "read 4000 1000 2 2000 1\nwri\"te 1 1 1\nclose 9 5 1 4 7\nopen x 1 1\n",
		"interrupts": "cpu0 9\nirq1 \x00\nhelp{x=\"1\"} 4\n",
	}}
	svc, _ := runHandler(t, m, g)
	if err := svc.ServeMetrics(t.Context(), "no such address"); err == nil {
		t.Error("metrics on no address")
	}
	text := string(svc.metrics(t.Context()))
	for _, want := range []string{
		"\nhardtack_up 1\n", "\nhardtack_kernel_answers 1\n", "\nhardtack_cpus 3\n",
		"# TYPE hardtack_heap_alloc_bytes gauge\nhardtack_heap_alloc_bytes 12\n", "\nhardtack_gc_pause_seconds_total 2\n",
		"\nhardtack_syscalls_total{call=\"read\"} 10\nhardtack_syscalls_total{call=\"close\"} 2\n", "\nhardtack_syscall_seconds_total{call=\"read\"} 5\n",
		"# TYPE hardtack_syscall_duration_seconds histogram\nhardtack_syscall_duration_seconds_bucket{call=\"read\",le=\"1e-06\"} 2\n",
		"{call=\"read\",le=\"2e-06\"} 3\nhardtack_syscall_duration_seconds_bucket{call=\"read\",le=\"+Inf\"} 3\nhardtack_syscall_duration_seconds_sum{call=\"read\"} 4e-06\n" +
			"hardtack_syscall_duration_seconds_count{call=\"read\"} 3\n", "\nhardtack_syscall_duration_seconds_count{call=\"close\"} 1\n",
		"\nhardtack_ledger_bytes{user=\"0\",kind=\"files\"} 5\nhardtack_ledger_bytes{user=\"0\",kind=\"pages\"} 4\n",
		"\nhardtack_interrupts_total{source=\"cpu0\"} 9\n",
	} {
		if !strings.Contains("\n"+text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	for _, bad := range []string{"te\"", "help{", "\x00", "user=\"x\"", "unknown", "NumGC", "open"} {
		if strings.Contains(text, bad) {
			t.Errorf("the guest's %q passed:\n%s", bad, text)
		}
	}
	svc.Ended()
	if text := string(svc.metrics(t.Context())); !strings.Contains(text, "hardtack_up 0\n") {
		t.Errorf("of a machine that has ended: %s", text)
	}
}

func TestMetricsAddress(t *testing.T) {
	base(t)
	m := create(t, "web")
	svc, _ := runHandler(t, m, measured{})
	addr, err := svc.serveMetrics(t.Context(), ":0")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(addr, "127.0.0.1:") {
		t.Errorf("metrics are served at %s", addr)
	}
	r, err := http.Get("http://" + addr + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	if b, err := io.ReadAll(r.Body); err != nil || !strings.Contains(string(b), "hardtack_up 1\n") {
		t.Errorf("%q, %v", b, err)
	}
}
