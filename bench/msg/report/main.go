// Command report measures typed channels beside the references in C and what the
// kernel offers, and writes docs/bench/msg.md and msg.svg.
//
//	report [-rounds 7] [-fifo] [-part 1] [-peers=false] [-print]
//
// It needs gcc. Each figure is one short run of two pinned processes; the rounds
// are interleaved, and medians and minima are of all rounds. With -fifo (root), the
// pinned processes run with real-time priority, for a second at most, so that a busy
// machine disturbs them less. Other programs starve meanwhile.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"hardtack/bench/internal/chart"
	"hardtack/bench/internal/report"
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

func main() { report.Main(command) }

func command() error {
	rounds := report.Rounds(7)
	fifo := flag.Bool("fifo", false, "measure with real-time priority")
	part := flag.Int("part", 1, "do one in so many of the usual operations, for a try")
	others := flag.Bool("peers", true, "measure iceoryx2 and gRPC too, which take minutes to build")
	print := flag.Bool("print", false, "print the page and write nothing")
	flag.Parse()
	if err := errors.Join(report.AtLeastOne("rounds", *rounds), report.AtLeastOne("part", *part)); err != nil {
		return err
	}
	repo, err := report.Root()
	if err != nil {
		return err
	}
	if err := os.Chdir(repo); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	r := runner{ctx: ctx, fifo: *fifo, limit: 3 * time.Minute, part: *part}
	page, pairs, ratios, err := r.all(*rounds, *others)
	if err != nil {
		return err
	}
	if *print {
		fmt.Print(page)
		return nil
	}
	return report.WritePage("docs/bench", "msg.md", page, map[string]func(string) error{
		"msg.svg":         ratios.Save,
		"msg-clients.svg": func(file string) error { return drawClients(pairs, file) },
	})
}

// all measures everything and gives the page and what its plots are drawn from.
func (r runner) all(rounds int, others bool) (page string, pairs []pair, ratios *chart.Ratios, err error) {
	fail := func(err error) (string, []pair, *chart.Ratios, error) { return "", nil, nil, err }
	if runtime.NumCPU() < 2 {
		return fail(fmt.Errorf("this takes two processors"))
	}
	load := report.Load()
	dir, err := os.MkdirTemp("", "bench-msg-")
	if err != nil {
		return fail(err)
	}
	defer os.RemoveAll(dir)
	r.dir = dir
	for _, build := range [][]string{
		{"gcc", "-O2", "-o", filepath.Join(dir, "ref"), "bench/msg/ref/ref.c"},
		{"go", "build", "-o", dir + "/", "./bench/msg/load", "./bench/msg/crowd", "./bench/msg/clients", "./bench/msg/stages"},
		cProgram(dir, "server", "bench/msg/crowd/c/server.c"),
		cProgram(dir, "client", "bench/msg/clients/c/client.c"),
	} {
		if err := report.Build(".", nil, build[0], build[1:]...); err != nil {
			return fail(err)
		}
	}
	missing := map[string]string{}
	if others {
		missing = buildPeers(dir)
	} else {
		for _, p := range peers {
			missing[p.name] = "it was left out"
		}
	}
	rows = without(rows, missing)
	got, err := r.rounds(rounds)
	if err != nil {
		return fail(err)
	}
	text, ratios := table(got)
	report.Log("stages, clients, many connections")
	bound, err := bounds(r, rounds)
	if err != nil {
		return fail(err)
	}
	where, err := stages(r, rounds)
	if err != nil {
		return fail(err)
	}
	if pairs, err = clientPairs(r, max(1, rounds/3)); err != nil {
		return fail(err)
	}
	crowd, err := crowds(r)
	if err != nil {
		return fail(err)
	}
	how := load + " All ran at ordinary priority."
	if r.fifo {
		how = load + " Those that are pinned had real-time priority."
	}
	page = fmt.Sprintf(preface, time.Now().Format(time.DateOnly), runtime.NumCPU(), runtime.Version(), rounds, how) +
		text + notes(got, missing) + bound + stagesText + where + clientsText + clientTable(pairs) + crowdText + crowd
	return page, pairs, ratios, nil
}

// rounds runs each command of the rows once a round.
func (r runner) rounds(n int) (map[string][]figure, error) {
	got := make(map[string][]figure)
	for i := range n {
		done := make(map[string]bool)
		for _, row := range rows {
			for _, cmd := range []string{row.ours, row.theirs} {
				if done[cmd] {
					continue
				}
				done[cmd] = true
				f, err := r.measure(cmd)
				if err != nil {
					return nil, err
				}
				got[cmd] = append(got[cmd], f)
			}
		}
		report.Log("round %d of %d", i+1, n)
	}
	return got, nil
}

// split gives the times of some figures, and the processor times.
func split(all []figure) (times, processor []float64) {
	for _, f := range all {
		times, processor = append(times, f.time), append(processor, f.processor)
	}
	return times, processor
}

// table compares what was measured; got has a figure of each round for each command.
func table(got map[string][]figure) (string, *chart.Ratios) {
	var b strings.Builder
	c := &chart.Ratios{Title: "Typed channels between processes, Go / C", Unit: "ratio (1 is C)"}
	fmt.Fprintln(&b, "| | ours, median (least–most) | processor time | beside | median (least–most) | processor time | ratio of medians | of minima | of single rounds | goal |")
	fmt.Fprintln(&b, "| --- | ---: | ---: | --- | ---: | ---: | ---: | ---: | ---: | --- |")
	for _, r := range rows {
		o, oursSpent := split(got[r.ours])
		t, theirsSpent := split(got[r.theirs])
		above, below := o, t
		if r.better {
			above, below = t, o
		}
		var rounds []float64
		for i := range above {
			rounds = append(rounds, above[i]/below[i])
		}
		ratio := report.Median(above) / report.Median(below)
		if !r.better {
			c.Add(r.title, ratio)
		}
		fmt.Fprintf(&b, "| %s | %s | %s ns | %s | %s | %s ns | %.2f | %.2f | %.2f–%.2f | %s |\n", r.title, ns(o), report.Cell(oursSpent), r.beside, ns(t), report.Cell(theirsSpent),
			ratio, slices.Min(above)/slices.Min(below), slices.Min(rounds), slices.Max(rounds), r.goal)
	}
	return b.String(), c
}

// ns is the median of v, with the least and the most.
func ns(v []float64) string {
	m, least, most := report.Median(v), slices.Min(v), slices.Max(v)
	if m < 100 {
		return fmt.Sprintf("%.1f (%.1f–%.1f) ns", m, least, most)
	}
	return fmt.Sprintf("%.0f (%.0f–%.0f) ns", m, least, most)
}

const preface = `# Typed channels between processes

Measured by ` + "`make bench-msg`" + ` on %s: %d processors, %s, %d rounds,
interleaved. Each process is pinned to a processor, except gRPC's, the clients and the
many connections. %s The references in C are
bench/msg/ref; the programs on channels are bench/msg/load, on packages that
` + "`hardtack idl`" + ` generated. Processor time is
that of both processes from start to end, divided by the operations that are measured:
median (least). Ends that poll compute all the time.

`

// notes explain the first table; a program that is missing is told with its reason.
func notes(got map[string][]figure, missing map[string]string) string {
	c, _ := split(got[flowInC])
	text := fmt.Sprintf(`
![ratios](msg.svg)

The rows beside a socket, pipes, iceoryx2 and gRPC show how many times slower those
are. "Parked" means that polling is turned off on both sides. One-way rates vary between
runs of the same program, by a factor of %.1f for 56 bytes in C in these rounds: the
receiver's lag decides whether cache lines move one by one. So the ratio of one-way rates
is no better known than the range of single rounds. gRPC runs as its users run it, unpinned
and at ordinary priority.
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

Time stamps that both ends take and the message carries back (bench/msg/stages); 56 bytes,
direct, polled. An end that encodes waits for the slot's cache line, which the other end
read last.

`

const clientsText = `
## One to eight clients

A million pings in all for each number of clients (bench/msg/clients), one after the other
from each client. Processes are not pinned, and spin or sleep as the library chooses. The
figure is the time from one ping to the next of all clients together, the minimum of the
rounds.

`

const crowdText = `
![clients](msg-clients.svg)

## Many connections

Ten thousand connections to one server (bench/msg/crowd), from two processes. Each has
carried a message each way. Memory is resident memory, of which 8 KiB are the pages that
both processes share; the goal is 16 KiB.

`
