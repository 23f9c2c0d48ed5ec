package watch

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"
)

// Top is the picture of hardtack top: a bubbletea model.
type Top struct {
	ctx     context.Context
	sampler *Sampler
	name    string
	width   int
	height  int
	past    []*Sample // the last ones
	held    bool
	list    int // which list is shown
	order   byte
}

var lists = []string{"processes", "system calls", "connections"}

// NewTop makes the picture of a machine.
func NewTop(ctx context.Context, s *Source) *Top {
	return &Top{ctx: ctx, sampler: &Sampler{Source: s}, name: s.Name, width: 100, height: 40, order: 'c'}
}

// Picture is what Top shows of one sample.
func Picture(name string, p *Sample, width, height int) string {
	t := &Top{name: name, past: []*Sample{p}, width: width, height: height, order: 'c'}
	return t.text()
}

// Init takes the first sample.
func (t *Top) Init() tea.Cmd { return t.take(0) }

// take takes a sample after a while.
func (t *Top) take(after time.Duration) tea.Cmd {
	return func() tea.Msg {
		select {
		case <-time.After(after):
		case <-t.ctx.Done():
			return tea.QuitMsg{}
		}
		ctx, cancel := context.WithTimeout(t.ctx, scrapeTime)
		defer cancel()
		return t.sampler.Take(ctx)
	}
}

// Update takes a sample, a key or a size.
func (t *Top) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		t.width, t.height = msg.Width, msg.Height
	case *Sample:
		if !t.held {
			t.past = append(t.past[max(len(t.past)-sparks+1, 0):], msg)
		}
		return t, t.take(interval)
	case tea.KeyPressMsg:
		switch key := msg.String(); key {
		case "q", "ctrl+c", "esc":
			return t, tea.Quit
		case "tab", "right", "l":
			t.list = (t.list + 1) % len(lists)
		case "shift+tab", "left", "h":
			t.list = (t.list + len(lists) - 1) % len(lists)
		case "space":
			t.held = !t.held
		case "c", "m", "p":
			t.order = key[0]
		}
	}
	return t, nil
}

var (
	strong = lipgloss.NewStyle().Bold(true)
	faint  = lipgloss.NewStyle().Faint(true)
	blue   = lipgloss.NewStyle().Foreground(lipgloss.Color("4"))
	green  = lipgloss.NewStyle().Foreground(lipgloss.Color("2"))
	amber  = lipgloss.NewStyle().Foreground(lipgloss.Color("3"))
	red    = lipgloss.NewStyle().Foreground(lipgloss.Color("1"))
)

// sparks is how many samples a line of history shows.
const sparks = 40

// View is the whole screen.
func (t *Top) View() tea.View {
	v := tea.NewView(t.text())
	v.AltScreen = true
	return v
}

// text is what the screen shows.
func (t *Top) text() string {
	if len(t.past) == 0 {
		return "asking " + t.name + " …"
	}
	p := t.past[len(t.past)-1]
	var b strings.Builder
	state := green.Render("running")
	if !p.Answers {
		state = red.Render("does not answer")
	}
	if t.held {
		state += amber.Render("  held")
	}
	fmt.Fprintf(&b, "%s  %s  load %.2f, %.0f switches/s, %d processes, emulator %.0f %% of a host processor\n\n", strong.Render(t.name), state,
		p.Load, p.Switches, len(p.Processes), 100*p.HostCPU)
	half := max((t.width-2)/2, 30)
	left := t.processors(p, half)
	right := t.sizes(p, half)
	for len(left) < len(right) {
		left = append(left, "")
	}
	for i, l := range left {
		b.WriteString(l)
		if i < len(right) {
			b.WriteString(strings.Repeat(" ", max(half+2-lipgloss.Width(l), 1)) + right[i])
		}
		b.WriteByte('\n')
	}
	b.WriteString("\n" + faint.Render("latency ") + latencyLine(p) + "\n\n")
	for i, name := range lists {
		if i == t.list {
			b.WriteString(strong.Underline(true).Render(name) + "  ")
		} else {
			b.WriteString(faint.Render(name) + "  ")
		}
	}
	b.WriteByte('\n')
	used := strings.Count(b.String(), "\n")
	rows := t.table(p)
	rows = rows[:min(len(rows), max(t.height-used-1, 2))]
	rows[0] = faint.Render(rows[0])
	b.WriteString(strings.Join(rows, "\n"))
	return b.String()
}

// processors are a bar and the past for each CPU.
func (t *Top) processors(p *Sample, width int) (lines []string) {
	const most = 12
	for i, v := range p.CPUs[:min(len(p.CPUs), most)] {
		var past []float64
		for _, s := range t.past {
			if i < len(s.CPUs) {
				past = append(past, s.CPUs[i])
			}
		}
		room := max(width-18-sparks/2, 8)
		lines = append(lines, fmt.Sprintf("cpu%-3d %s %4.0f %%  %s", i, bar(v, room), 100*v, blue.Render(spark(past, 1, sparks/2))))
	}
	if len(p.CPUs) > most {
		lines = append(lines, faint.Render(fmt.Sprintf("and %d more", len(p.CPUs)-most)))
	}
	return lines
}

// sizes are memory, heap, network and disks.
func (t *Top) sizes(p *Sample, width int) []string {
	room := max(width-34, 8)
	m := &p.Memory
	lines := []string{
		fmt.Sprintf("memory  %s %s of %s", bar(m.Used/max(m.Total, 1), room), amount(m.Used), amount(m.Total)),
		fmt.Sprintf("heap    %s %s, collected at %s", bar(m.Heap/max(m.HeapNext, 1), room), amount(m.Heap), amount(m.HeapNext)),
		fmt.Sprintf("files   %s, %s to be written; kernel %s", amount(m.Cache), amount(m.Dirty), amount(m.Kernel)),
	}
	var in, out, packets, read, written, operations float64
	for _, n := range p.Networks {
		if n.Name != "lo" {
			in, out, packets = in+n.In, out+n.Out, packets+n.Packets
		}
	}
	for _, d := range p.Disks {
		read, written, operations = read+d.Read, written+d.Written, operations+d.Operations
	}
	return append(lines,
		fmt.Sprintf("network %s/s in, %s/s out, %.0f packets/s", amount(in), amount(out), packets),
		fmt.Sprintf("disks   %s/s read, %s/s written, %.0f operations/s", amount(read), amount(written), operations))
}

// latencyLine is a histogram in one line.
func latencyLine(p *Sample) string {
	if len(p.Latencies) == 0 {
		return faint.Render("no calls were measured")
	}
	most := 0.0
	for _, l := range p.Latencies {
		most = max(most, math.Log1p(l.Calls))
	}
	var b strings.Builder
	for _, l := range p.Latencies {
		fmt.Fprintf(&b, "%s%s ", span(l.Below), blue.Render(spark([]float64{math.Log1p(l.Calls)}, most, 1)))
	}
	return b.String()
}

func (t *Top) table(p *Sample) (rows []string) {
	switch t.list {
	case 1:
		rows = append(rows, fmt.Sprintf("%-24s %12s %10s", "CALL", "A SECOND", "MEAN"))
		for _, c := range p.Calls {
			rows = append(rows, fmt.Sprintf("%-24s %12.0f %10s", c.Name, c.Rate, span(c.Mean)))
		}
	case 2:
		rows = append(rows, fmt.Sprintf("%-6s %-28s %-28s %-12s %8s %8s", "", "LOCAL", "REMOTE", "STATE", "IN", "OUT"))
		for _, c := range p.Conns {
			rows = append(rows, fmt.Sprintf("%-6s %-28s %-28s %-12s %8d %8d", c.Protocol, c.Local, c.Remote, c.State, c.In, c.Out))
		}
	default:
		rows = append(rows, fmt.Sprintf("%7s %6s %-5s %7s %7s %9s %9s  %s", "PID", "USER", "STATE", "THREADS", "CPU %", "TIME", "MEMORY", "NAME"))
		list := slices.Clone(p.Processes)
		slices.SortStableFunc(list, func(a, b Process) int {
			switch t.order {
			case 'm':
				return cmp.Compare(b.Memory, a.Memory)
			case 'p':
				return cmp.Compare(a.PID, b.PID)
			}
			return 0 // as they came
		})
		for _, q := range list {
			rows = append(rows, fmt.Sprintf("%7d %6d %-5s %7d %7.1f %9.2f %9s  %s", q.PID, q.UID, q.State, q.Threads, 100*q.CPU, q.Time, amount(q.Memory), q.Name))
		}
	}
	return rows
}

// bar is a share as a bar of so many columns.
func bar(v float64, width int) string {
	n := int(math.Round(min(max(v, 0), 1) * float64(width)))
	style := green
	if v > 0.85 {
		style = red
	} else if v > 0.6 {
		style = amber
	}
	return style.Render(strings.Repeat("█", n)) + faint.Render(strings.Repeat("·", width-n))
}

// spark is the past in one line of so many columns at most.
func spark(past []float64, most float64, width int) string {
	const levels = " ▁▂▃▄▅▆▇█"
	r := []rune(levels)
	var b strings.Builder
	for _, v := range past[max(len(past)-width, 0):] {
		i := 0
		if most > 0 && v > 0 {
			i = 1 + int(min(v/most, 1)*float64(len(r)-2))
		}
		b.WriteRune(r[i])
	}
	return b.String()
}

func amount(v float64) string {
	for _, u := range []struct {
		name string
		size float64
	}{{"G", 1 << 30}, {"M", 1 << 20}, {"K", 1 << 10}} {
		if v >= u.size {
			return fmt.Sprintf("%.1f%s", v/u.size, u.name)
		}
	}
	return fmt.Sprintf("%.0fB", v)
}

// span is a time in nanoseconds.
func span(ns float64) string {
	switch {
	case ns >= 1e9:
		return fmt.Sprintf("%.1fs", ns/1e9)
	case ns >= 1e6:
		return fmt.Sprintf("%.1fms", ns/1e6)
	case ns >= 1e3:
		return fmt.Sprintf("%.1fµs", ns/1e3)
	}
	return fmt.Sprintf("%.0fns", ns)
}
