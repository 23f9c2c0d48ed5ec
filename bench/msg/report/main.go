// Command report measures typed channels beside the references in C and what the
// kernel offers, and writes docs/bench/msg.md and msg.svg.
//
//	report [-rounds 7] [-fifo] [-print]
//
// It needs gcc. Each figure is one short run of two pinned processes; the rounds
// are interleaved, and medians and minima are of all rounds. With -fifo, the
// default for root, the processes run with real-time priority, for a second at
// most, so that a busy machine disturbs them less.
package main

import (
	"flag"
	"fmt"
	"image/color"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
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

var rows = []row{
	{"round trip 8 B, direct", "load direct 200000 8 0 1", "ref ring 200000 8 0 1", "C ring", "≤ 1.25", false},
	{"round trip 56 B, direct", "load direct 200000 56 0 1", "ref ring 200000 56 0 1", "C ring", "≤ 1.25", false},
	{"round trip 8 B, as the library chooses", "load adaptive 200000 8 0 1", "ref ring 200000 8 0 1", "C ring", "", false},
	{"round trip 8 B, Go channels", "load channel 50000 8 0 1", "ref ring 200000 8 0 1", "C ring", "≤ 2", false},
	{"round trip 8 B, Go channels, beside one hand-over a side", "load channel 50000 8 0 1", "load handover 50000 8 0 1", "goroutines", "≤ 1.25", false},
	{"round trip 8 B, rpc", "load rpc 100000 8 0 1", "ref ring 200000 8 0 1", "C ring", "", false},
	{"one way 56 B, direct", "load flow 1000000 56 0 1", "ref flow 1000000 56 0 1", "C ring", "≤ 1.25", false},
	{"one way 56 B, Go channels", "load chanflow 200000 56 0 1", "ref flow 1000000 56 0 1", "C ring", "", false},
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
	if err := run(*rounds, *fifo, *print); err != nil {
		fmt.Fprintln(os.Stderr, "report:", err)
		os.Exit(1)
	}
}

func run(rounds int, fifo, print bool) error {
	if runtime.NumCPU() < 2 {
		return fmt.Errorf("this takes two processors")
	}
	dir, err := os.MkdirTemp("", "bench-msg-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
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
		for _, r := range rows {
			for _, cmd := range []string{r.ours, r.theirs} {
				if done[cmd] {
					continue
				}
				done[cmd] = true
				ns, err := measure(dir, cmd, fifo)
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
	bound, err := bounds(dir, rounds, fifo)
	if err != nil {
		return err
	}
	where, err := stages(dir, rounds, fifo)
	if err != nil {
		return err
	}
	pairs, err := clientPairs(dir, max(1, rounds/3), fifo)
	if err != nil {
		return err
	}
	crowd, err := crowds(dir, fifo)
	if err != nil {
		return err
	}
	text += notes(missing) + bound + stagesText + where + clientsText + clientTable(pairs) + crowdText + crowd
	if print {
		fmt.Print(text)
		return nil
	}
	how := "at ordinary priority"
	if fifo {
		how = "with real-time priority"
	}
	page := fmt.Sprintf(preface, time.Now().Format(time.DateOnly), runtime.NumCPU(), runtime.Version(), rounds, how) + text
	if err := os.WriteFile("docs/bench/msg.md", []byte(page), 0o644); err != nil {
		return err
	}
	if err := drawClients(pairs, "docs/bench/msg-clients.svg"); err != nil {
		return err
	}
	return draw(ratios, "docs/bench/msg.svg")
}

// measure runs one program and returns the nanoseconds it prints.
func measure(dir, cmd string, fifo bool) (float64, error) {
	args := strings.Fields(cmd)
	out, err := output(dir, fifo, args[0], args[1:]...)
	if err != nil {
		return 0, err
	}
	return strconv.ParseFloat(strings.TrimSpace(out), 64)
}

// output runs one program of dir and returns what it prints. gRPC and the crowd never
// have real-time priority: they are not pinned, and threads that poll could keep those
// they wait for from running.
func output(dir string, fifo bool, name string, args ...string) (string, error) {
	args = append([]string{"timeout", "-k", "5", "60", filepath.Join(dir, name)}, args...)
	if chrt, err := exec.LookPath("chrt"); err == nil && fifo && name != "grpc" && name != "crowd" {
		args = append([]string{chrt, "-f", "10"}, args...)
	}
	c := exec.Command(args[0], args[1:]...)
	c.Stderr = os.Stderr
	out, err := c.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w", name, err)
	}
	return string(out), nil
}

func median(v []float64) float64 {
	s := slices.Sorted(slices.Values(v))
	return s[len(s)/2]
}

// ratio is a row's result.
type ratio struct {
	title string
	v     float64
}

func table(got map[string][]float64) (string, []ratio) {
	var b strings.Builder
	var all []ratio
	fmt.Fprintln(&b, "| | ours, median (least) | beside | median (least) | ratio of medians | of minima | goal |")
	fmt.Fprintln(&b, "| --- | ---: | --- | ---: | ---: | ---: | --- |")
	for _, r := range rows {
		o, t := got[r.ours], got[r.theirs]
		med, least := median(o)/median(t), slices.Min(o)/slices.Min(t)
		if r.better {
			med, least = 1/med, 1/least
		} else {
			all = append(all, ratio{r.title, med})
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %.2f | %.2f | %s |\n", r.title, ns(o), r.beside, ns(t), med, least, r.goal)
	}
	return b.String(), all
}

func ns(v []float64) string {
	m, l := median(v), slices.Min(v)
	if m < 100 {
		return fmt.Sprintf("%.1f (%.1f) ns", m, l)
	}
	return fmt.Sprintf("%.0f (%.0f) ns", m, l)
}

// draw plots the ratios; shorter than the line is better than the reference.
func draw(all []ratio, name string) error {
	p := plot.New()
	p.Title.Text = "Typed channels between processes, Go / C"
	p.X.Label.Text = "ratio (1 is C)"
	p.X.Min = 0
	var values plotter.Values
	var titles []string
	for _, r := range slices.Backward(all) {
		values, titles = append(values, r.v), append(titles, r.title)
	}
	bars, err := plotter.NewBarChart(values, vg.Points(14))
	if err != nil {
		return err
	}
	bars.Horizontal = true
	bars.Color = color.RGBA{R: 0x2f, G: 0x6f, B: 0x9f, A: 0xff}
	bars.LineStyle.Width = 0
	line, err := plotter.NewLine(plotter.XYs{{X: 1, Y: -0.5}, {X: 1, Y: float64(len(values)) - 0.5}})
	if err != nil {
		return err
	}
	line.Color = color.RGBA{R: 0xc0, A: 0xff}
	p.Add(bars, line)
	p.NominalY(titles...)
	return p.Save(9*vg.Inch, vg.Length(len(values))*0.32*vg.Inch+vg.Inch, name)
}

const preface = `# Typed channels between processes

Measured by ` + "`make bench-msg`" + ` on %s: %d processors, %s, %d rounds,
interleaved, %s. Each process is pinned to a processor, but for the clients and the
many connections. The references in C are bench/msg/ref; the programs on channels are
bench/msg/load, on packages that ` + "`hardtack idl`" + ` generated.

`

// notes explain the first table; a program that is missing is told with its reason.
func notes(missing map[string]string) string {
	text := `
![ratios](msg.svg)

The rows beside a socket, pipes, iceoryx2 and gRPC say how many times slower those
are. "Parked" is with polling turned off on both sides. The same C program varies by
1.5 between runs of flows of 56 bytes, for how far the receiver lags behind decides
whether lines move one by one. gRPC runs as its users have it, unpinned and at
ordinary priority.
`
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
