package osbench

import "strings"

// A Row is one line of the table: what osbench calls it, what it means, and
// the goal in guest instructions.
type Row struct {
	Name, Title string
	Must, Then  float64
	Server      bool // needs the servers: measured in the boot that has them
}

// Rows are the goals for instructions, one CPU, in the order of the report.
var Rows = []Row{
	{"getpid", "getpid", 345, 250, false},
	{"pipe", "pipe round trip, two processes, 5 B", 12_000, 6_000, false},
	{"unix", "unix socket round trip", 15_000, 8_000, false},
	{"fault", "page fault, touch", 3_300, 2_000, false},
	{"mmap", "mmap 4 MiB + touch + munmap, per page", 4_600, 1_600, false},
	{"fork", "fork + exit + wait", 100_000, 45_000, false},
	{"exec", "fork + exec + wait, tiny static", 200_000, 110_000, false},
	{"yield", "sched_yield between two processes", 3_700, 2_000, false},
	{"open", "open + close", 6_100, 4_000, false},
	{"write", "write 4 KiB", 2_280, 1_700, false},
	{"read", "read 4 KiB", 1_880, 1_500, false},
	{"create", "create + write 1 KiB + unlink", 25_000, 15_000, false},
	{"tcp", "TCP loopback round trip", 40_000, 30_000, false},
	{"redis", "Redis SET, client in the guest", 55_000, 40_000, true},
	{"redis16", "Redis SET, pipelined ×16", 9_000, 7_500, true},
	{"nginx", "NGINX request, keep-alive", 90_000, 60_000, true},
	{"nginxconn", "NGINX request, new connection", 200_000, 150_000, true},
	{"boot", "boot to the first user instruction", 0.7e9, 0.3e9, false},
}

// Command files for init: what a boot runs.
const (
	MicroCommands = "/bench/osbench -t\n/bench/osbench delay 1500\n"

	serverStart = "& /usr/bin/redis-server /etc/redis.conf\n& /usr/sbin/nginx -e stderr -c /etc/nginx/nginx.conf\n" +
		"port 6379\nport 80\n"
	ServerCommands = serverStart + "/bench/osbench -t redis redis16 nginx nginxconn\n"
	// HostCommands leave the servers to clients outside.
	HostCommands = serverStart + "forever\n"
	// SpinCommands: one process, two, and so on; the sleeper beside a spinner.
	SpinCommands = "/bench/osbench spin 1 300\n/bench/osbench spin 2 300\n/bench/osbench spin 1 300\n" +
		"/bench/osbench spin 2 300\n/bench/osbench delay 3000\n"
)

// RowCommands run every row of the table for part of a second, again and again,
// longer than anybody watches.
func RowCommands() string {
	turn := "/bench/osbench -r 1 -u 150000000"
	for _, r := range Rows {
		if r.Name != "boot" {
			turn += " " + r.Name
		}
	}
	return serverStart + strings.Repeat(turn+"\n", 1000)
}
