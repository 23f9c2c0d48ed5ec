package watch

import (
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"strings"
	"testing"

	"hardtack/idl/live"
	"hardtack/msg"
	_ "hardtack/msg/ump" // the sockets' driver
)

// kernel is a guest's kernel with files, and reports.
type kernel struct {
	live.Handler
	files   map[string]string
	reports map[string]string
}

func (k *kernel) Health(context.Context, live.HealthCall) (live.HealthReply, error) {
	return live.HealthReply{Processors: 3, Memory: 100, Unused: 40}, nil
}

func (k *kernel) Read(_ context.Context, in live.ReadCall) (out live.ReadReply, err error) {
	text := k.files[strings.TrimPrefix(in.Path, "/proc/")]
	text = text[min(int(in.At), len(text)):]
	return live.ReadReply{Data: []byte(text[:min(len(text), 60)])}, nil // pieces that end within a line
}

func (k *kernel) Start(_ context.Context, in live.StartCall) (out live.StartReply, err error) {
	if _, ok := k.reports[in.Dir]; in.Flags != flagReport || !ok {
		return live.StartReply{Errno: 2}, nil
	}
	return live.StartReply{Session: 1}, nil
}

func (k *kernel) Next(context.Context, live.NextCall) (out live.NextReply, err error) {
	for name, text := range k.reports {
		if text == "" {
			break
		}
		n := min(len(text), 50)
		k.reports[name] = text[n:]
		return live.NextReply{What: 1, Data: []byte(text[:n])}, nil
	}
	return live.NextReply{What: 3}, nil
}

func (k *kernel) Close(context.Context, live.CloseCall) (out live.CloseReply, err error) {
	return out, nil
}

// source serves a kernel.
func source(t *testing.T, k *kernel) *Source {
	t.Helper()
	dir := t.TempDir()
	o := &msg.Options{Resolver: msg.Directory(dir)}
	s, err := live.Export(t.Context(), "live", o)
	if err != nil {
		t.Fatal(err)
	}
	go s.Serve(t.Context(), func(*live.Conn) live.Handler { return k })
	conn, err := live.Connect(t.Context(), "live", o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	c := live.NewClient(conn, nil)
	return &Source{Name: "web", Live: func(context.Context) (*live.Client, error) { return c, nil },
		Host: func(context.Context) (uint64, uint64, error) { return 2e9, 4096, nil }}
}

// someFiles are what a kernel has to tell, and what it should not be believed.
var someFiles = map[string]string{
	"hardtack/heap":       "HeapAlloc 12\nPauseTotalNs 2000000000\nNumGC\nHeapIdle -3\nunknown 5\n",
	"hardtack/syscalls":   "read 10 5000000000 ns 7 B\nwri\"te 1 2 ns 3 B\nopen x y ns z B\nclose 2 3 ns 4 B\n",
	"hardtack/ledger":     "process 1 user 0 total 7 files 3 pages 4\nuser 0 total 2 files 2\nuser x total 1\nuser 5 total\n",
	"hardtack/latencies":  "read 4000 1000 2 2000 1\nwri\"te 1 1 1\nclose 9 5 1 4 7\nopen x 1 1\n",
	"hardtack/interrupts": "cpu0 9\nirq1 \x00\nhelp{x=\"1\"} 4\n",
	"hardtack/processors": "cpu0 3000000000 1000000000\ncpu1 1 2\n",
	"hardtack/processes":  "1 0 0 S 2 150 50 100 \"redis\\x1b[2J\"\n7 1 33 R 1 x 0 0 \"bad\"\n8 1 33 R 1 0 0 0 unquoted\n",
	"stat":                "cpu  100 0 50 7 0 0 0\nctxt 77\nprocs_running 2\nprocesses 9\nintr 5 1\n",
	"meminfo":             "Cached: 8 kB\nDirty: 1 kB\nAnonPages: x kB\n",
	"1/net/dev":           "face |bytes\n eth0: 10 2 0 1 0 0 0 0 20 3 0 0 0 0 0 0\n l<o: 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1\n",
	"1/net/snmp":          "Tcp: RtoAlgorithm CurrEstab RetransSegs\nTcp: 1 4 5\nUdp: A\nUdp: 1\n",
	"1/net/tcp":           "  sl  local_address\n   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:0\n   1: 0100007F:1F90 0200000A:0050 01 00000002:00000001 00:0\n   2: xx 00 01 0 0\n",
	"diskstats":           " 254 0 vda 10 0 8 0 20 0 16 0 0 500 0\n",
}

func TestMetrics(t *testing.T) {
	s := source(t, &kernel{files: someFiles})
	if _, err := Serve(t.Context(), s, "no such address", false); err == nil {
		t.Error("metrics on no address")
	}
	text := string(s.Metrics(t.Context()))
	for _, want := range []string{
		"\nhardtack_up 1\n", "\nhardtack_kernel_answers 1\n", "\nhardtack_cpus 3\n", "\nhardtack_host_cpu_seconds_total 2\n",
		"# TYPE hardtack_heap_alloc_bytes gauge\nhardtack_heap_alloc_bytes 12\n", "\nhardtack_gc_pause_seconds_total 2\n",
		"\nhardtack_syscalls_total{call=\"read\"} 10\nhardtack_syscalls_total{call=\"close\"} 2\n", "\nhardtack_syscall_seconds_total{call=\"read\"} 5\n",
		"# TYPE hardtack_syscall_duration_seconds histogram\nhardtack_syscall_duration_seconds_bucket{call=\"read\",le=\"1e-06\"} 2\n",
		"{call=\"read\",le=\"2e-06\"} 3\nhardtack_syscall_duration_seconds_bucket{call=\"read\",le=\"+Inf\"} 3\nhardtack_syscall_duration_seconds_sum{call=\"read\"} 4e-06\n" +
			"hardtack_syscall_duration_seconds_count{call=\"read\"} 3\n", "\nhardtack_syscall_duration_seconds_count{call=\"close\"} 1\n",
		"\nhardtack_ledger_bytes{user=\"0\",kind=\"files\"} 5\nhardtack_ledger_bytes{user=\"0\",kind=\"pages\"} 4\n",
		"\nhardtack_interrupts_total{source=\"cpu0\"} 9\n",
		"\nhardtack_cpu_busy_seconds_total{cpu=\"0\"} 2\n", "\nhardtack_cpu_seconds_total{mode=\"system\"} 0.5\n",
		"\nhardtack_context_switches_total 77\n", "\nhardtack_threads_running 2\n", "\nhardtack_page_cache_bytes 8192\n",
		"\nhardtack_network_receive_bytes_total{device=\"eth0\"} 10\n", "\nhardtack_network_transmit_packets_total{device=\"eth0\"} 3\n",
		"\nhardtack_tcp_connections 4\n", "\nhardtack_disk_written_bytes_total{device=\"vda\"} 8192\n", "\nhardtack_disk_busy_seconds_total{device=\"vda\"} 0.5\n",
	} {
		if !strings.Contains("\n"+text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	for _, bad := range []string{"te\"", "help{", "\x00", "user=\"x\"", "unknown", "NumGC", "call=\"open\"", "l<o", "cpu=\"1\"", "anonymous"} {
		if strings.Contains(text, bad) {
			t.Errorf("the guest's %q passed:\n%s", bad, text)
		}
	}
	// A family's samples stand together, under one type.
	seen := map[string]bool{}
	for line := range strings.Lines(text) {
		if name, ok := strings.CutPrefix(line, "# TYPE "); ok {
			if seen[name] {
				t.Errorf("a family is there twice: %s", name)
			}
			seen[name] = true
		}
	}
	s.Host = func(context.Context) (uint64, uint64, error) { return 0, 0, errors.New("ended") }
	s.Live = func(context.Context) (*live.Client, error) { return nil, errors.New("ended") }
	if text := string(s.Metrics(t.Context())); !strings.Contains(text, "hardtack_up 0\n") {
		t.Errorf("of a machine that has ended: %s", text)
	}
}

func get(t *testing.T, url string, header ...string) (int, string, http.Header) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), "GET", url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		if header[i] == "Host" {
			r.Host = header[i+1]
		} else {
			r.Header.Set(header[i], header[i+1])
		}
	}
	a, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	b, err := io.ReadAll(a.Body)
	if err != nil {
		t.Fatal(err)
	}
	return a.StatusCode, string(b), a.Header
}

func TestServe(t *testing.T) {
	s := source(t, &kernel{files: someFiles})
	addr, err := Serve(t.Context(), s, ":0", false)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(addr, "127.0.0.1:") {
		t.Errorf("metrics are served at %s", addr)
	}
	if code, text, _ := get(t, "http://"+addr+"/metrics"); code != 200 || !strings.Contains(text, "hardtack_up 1\n") {
		t.Errorf("%d %q", code, text)
	}
	if code, _, _ := get(t, "http://"+addr+"/"); code != 404 {
		t.Errorf("without --ui there is a page: %d", code)
	}
	_, port, _ := strings.Cut(addr, ":")
	for _, header := range [][]string{{"Host", "evil.example:" + port}, {"Host", "localhost.evil.example"}, {"Host", ""},
		{"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Site", "same-site"}} {
		if header[1] == "" {
			continue // Go's client puts the address there
		}
		if code, text, _ := get(t, "http://"+addr+"/metrics", header...); code != 403 {
			t.Errorf("%v gets %d %.40q", header, code, text)
		}
	}
	for _, header := range [][]string{{"Host", "localhost:" + port}, {"Host", "[::1]:" + port}, {"Host", "10.1.2.3"}, {"Sec-Fetch-Site", "same-origin"}, {"Sec-Fetch-Site", "none"}} {
		if code, _, _ := get(t, "http://"+addr+"/metrics", header...); code != 200 {
			t.Errorf("%v gets %d", header, code)
		}
	}
}

// The page asks nobody but this address for anything, and runs only its own scripts.
func TestPage(t *testing.T) {
	addr, err := Serve(t.Context(), source(t, &kernel{files: someFiles}), ":0", true)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"", "app.js", "draw.js", "style.css", "icon.svg"} {
		code, text, header := get(t, "http://"+addr+"/"+name)
		if code != 200 || header.Get("Content-Security-Policy") == "" {
			t.Errorf("%q: %d, %v", name, code, header)
		}
		text = strings.ReplaceAll(text, "http://www.w3.org/2000/svg", "")
		for _, bad := range []string{"http://", "https://", "innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "<script>", " style="} {
			if strings.Contains(text, bad) {
				t.Errorf("%q has %q", name, bad)
			}
		}
	}
	for path, want := range map[string]int{"flame": 400, "flame?seconds=0": 400, "flame?seconds=31": 400, "flame?seconds=1": 502, "nothing": 404} {
		if code, text, _ := get(t, "http://"+addr+"/"+path); code != want {
			t.Errorf("%s: %d %q, want %d", path, code, text, want)
		}
	}
	if r, err := http.Post("http://"+addr+"/events", "", nil); err != nil || r.StatusCode != 405 {
		t.Errorf("POST: %v, %v", r, err)
	}
}

func TestSample(t *testing.T) {
	k := &kernel{files: maps.Clone(someFiles)}
	s := &Sampler{Source: source(t, k)}
	p := s.Take(t.Context())
	if !p.Up || !p.Answers || p.Memory.Used != 60 || len(p.Calls) != 0 {
		t.Errorf("the first sample is %+v", p)
	}
	k.files["hardtack/syscalls"] = "read 30 9000000000 ns 7 B\nclose 3 5 ns 4 B\n"
	k.files["hardtack/latencies"] = "read 4000 1001 5 1999 1\n" // the bounds differ a little each time
	k.files["hardtack/processors"] = "cpu0 5000000000 1500000000\n"
	k.files["hardtack/processes"] = "1 0 0 S 2 350 50 100 \"redis\\x1b[2J\"\n"
	k.files["1/net/dev"] = " eth0: 1010 2 0 1 0 0 0 0 20 3 0 0 0 0 0 0\n"
	p = s.Take(t.Context())
	if len(p.CPUs) != 1 || p.CPUs[0] != 0.75 {
		t.Errorf("processors: %v", p.CPUs)
	}
	if len(p.Calls) != 2 || p.Calls[0].Name != "read" || p.Calls[0].Mean != 2e8 || p.Calls[0].Rate <= 0 {
		t.Errorf("calls: %+v", p.Calls)
	}
	if len(p.Latencies) != 1 || p.Latencies[0] != (Bucket{1024, 3}) {
		t.Errorf("latencies: %+v", p.Latencies)
	}
	if len(p.Networks) != 1 || p.Networks[0].In <= 0 || p.Networks[0].Out != 0 {
		t.Errorf("networks: %+v", p.Networks)
	}
	if len(p.Processes) != 1 || p.Processes[0].Name != "redis?[2J" || p.Processes[0].CPU <= 0 || p.Processes[0].Time != 4 {
		t.Errorf("processes: %+v", p.Processes)
	}
	want := []Conn{{"tcp", "127.0.0.1:8080", "10.0.0.2:80", "established", 1, 2}, {"tcp", "127.0.0.1:8080", "0.0.0.0:0", "listening", 0, 0}}
	if len(p.Conns) != 2 || p.Conns[0] != want[0] || p.Conns[1] != want[1] {
		t.Errorf("connections: %+v", p.Conns)
	}
	picture := Picture("web", p, 100, 40)
	for _, part := range []string{"web", "redis?[2J", "cpu0", "75 %"} {
		if !strings.Contains(picture, part) {
			t.Errorf("the picture lacks %q:\n%s", part, picture)
		}
	}
}
