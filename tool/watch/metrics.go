package watch

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
)

// exposition is text as Prometheus reads it.
type exposition struct {
	bytes.Buffer
	family string
}

// put adds a sample. Samples of one family follow each other.
func (x *exposition) put(name, kind, help, labels string, v float64) {
	x.putSample(name, "", kind, help, labels, v)
}

// putSample is put where samples of a family have names of their own.
func (x *exposition) putSample(name, suffix, kind, help, labels string, v float64) {
	if x.family != name {
		x.family = name
		fmt.Fprintf(x, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind)
	}
	x.WriteString(name + suffix)
	if labels != "" {
		x.WriteString("{" + labels + "}")
	}
	x.WriteByte(' ')
	x.Write(strconv.AppendFloat(nil, v, 'g', -1, 64))
	x.WriteByte('\n')
}

// Metrics is what the machine is and does as Prometheus reads it. The guest's own files say
// it: their numbers pass, nothing else of them does.
func (s *Source) Metrics(ctx context.Context) []byte {
	x := new(exposition)
	up := 0.0
	if processor, resident, err := s.Host(ctx); err == nil {
		up = 1
		x.put("hardtack_host_cpu_seconds_total", "counter", "Time of the emulator on the host's processors.", "", float64(processor)/1e9)
		x.put("hardtack_host_resident_bytes", "gauge", "Memory of the emulator on the host.", "", float64(resident))
	}
	x.put("hardtack_up", "gauge", "Whether the machine runs.", "", up)
	r := s.reader(ctx)
	h, answers := r.health()
	x.put("hardtack_kernel_answers", "gauge", "Whether the kernel answered.", "", answers)
	if answers == 0 {
		return x.Bytes()
	}
	x.put("hardtack_cpus", "gauge", "Processors of the machine.", "", float64(h.Processors))
	x.put("hardtack_processes", "gauge", "Processes in the machine.", "", float64(h.Processes))
	x.put("hardtack_memory_bytes", "gauge", "Memory of the machine.", "", float64(h.Memory))
	x.put("hardtack_memory_unused_bytes", "gauge", "Memory of the machine that nobody has.", "", float64(h.Unused))
	x.heap(r.fields(kernelFiles + "heap"))
	x.ledger(r.fields(kernelFiles + "ledger"))
	x.calls(r.fields(kernelFiles + "syscalls"))
	x.latencies(r.fields(kernelFiles + "latencies"))
	x.interrupts(r.fields(kernelFiles + "interrupts"))
	x.processors(r.fields(kernelFiles + "processors"))
	x.scheduler(r.fields("/proc/stat"))
	x.memory(r.fields("/proc/meminfo"))
	x.network(r.fields(processNet+"dev"), r.fields(processNet+"snmp"))
	x.disks(r.fields("/proc/diskstats"))
	return x.Bytes()
}

// number is a word of the guest's as a number.
func number(word string) (float64, bool) {
	n, err := strconv.ParseUint(word, 10, 64)
	return float64(n), err == nil
}

// label is a word of the guest's as a label's value, if it is a plain name.
func label(name, word string) (string, bool) {
	ok := word != "" && len(word) <= 64
	for _, r := range word {
		ok = ok && (r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-')
	}
	return name + `="` + word + `"`, ok
}

// heapMetrics are the rows of /proc/hardtack/heap that have a unit of their own.
var heapMetrics = []struct {
	row, name, kind, help string
	scale                 float64
}{
	{"HeapAlloc", "hardtack_heap_alloc_bytes", "gauge", "Bytes of objects on the kernel's heap.", 1},
	{"HeapInuse", "hardtack_heap_inuse_bytes", "gauge", "Bytes of the kernel's heap in spans that are used.", 1},
	{"HeapIdle", "hardtack_heap_idle_bytes", "gauge", "Bytes of the kernel's heap in spans that are not.", 1},
	{"HeapReleased", "hardtack_heap_released_bytes", "gauge", "Bytes of the kernel's heap that were given back.", 1},
	{"HeapObjects", "hardtack_heap_objects", "gauge", "Objects on the kernel's heap.", 1},
	{"StackInuse", "hardtack_stack_inuse_bytes", "gauge", "Bytes of goroutines' stacks.", 1},
	{"Mallocs", "hardtack_heap_allocations_total", "counter", "Objects allocated on the kernel's heap.", 1},
	{"TotalAlloc", "hardtack_heap_allocated_bytes_total", "counter", "Bytes allocated on the kernel's heap.", 1},
	{"NextGC", "hardtack_gc_next_bytes", "gauge", "The heap's size at which the collector begins.", 1},
	{"NumGC", "hardtack_gc_cycles_total", "counter", "Cycles of the collector.", 1},
	{"PauseTotalNs", "hardtack_gc_pause_seconds_total", "counter", "Time in which the collector stopped all.", 1e-9},
	{"PauseMaxNs", "hardtack_gc_pause_max_seconds", "gauge", "The longest of the last 256 pauses.", 1e-9},
	{"GCCPUPpm", "hardtack_gc_cpu_ratio", "gauge", "The collector's share of the processors.", 1e-6},
}

func (x *exposition) heap(lines [][]string) {
	rows := map[string]string{}
	for _, w := range lines {
		if len(w) == 2 {
			rows[w[0]] = w[1]
		}
	}
	for _, m := range heapMetrics {
		if v, ok := number(rows[m.row]); ok {
			x.put(m.name, m.kind, m.help, "", v*m.scale)
		}
	}
}

// ledger adds what users hold of the kernel's memory: lines "user UID KIND BYTES …" and
// "process PID user UID KIND BYTES …", added up by user and kind.
func (x *exposition) ledger(lines [][]string) {
	sums := map[string]float64{}
	var order []string
	for _, w := range lines {
		if len(w) > 2 && w[0] == "process" {
			w = w[2:]
		}
		if len(w) < 2 || w[0] != "user" {
			continue
		}
		user, ok := label("user", w[1])
		for rest := w[2:]; ok && len(rest) >= 2; rest = rest[2:] {
			kind, plain := label("kind", rest[0])
			v, isNumber := number(rest[1])
			if rest[0] == "total" {
				continue
			}
			if !plain || !isNumber {
				break
			}
			key := user + "," + kind
			if _, known := sums[key]; !known {
				order = append(order, key)
			}
			sums[key] += v
		}
	}
	for _, key := range order {
		x.put("hardtack_ledger_bytes", "gauge", "The kernel's memory that a user holds, by kind.", key, sums[key])
	}
}

// calls adds lines "NAME CALLS NANOSECONDS ns BYTES B".
func (x *exposition) calls(lines [][]string) {
	for _, m := range []struct {
		name, help string
		word       int
		scale      float64
	}{
		{"hardtack_syscalls_total", "System calls, by name.", 1, 1},
		{"hardtack_syscall_seconds_total", "Time in system calls, waiting not included, estimated from some of them.", 2, 1e-9},
		{"hardtack_syscall_allocated_bytes_total", "Bytes that system calls allocated on the kernel's heap.", 4, 1},
	} {
		for _, w := range lines {
			if len(w) < 6 {
				continue
			}
			call, ok := label("call", w[0])
			if v, isNumber := number(w[m.word]); ok && isNumber {
				x.put(m.name, "counter", m.help, call, v*m.scale)
			}
		}
	}
}

// latencies adds lines "NAME NANOSECONDS BOUND CALLS …" as a histogram.
func (x *exposition) latencies(lines [][]string) {
	const name = "hardtack_syscall_duration_seconds"
	for _, w := range lines {
		if len(w) < 4 {
			continue
		}
		call, ok := label("call", w[0])
		sum, isNumber := number(w[1])
		if !ok || !isNumber {
			continue
		}
		sample := func(suffix, labels string, v float64) {
			x.putSample(name, suffix, "histogram", "How long the system calls took that were measured, waiting not included.", labels, v)
		}
		total, last := 0.0, 0.0
		for rest := w[2:]; len(rest) >= 2; rest = rest[2:] {
			below, ok1 := number(rest[0])
			n, ok2 := number(rest[1])
			if !ok1 || !ok2 || below <= last {
				break
			}
			last = below
			total += n
			sample("_bucket", fmt.Sprintf("%s,le=\"%g\"", call, below/1e9), total)
		}
		sample("_bucket", call+`,le="+Inf"`, total)
		sample("_sum", call, sum/1e9)
		sample("_count", call, total)
	}
}

// interrupts adds lines "cpuN COUNT" and "irqN COUNT".
func (x *exposition) interrupts(lines [][]string) {
	for _, w := range lines {
		if len(w) != 2 {
			continue
		}
		source, ok := label("source", w[0])
		if v, isNumber := number(w[1]); ok && isNumber {
			x.put("hardtack_interrupts_total", "counter", "Interrupts, by processor and by line.", source, v)
		}
	}
}
