package netbench

import (
	"bufio"
	"bytes"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// layers are the parts of the way, by what the names of their functions begin with. A
// sample belongs to the layer of its innermost function that has one, so that what a
// layer calls (buffers, allocations, locks) is counted as its own.
var layers = []struct {
	name     string
	prefixes []string
}{
	{"driver", []string{"hardtack/driver/"}},
	{"interface", []string{"hardtack/kernel/net/netif."}},
	{"IP", []string{"gvisor.dev/gvisor/pkg/tcpip/network/", "gvisor.dev/gvisor/pkg/tcpip/stack.(*Route)", "gvisor.dev/gvisor/pkg/tcpip/stack.(*nic)", "gvisor.dev/gvisor/pkg/tcpip/stack.(*Stack).FindRoute"}},
	{"TCP, UDP", []string{"gvisor.dev/gvisor/pkg/tcpip/transport/", "gvisor.dev/gvisor/pkg/tcpip/stack.(*transportDemuxer)"}},
	{"socket", []string{"hardtack/kernel/net/inet.", "hardtack/kernel/net/sock."}},
	{"epoll, wake-up", []string{"hardtack/kernel/base/wait.", "hardtack/kernel/fd/", "hardtack/nucleus."}},
	{"system call", []string{"hardtack/kernel/", "hardtack/arch/"}},
	{"collector", []string{"runtime.gcBgMarkWorker", "runtime.bgsweep", "runtime.bgscavenge"}},
}

// userReturn is the program's time, not the kernel's.
const userReturn = "hardtack/arch/amd64.userReturn"

// layerOf is the place in layers of a stack, innermost function first; -1 for none.
func layerOf(stack []string) int {
	if stack[0] == userReturn {
		return -1
	}
	for _, f := range stack {
		for i, l := range layers {
			for _, p := range l.prefixes {
				if strings.HasPrefix(f, p) {
					return i
				}
			}
		}
	}
	return len(layers) // the runtime
}

// shares sums up what "go tool pprof -traces" prints: the part of the kernel's samples that
// each layer has, and behind them what belongs to none.
func shares(traces []byte) ([]float64, error) {
	sums := make([]float64, len(layers)+1)
	var stack []string
	var took time.Duration
	total := 0.0
	add := func() {
		if len(stack) == 0 {
			return
		}
		if i := layerOf(stack); i >= 0 {
			sums[i] += took.Seconds()
			total += took.Seconds()
		}
		stack, took = nil, 0
	}
	begun := false
	for s := bufio.NewScanner(bytes.NewReader(traces)); s.Scan(); {
		line := s.Text()
		if strings.HasPrefix(line, "-----------+") {
			add()
			begun = true
			continue
		}
		f := strings.Fields(line)
		if !begun || len(f) == 0 || strings.HasSuffix(f[0], ":") {
			continue
		}
		if stack == nil {
			d, err := time.ParseDuration(f[0])
			if err != nil || len(f) < 2 {
				return nil, fmt.Errorf("pprof printed %q", line)
			}
			took, f = d, f[1:]
		}
		stack = append(stack, f[0])
	}
	add()
	if total == 0 {
		return nil, fmt.Errorf("a profile without samples of the kernel")
	}
	for i := range sums {
		sums[i] /= total
	}
	return sums, nil
}

// Layers reads the profiles in a directory: row → shares.
func Layers(dir string) (map[string][]float64, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.pprof"))
	if err != nil {
		return nil, err
	}
	all := map[string][]float64{}
	for _, name := range files {
		out, err := exec.Command("go", "tool", "pprof", "-traces", name).Output()
		if err != nil {
			return nil, fmt.Errorf("go tool pprof %s: %w", name, err)
		}
		if all[strings.TrimSuffix(filepath.Base(name), ".pprof")], err = shares(out); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return all, nil
}

// layersTable is the part of the page that says where the instructions go.
func layersTable(all map[string][]float64) string {
	if len(all) == 0 {
		return ""
	}
	b := new(strings.Builder)
	b.WriteString(`
## Where Hardtack's go

Percent of the kernel's instructions, by a profile that samples every ten million of
them. What a layer calls of buffers, memory and locks is counted as its own.

|`)
	for _, l := range layers {
		b.WriteString(" | " + l.name)
	}
	b.WriteString(" | rest |\n| ---" + strings.Repeat(" | ---:", len(layers)+1) + " |\n")
	for _, row := range Rows {
		s, ok := all[row.Name]
		if !ok {
			continue
		}
		b.WriteString("| " + row.Title)
		for _, share := range slices.Clip(s) {
			fmt.Fprintf(b, " | %.0f", 100*share)
		}
		b.WriteString(" |\n")
	}
	return b.String()
}
