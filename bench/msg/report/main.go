// Command report measures typed channels beside the references in C and what the
// kernel offers, and writes docs/bench/msg.md and msg.svg.
//
//	report [-rounds 7] [-fifo] [-print]
//
// It needs gcc. Each figure is one short run of two pinned processes; the rounds
// are interleaved, and medians and minima are of all rounds. With -fifo, the
// default for root, the pinned processes run with real-time priority, for a second
// at most, so that a busy machine disturbs them less.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"hardtack/bench/internal/chart"
)

// row is a comparison: ours and theirs are arguments of load and of ref or load.
type row struct {
	title  string
	ours   string
	theirs string
	beside string // what theirs is
	goal   string
	better bool // the goal is that theirs is so many times slower
}

// flowInC is the reference whose runs differ most.
const flowInC = "ref flow 1000000 56 0 1"

var rows = []row{
	{"round trip 8 B, direct", "load direct 200000 8 0 1", "ref ring 200000 8 0 1", "C ring", "≤ 1.25", false},
	{"round trip 56 B, direct", "load direct 200000 56 0 1", "ref ring 200000 56 0 1", "C ring", "≤ 1.25", false},
	{"round trip 8 B, as the library chooses", "load adaptive 200000 8 0 1", "ref ring 200000 8 0 1", "C ring", "", false},
	{"round trip 8 B, Go channels", "load channel 50000 8 0 1", "ref ring 200000 8 0 1", "C ring", "≤ 2", false},
	{"round trip 8 B, Go channels, beside one hand-over a side", "load channel 50000 8 0 1", "load handover 50000 8 0 1", "goroutines", "≤ 1.25", false},
	{"round trip 8 B, rpc", "load rpc 100000 8 0 1", "ref ring 200000 8 0 1", "C ring", "", false},
	{"one way 56 B, direct", "load flow 1000000 56 0 1", flowInC, "C ring", "≤ 1.25", false},
	{"one way 56 B, Go channels", "load chanflow 200000 56 0 1", flowInC, "C ring", "", false},
	{"one way 1 KiB", "load flow 100000 1024 0 1", "ref flow 100000 1024 0 1", "C ring and pool", "≤ 1.35", false},
	{"one way 64 KiB", "load flow 5000 65536 0 1", "ref flow 5000 65536 0 1", "C ring and pool", "≤ 1.1", false},
	{"round trip 8 B, parked, two cores", "load parked 5000 8 0 1", "ref futex 5000 8 0 1", "C futex", "≤ 1.1", false},
	{"round trip 8 B, one core", "load parked 10000 8 0 0", "ref futex 10000 8 0 0", "C futex", "≤ 1.5", false},
	{"round trip 8 B beside a Unix socket in Go", "load direct 200000 8 0 1", "load socket 5000 8 0 1", "socket", "", true},
	{"round trip 8 B beside pipes in Go", "load direct 200000 8 0 1", "load pipe 5000 8 0 1", "pipes", "", true},
	{"one way 56 B beside a Unix socket in Go", "load flow 1000000 56 0 1", "load sockflow 100000 56 0 1", "socket", "≥ 40", true},
	{"round trip 8 B beside iceoryx2", "load direct 200000 8 0 1", "iceoryx2 trip 100000 8 0 1", "iceoryx2, polled", "≥ 4", true},
	{"one way 56 B beside iceoryx2", "load flow 1000000 56 0 1", "iceoryx2 flow 200000 56 0 1", "iceoryx2, polled", "≥ 20", true},
	{"round trip 8 B beside gRPC-Go", "load direct 200000 8 0 1", "grpc trip 5000 8", "gRPC, a stream", "", true},
	{"one way 56 B beside gRPC-Go", "load flow 1000000 56 0 1", "grpc flow 50000 56", "gRPC, a stream", "", true},
}

func main() {
	rounds := flag.Int("rounds", 7, "how often each is measured")
	fifo := flag.Bool("fifo", os.Getuid() == 0, "measure with real-time priority")
	print := flag.Bool("print", false, "print the table and write nothing")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(runner{ctx: ctx, fifo: *fifo, limit: 3 * time.Minute}, *rounds, *print); err != nil {
		fmt.Fprintln(os.Stderr, "report:", err)
		os.Exit(1)
	}
}

func run(r runner, rounds int, print bool) error {
	if rounds < 1 {
		return fmt.Errorf("-rounds wants at least 1")
	}
	if runtime.NumCPU() < 2 {
		return fmt.Errorf("this takes two processors")
	}
	dir, err := os.MkdirTemp("", "bench-msg-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	r.dir = dir
	for _, build := range [][]string{
		{"gcc", "-O2", "-o", filepath.Join(dir, "ref"), "bench/msg/ref/ref.c"},
		{"go", "build", "-o", dir + "/", "./bench/msg/load", "./bench/msg/crowd", "./bench/msg/clients", "./bench/msg/stages"},
		cProgram(dir, "server", "bench/msg/crowd/c/server.c"),
		cProgram(dir, "client", "bench/msg/clients/c/client.c"),
	} {
		if out, err := exec.Command(build[0], build[1:]...).CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w\n%s", strings.Join(build, " "), err, out)
		}
	}
	missing := buildPeers(dir)
	rows = without(rows, missing)
	got := make(map[string][]float64)
	for i := range rounds {
		done := make(map[string]bool) // each program once a round
		for _, row := range rows {
			for _, cmd := range []string{row.ours, row.theirs} {
				if done[cmd] {
					continue
				}
				done[cmd] = true
				ns, err := r.measure(cmd)
				if err != nil {
					return err
				}
				got[cmd] = append(got[cmd], ns)
			}
		}
		fmt.Fprintf(os.Stderr, "round %d of %d\n", i+1, rounds)
	}
	text, ratios := table(got)
	fmt.Fprintln(os.Stderr, "stages, clients, many connections")
	bound, err := bounds(r, rounds)
	if err != nil {
		return err
	}
	where, err := stages(r, rounds)
	if err != nil {
		return err
	}
	pairs, err := clientPairs(r, max(1, rounds/3))
	if err != nil {
		return err
	}
	crowd, err := crowds(r)
	if err != nil {
		return err
	}
	text += notes(got, missing) + bound + stagesText + where + clientsText + clientTable(pairs) + crowdText + crowd
	if print {
		fmt.Print(text)
		return nil
	}
	how := "All ran at ordinary priority."
	if r.fifo {
		how = "Those that are pinned had real-time priority."
	}
	page := fmt.Sprintf(preface, time.Now().Format(time.DateOnly), runtime.NumCPU(), runtime.Version(), rounds, how) + text
	if err := os.WriteFile("docs/bench/msg.md", []byte(page), 0o644); err != nil {
		return err
	}
	if err := drawClients(pairs, "docs/bench/msg-clients.svg"); err != nil {
		return err
	}
	return ratios.Save("docs/bench/msg.svg")
}

func median(v []float64) float64 {
	s := slices.Sorted(slices.Values(v))
	return s[len(s)/2]
}

// table compares what was measured; got has a figure of each round for each command.
func table(got map[string][]float64) (string, *chart.Ratios) {
	var b strings.Builder
	c := &chart.Ratios{Title: "Typed channels between processes, Go / C", Unit: "ratio (1 is C)"}
	fmt.Fprintln(&b, "| | ours, median (least–most) | beside | median (least–most) | ratio of medians | of minima | of single rounds | goal |")
	fmt.Fprintln(&b, "| --- | ---: | --- | ---: | ---: | ---: | ---: | --- |")
	for _, r := range rows {
		o, t := got[r.ours], got[r.theirs]
		above, below := o, t
		if r.better {
			above, below = t, o
		}
		var rounds []float64
		for i := range above {
			rounds = append(rounds, above[i]/below[i])
		}
		ratio := median(above) / median(below)
		if !r.better {
			c.Add(r.title, ratio)
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %.2f | %.2f | %.2f–%.2f | %s |\n", r.title, ns(o), r.beside, ns(t),
			ratio, slices.Min(above)/slices.Min(below), slices.Min(rounds), slices.Max(rounds), r.goal)
	}
	return b.String(), c
}

// ns is the median of v, with the least and the most.
func ns(v []float64) string {
	m, least, most := median(v), slices.Min(v), slices.Max(v)
	if m < 100 {
		return fmt.Sprintf("%.1f (%.1f–%.1f) ns", m, least, most)
	}
	return fmt.Sprintf("%.0f (%.0f–%.0f) ns", m, least, most)
}

const preface = `# Typed channels between processes

Measured by ` + "`make bench-msg`" + ` on %s: %d processors, %s, %d rounds,
interleaved. Each process is pinned to a processor, but for gRPC's, the clients and the
many connections. %s The references in C are
bench/msg/ref; the programs on channels are bench/msg/load, on packages that
` + "`hardtack idl`" + ` generated.

`

// notes explain the first table; a program that is missing is told with its reason.
func notes(got map[string][]float64, missing map[string]string) string {
	c := got[flowInC]
	text := fmt.Sprintf(`
![ratios](msg.svg)

The rows beside a socket, pipes, iceoryx2 and gRPC say how many times slower those
are. "Parked" is with polling turned off on both sides. Flows vary between runs of the
same program, the one of 56 bytes in C by a factor of %.1f in these rounds: how far the
receiver lags behind decides whether lines move one by one. So a ratio of flows means
no more than the range of those of single rounds. gRPC runs as its users have it,
unpinned and at ordinary priority.
`, slices.Max(c)/slices.Min(c))
	for _, p := range peers {
		if why, no := missing[p.name]; no {
			text += fmt.Sprintf("\n%s is missing here: it could not be built (%s).\n", p.name, why)
		}
	}
	return text
}

const stagesText = `
## Where a round trip goes

Stamps that both ends take and the message carries back (bench/msg/stages), 56 bytes,
direct, polled. An end that encodes waits for the line of the slot, which the other has
read last, to come back to it.

`

const clientsText = `
## One to eight clients

A million pings in all for each number (bench/msg/clients), one after the other from
each client; processes are not pinned, and spin or sleep as the library chooses. The
time from one ping to the next, of all clients together, the least of the rounds.

`

const crowdText = `
![clients](msg-clients.svg)

## Many connections

Ten thousand to one server (bench/msg/crowd), from two processes; each has carried a
message each way before. Memory is what is resident, 8 KiB of it the pages that both
processes share; the goal is 16 KiB.

`
