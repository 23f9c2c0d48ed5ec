package watch

import (
	"cmp"
	"context"
	"encoding/hex"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// Sample is what a machine did since the sample before. Rates are for a second, sizes in
// bytes, shares from 0 to 1.
type Sample struct {
	Time    int64 `json:"time"` // Unix time in milliseconds
	Up      bool  `json:"up"`
	Answers bool  `json:"answers"` // the kernel does

	HostCPU    float64 `json:"hostCPU"` // of one of the host's processors
	HostMemory float64 `json:"hostMemory"`

	CPUs     []float64 `json:"cpus"` // how busy each was
	Switches float64   `json:"switches"`
	Running  float64   `json:"running"`
	Load     float64   `json:"load"`

	Memory Memory    `json:"memory"`
	GC     Collector `json:"gc"`

	Calls     []Call      `json:"calls"`     // the most frequent first
	Latencies []Bucket    `json:"latencies"` // of all calls
	Networks  []Network   `json:"networks"`
	Disks     []Disk      `json:"disks"`
	Processes []Process   `json:"processes"` // the busiest first
	Conns     []Conn      `json:"connections"`
	Lines     []Interrupt `json:"interrupts"`
}

// Memory is the guest's.
type Memory struct {
	Total     float64 `json:"total"`
	Used      float64 `json:"used"`
	Programs  float64 `json:"programs"` // anonymous
	Cache     float64 `json:"cache"`
	Dirty     float64 `json:"dirty"`
	Kernel    float64 `json:"kernel"`
	Heap      float64 `json:"heap"`     // objects on the kernel's heap
	HeapNext  float64 `json:"heapNext"` // at which it is collected
	HeapInUse float64 `json:"heapInUse"`
}

// Collector is the kernel's.
type Collector struct {
	Cycles float64 `json:"cycles"` // since boot
	Rate   float64 `json:"rate"`
	Pause  float64 `json:"pause"` // seconds of a second
	Share  float64 `json:"share"` // of the processors
}

// Call is a system call. Mean is in nanoseconds, what it waited left out.
type Call struct {
	Name      string   `json:"name"`
	Rate      float64  `json:"rate"`
	Mean      float64  `json:"mean"`
	Latencies []Bucket `json:"latencies"`
}

// Bucket counts calls that took less than so many nanoseconds, but not less than the bound
// of the bucket before.
type Bucket struct {
	Below float64 `json:"below"`
	Calls float64 `json:"calls"`
}

// Network is an interface.
type Network struct {
	Name    string  `json:"name"`
	In      float64 `json:"in"`
	Out     float64 `json:"out"`
	Packets float64 `json:"packets"` // both ways
}

// Disk is a disk.
type Disk struct {
	Name       string  `json:"name"`
	Read       float64 `json:"read"`
	Written    float64 `json:"written"`
	Operations float64 `json:"operations"`
	Busy       float64 `json:"busy"`
}

// Process is one of the guest's.
type Process struct {
	PID     int     `json:"pid"`
	Parent  int     `json:"parent"`
	UID     int     `json:"uid"`
	State   string  `json:"state"`
	Threads int     `json:"threads"`
	CPU     float64 `json:"cpu"` // of one processor
	Time    float64 `json:"seconds"`
	Memory  float64 `json:"memory"`
	Name    string  `json:"name"`
}

// Conn is a socket of the Internet.
type Conn struct {
	Protocol string `json:"protocol"`
	Local    string `json:"local"`
	Remote   string `json:"remote"`
	State    string `json:"state"`
	In       int    `json:"in"` // bytes that wait
	Out      int    `json:"out"`
}

// Interrupt is a source of interrupts.
type Interrupt struct {
	Name string  `json:"name"`
	Rate float64 `json:"rate"`
}

// What a sample has at most of what there may be any number of.
const (
	mostProcesses = 200
	mostConns     = 200
	mostCalls     = 40
)

// Sampler takes samples of one machine. It is for one goroutine.
type Sampler struct {
	Source *Source
	last   time.Time
	old    map[string]float64 // counters at the last sample
	now    map[string]float64 // counters of this one
	passed float64            // seconds between them; 0 at first
}

// Take takes a sample.
func (s *Sampler) Take(ctx context.Context) *Sample {
	t := time.Now()
	s.passed, s.old, s.now = 0, s.now, map[string]float64{}
	if !s.last.IsZero() {
		s.passed = t.Sub(s.last).Seconds()
	}
	s.last = t
	p := &Sample{Time: t.UnixMilli(), CPUs: []float64{}, Calls: []Call{}, Latencies: []Bucket{}, Networks: []Network{}, Disks: []Disk{},
		Processes: []Process{}, Conns: []Conn{}, Lines: []Interrupt{}}
	if processor, resident, err := s.Source.Host(ctx); err == nil {
		p.Up, p.HostMemory = true, float64(resident)
		p.HostCPU = s.rate("host cpu", float64(processor)) / 1e9
	}
	r := s.Source.reader(ctx)
	h, answers := r.health()
	if answers == 0 {
		return p
	}
	p.Answers = true
	p.Memory.Total, p.Memory.Used = float64(h.Memory), float64(h.Memory-min(h.Unused, h.Memory))
	s.kernel(p, r)
	s.calls(p, r)
	s.system(p, r)
	s.devices(p, r)
	s.processes(p, r.text(kernelFiles+"processes"))
	for _, f := range []string{"tcp", "tcp6", "udp", "udp6"} {
		conns(p, f, r.fields(processNet+f))
	}
	slices.SortStableFunc(p.Conns, func(a, b Conn) int { return cmp.Compare(b.In+b.Out, a.In+a.Out) })
	return p
}

// grown is by how much a counter has grown since the last sample; 0 if it was not there.
func (s *Sampler) grown(name string, v float64) float64 {
	s.now[name] = v
	if old, ok := s.old[name]; ok && s.passed > 0 && v > old {
		return v - old
	}
	return 0
}

// rate is by how much a counter grows in a second.
func (s *Sampler) rate(name string, v float64) float64 {
	if d := s.grown(name, v); d > 0 {
		return d / s.passed
	}
	return 0
}

func (s *Sampler) kernel(p *Sample, r *reader) {
	heap := words(r.fields(kernelFiles + "heap"))
	get := func(row string) float64 {
		v, _ := number(heap[row])
		return v
	}
	p.Memory.Heap, p.Memory.HeapNext, p.Memory.HeapInUse = get("HeapAlloc"), get("NextGC"), get("HeapInuse")
	p.GC = Collector{Cycles: get("NumGC"), Rate: s.rate("gc", get("NumGC")), Pause: s.rate("gc pause", get("PauseTotalNs")) / 1e9,
		Share: get("GCCPUPpm") / 1e6}
	for _, w := range r.fields(kernelFiles + "processors") {
		if len(w) != 3 {
			continue
		}
		all, _ := number(w[1])
		idle, _ := number(w[2])
		name, ok := plain(w[0])
		if !ok || len(p.CPUs) >= 64 {
			continue
		}
		busy := 0.0
		if d := s.grown(name+" all", all); d > 0 {
			busy = min(max(1-s.grown(name+" idle", idle)/d, 0), 1)
		} else {
			s.grown(name+" idle", idle)
		}
		p.CPUs = append(p.CPUs, busy)
	}
	for _, w := range r.fields(kernelFiles + "interrupts") {
		if len(w) != 2 {
			continue
		}
		name, ok := plain(w[0])
		if v, isNumber := number(w[1]); ok && isNumber && len(p.Lines) < 128 {
			p.Lines = append(p.Lines, Interrupt{name, s.rate("irq "+name, v)})
		}
	}
}

func (s *Sampler) calls(p *Sample, r *reader) {
	all := map[float64]float64{}
	buckets := map[string][]Bucket{}
	for _, w := range r.fields(kernelFiles + "latencies") {
		if len(w) < 4 || len(w) > 200 {
			continue
		}
		name, ok := plain(w[0])
		if !ok {
			continue
		}
		for rest := w[2:]; len(rest) >= 2; rest = rest[2:] {
			below, ok1 := number(rest[0])
			n, ok2 := number(rest[1])
			if !ok1 || !ok2 || below <= 0 {
				break
			}
			// The bounds are ticks as nanoseconds, which are measured anew each time.
			bound := roundPower(below)
			if d := s.grown(fmt.Sprint("latency ", name, " ", bound), n); d > 0 {
				all[bound] += d
				buckets[name] = append(buckets[name], Bucket{bound, d})
			}
		}
	}
	for below, n := range all {
		p.Latencies = append(p.Latencies, Bucket{below, n})
	}
	slices.SortFunc(p.Latencies, func(a, b Bucket) int { return cmp.Compare(a.Below, b.Below) })
	for _, w := range r.fields(kernelFiles + "syscalls") {
		if len(w) < 6 {
			continue
		}
		name, ok := plain(w[0])
		n, ok1 := number(w[1])
		ns, ok2 := number(w[2])
		if !ok || !ok1 || !ok2 {
			continue
		}
		d, took := s.grown("call "+name, n), s.grown("time "+name, ns)
		if d > 0 {
			c := Call{Name: name, Rate: d / s.passed, Mean: took / d, Latencies: buckets[name]}
			if c.Latencies == nil {
				c.Latencies = []Bucket{}
			}
			p.Calls = append(p.Calls, c)
		}
	}
	slices.SortStableFunc(p.Calls, func(a, b Call) int { return cmp.Compare(b.Rate, a.Rate) })
	p.Calls = p.Calls[:min(len(p.Calls), mostCalls)]
}

// roundPower rounds nanoseconds to a power of two.
func roundPower(v float64) float64 {
	bound := 1.0
	for bound*1.41 < v && bound < 1<<50 {
		bound *= 2
	}
	return bound
}

func (s *Sampler) system(p *Sample, r *reader) {
	for _, w := range r.fields("/proc/stat") {
		if len(w) < 2 {
			continue
		}
		v, ok := number(w[1])
		switch {
		case !ok:
		case w[0] == "ctxt":
			p.Switches = s.rate("switches", v)
		case w[0] == "procs_running":
			p.Running = v
		}
	}
	if w := strings.Fields(r.text("/proc/loadavg")); len(w) > 0 {
		if v, err := strconv.ParseFloat(w[0], 64); err == nil && v >= 0 && v < 1e6 {
			p.Load = v
		}
	}
	rows := words(r.fields("/proc/meminfo"))
	kib := func(row string) float64 {
		v, _ := number(rows[row])
		return v * 1024
	}
	p.Memory.Programs, p.Memory.Cache, p.Memory.Dirty, p.Memory.Kernel = kib("AnonPages:"), kib("Cached:"), kib("Dirty:"), kib("Slab:")
}

func (s *Sampler) devices(p *Sample, r *reader) {
	for _, w := range r.fields(processNet + "dev") {
		if len(w) < 17 || !strings.HasSuffix(w[0], ":") || len(p.Networks) >= 16 {
			continue
		}
		name, ok := plain(strings.TrimSuffix(w[0], ":"))
		if !ok {
			continue
		}
		get := func(i int) float64 {
			v, _ := number(w[1+i])
			return s.rate(fmt.Sprint("net ", name, i), v)
		}
		p.Networks = append(p.Networks, Network{name, get(0), get(8), get(1) + get(9)})
	}
	for _, w := range r.fields("/proc/diskstats") {
		if len(w) < 14 || len(p.Disks) >= 32 {
			continue
		}
		name, ok := plain(w[2])
		if !ok {
			continue
		}
		get := func(i int) float64 {
			v, _ := number(w[i])
			return s.rate(fmt.Sprint("disk ", name, i), v)
		}
		p.Disks = append(p.Disks, Disk{name, get(5) * sector, get(9) * sector, get(3) + get(7), min(get(12)/1e3, 1)})
	}
}

func (s *Sampler) processes(p *Sample, text string) {
	for line := range strings.Lines(text) {
		head, quoted, _ := strings.Cut(line, ` "`)
		w := strings.Fields(head)
		name, err := strconv.Unquote(`"` + strings.TrimSpace(quoted))
		if len(w) != 8 || err != nil {
			continue
		}
		var n [8]float64
		good := true
		for i := range w {
			if i != 3 {
				var ok bool
				n[i], ok = number(w[i])
				good = good && ok
			}
		}
		state, ok := plain(w[3])
		if !good || !ok {
			continue
		}
		ticks := n[5] + n[6]
		p.Processes = append(p.Processes, Process{PID: int(n[0]), Parent: int(n[1]), UID: int(n[2]), State: state, Threads: int(n[4]),
			CPU: s.rate("process "+w[0], ticks) / 100, Time: ticks / 100, Memory: n[7] * 1024, Name: printable(name, 64)})
	}
	slices.SortStableFunc(p.Processes, func(a, b Process) int { return cmp.Or(cmp.Compare(b.CPU, a.CPU), cmp.Compare(b.Memory, a.Memory)) })
	p.Processes = p.Processes[:min(len(p.Processes), mostProcesses)]
}

// printable is a text of the guest's without what a terminal would obey.
func printable(s string, most int) string {
	s = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, strings.ToValidUTF8(s, "?"))
	if r := []rune(s); len(r) > most {
		return string(r[:most])
	}
	return s
}

// plain is a word of the guest's if it is a plain name.
func plain(word string) (string, bool) {
	_, ok := label("", word)
	return word, ok
}

// tcpStates are those of /proc/net/tcp (include/net/tcp_states.h).
var tcpStates = []string{"", "established", "syn sent", "syn received", "fin wait 1", "fin wait 2", "time wait", "closed", "close wait", "last ack", "listening", "closing"}

func conns(p *Sample, protocol string, lines [][]string) {
	for _, w := range lines {
		if len(w) < 5 || !strings.HasSuffix(w[0], ":") || len(p.Conns) >= mostConns {
			continue
		}
		local, ok1 := address(w[1])
		remote, ok2 := address(w[2])
		state, err := strconv.ParseUint(w[3], 16, 8)
		out, in, _ := strings.Cut(w[4], ":")
		outN, err1 := strconv.ParseUint(out, 16, 31)
		inN, err2 := strconv.ParseUint(in, 16, 31)
		if !ok1 || !ok2 || err != nil || err1 != nil || err2 != nil {
			continue
		}
		c := Conn{Protocol: protocol, Local: local, Remote: remote, In: int(inN), Out: int(outN)}
		if strings.HasPrefix(protocol, "tcp") && int(state) < len(tcpStates) {
			c.State = tcpStates[state]
		}
		p.Conns = append(p.Conns, c)
	}
}

// address reads one of /proc/net/tcp: words of 32 bits in the machine's order, and a port.
func address(s string) (string, bool) {
	host, port, ok := strings.Cut(s, ":")
	n, err := strconv.ParseUint(port, 16, 16)
	b, herr := hex.DecodeString(host)
	if !ok || err != nil || herr != nil || len(b) != 4 && len(b) != 16 {
		return "", false
	}
	for i := 0; i < len(b); i += 4 {
		slices.Reverse(b[i : i+4])
	}
	a, _ := netip.AddrFromSlice(b)
	return netip.AddrPortFrom(a.Unmap(), uint16(n)).String(), true
}
