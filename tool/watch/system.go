package watch

import (
	"strings"
)

// What Linux's own files in /proc tell, for Prometheus.

// processors adds lines "cpuN NANOSECONDS IDLE".
func (x *exposition) processors(lines [][]string) {
	for _, w := range lines {
		if len(w) != 3 {
			continue
		}
		cpu, ok := label("cpu", strings.TrimPrefix(w[0], "cpu"))
		all, ok1 := number(w[1])
		idle, ok2 := number(w[2])
		if ok && ok1 && ok2 && idle <= all {
			x.put("hardtack_cpu_busy_seconds_total", "counter", "Time for which a processor had something to do.", cpu, (all-idle)/1e9)
		}
	}
}

// scheduler adds what /proc/stat tells.
func (x *exposition) scheduler(lines [][]string) {
	rows := map[string][]string{}
	for _, w := range lines {
		if len(w) > 1 {
			rows[w[0]] = w[1:]
		}
	}
	for i, mode := range []string{"user", "nice", "system"} {
		if cpu := rows["cpu"]; len(cpu) > i {
			if v, ok := number(cpu[i]); ok {
				x.put("hardtack_cpu_seconds_total", "counter", "Time of programs on processors, by mode.", `mode="`+mode+`"`, v/100)
			}
		}
	}
	for _, m := range []struct{ row, name, kind, help string }{
		{"ctxt", "hardtack_context_switches_total", "counter", "How often threads gave up a processor."},
		{"processes", "hardtack_forks_total", "counter", "Threads and processes that were made."},
		{"procs_running", "hardtack_threads_running", "gauge", "Threads that run or could."},
		{"procs_blocked", "hardtack_threads_blocked", "gauge", "Threads that wait for disks."},
		{"intr", "hardtack_device_interrupts_total", "counter", "Interrupts of devices."},
	} {
		if r := rows[m.row]; len(r) > 0 {
			if v, ok := number(r[0]); ok {
				x.put(m.name, m.kind, m.help, "", v)
			}
		}
	}
}

// memoryRows are the rows of /proc/meminfo that are told, in KiB there.
var memoryRows = []struct{ row, name, help string }{
	{"Cached:", "hardtack_page_cache_bytes", "Files in memory."},
	{"Dirty:", "hardtack_page_cache_dirty_bytes", "Files in memory that are newer than on their disks."},
	{"Writeback:", "hardtack_page_cache_writeback_bytes", "Files in memory that are being written."},
	{"AnonPages:", "hardtack_anonymous_bytes", "Memory of programs that is of no file."},
	{"Shmem:", "hardtack_shared_memory_bytes", "Files that are in memory only."},
	{"Slab:", "hardtack_kernel_memory_bytes", "Memory of the kernel's own."},
	{"Committed_AS:", "hardtack_committed_bytes", "Memory that programs have asked for."},
}

func (x *exposition) memory(lines [][]string) {
	rows := words(lines)
	for _, m := range memoryRows {
		if v, ok := number(rows[m.row]); ok {
			x.put(m.name, "gauge", m.help, "", v*1024)
		}
	}
}

// words are the first two words of lines as a table.
func words(lines [][]string) map[string]string {
	rows := map[string]string{}
	for _, w := range lines {
		if len(w) > 1 {
			rows[w[0]] = w[1]
		}
	}
	return rows
}

// interfaceColumns are those of /proc/net/dev, by their places behind the name.
var interfaceColumns = []struct {
	place      int
	name, help string
}{
	{0, "hardtack_network_receive_bytes_total", "Bytes that came in by an interface."},
	{1, "hardtack_network_receive_packets_total", "Packets that came in by an interface."},
	{3, "hardtack_network_receive_dropped_total", "Packets that came in by an interface and were dropped."},
	{8, "hardtack_network_transmit_bytes_total", "Bytes that went out by an interface."},
	{9, "hardtack_network_transmit_packets_total", "Packets that went out by an interface."},
	{11, "hardtack_network_transmit_dropped_total", "Packets that were to go out by an interface and were dropped."},
}

// tcpRows are what is told of /proc/net/snmp's Tcp.
var tcpRows = []struct{ column, name, kind, help string }{
	{"CurrEstab", "hardtack_tcp_connections", "gauge", "TCP connections that are open."},
	{"ActiveOpens", "hardtack_tcp_active_opens_total", "counter", "TCP connections that programs of the machine began."},
	{"PassiveOpens", "hardtack_tcp_passive_opens_total", "counter", "TCP connections that others began."},
	{"InSegs", "hardtack_tcp_receive_segments_total", "counter", "TCP segments that came in."},
	{"OutSegs", "hardtack_tcp_transmit_segments_total", "counter", "TCP segments that went out."},
	{"RetransSegs", "hardtack_tcp_retransmitted_segments_total", "counter", "TCP segments that were sent again."},
}

func (x *exposition) network(dev, snmp [][]string) {
	for _, c := range interfaceColumns {
		for _, w := range dev {
			if len(w) < 17 || !strings.HasSuffix(w[0], ":") {
				continue
			}
			device, ok := label("device", strings.TrimSuffix(w[0], ":"))
			if v, isNumber := number(w[1+c.place]); ok && isNumber {
				x.put(c.name, "counter", c.help, device, v)
			}
		}
	}
	tcp := columns(snmp, "Tcp:")
	for _, m := range tcpRows {
		if v, ok := number(tcp[m.column]); ok {
			x.put(m.name, m.kind, m.help, "", v)
		}
	}
}

// columns makes a table of two lines that begin with a word: names, then values.
func columns(lines [][]string, first string) map[string]string {
	rows := map[string]string{}
	var names []string
	for _, w := range lines {
		switch {
		case len(w) == 0 || w[0] != first:
		case names == nil:
			names = w
		default:
			for i := range min(len(w), len(names)) {
				rows[names[i]] = w[i]
			}
		}
	}
	return rows
}

// diskColumns are those of /proc/diskstats, by their places in the line.
var diskColumns = []struct {
	place      int
	name, help string
	scale      float64
}{
	{3, "hardtack_disk_reads_total", "Reads of a disk.", 1},
	{5, "hardtack_disk_read_bytes_total", "Bytes read of a disk.", sector},
	{7, "hardtack_disk_writes_total", "Writes of a disk.", 1},
	{9, "hardtack_disk_written_bytes_total", "Bytes written to a disk.", sector},
	{12, "hardtack_disk_busy_seconds_total", "Time for which a disk had something to do.", 1e-3},
}

// sector is the unit of /proc/diskstats.
const sector = 512

func (x *exposition) disks(lines [][]string) {
	for _, c := range diskColumns {
		for _, w := range lines {
			if len(w) < 14 {
				continue
			}
			device, ok := label("device", w[2])
			if v, isNumber := number(w[c.place]); ok && isNumber {
				x.put(c.name, "counter", c.help, device, v*c.scale)
			}
		}
	}
}
