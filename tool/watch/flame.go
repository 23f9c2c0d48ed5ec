package watch

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/google/pprof/profile"

	"hardtack/idl/live"
	"hardtack/tool/fault"
)

// flagReport has live.if's start give one of the kernel's reports.
const flagReport = 8

// reportMost bounds a report of the guest's.
const reportMost = 64 << 20

// report reads one of the kernel's reports: it is asked for with a line, and read after a
// while.
func report(ctx context.Context, c *live.Client, name, line string, after time.Duration) ([]byte, error) {
	var args []byte
	if line != "" {
		args = append([]byte(line), 0)
	}
	out, err := c.Start(ctx, live.StartCall{Flags: flagReport, Dir: name, Args: args})
	if err != nil {
		return nil, err
	}
	switch e := syscall.Errno(out.Errno); e {
	case 0:
	case syscall.EBUSY:
		return nil, fault.With(fault.Host, "somebody else traces or profiles this machine")
	case syscall.ENOENT:
		return nil, fault.With(fault.Host, "the machine's kernel has no such report: it is too old")
	default:
		return nil, fmt.Errorf("the kernel's report %s: %w", name, e)
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		_, _ = c.Close(ctx, live.CloseCall{Session: out.Session}) // a machine that is gone has none
	}()
	select {
	case <-time.After(after):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	var b []byte
	for len(b) < reportMost {
		n, err := c.Next(ctx, live.NextCall{Session: out.Session})
		switch {
		case err != nil:
			return nil, fmt.Errorf("the machine ended, or its connection did: %w", err)
		case n.What != 1:
			return b, nil
		}
		b = append(b, n.Data...)
	}
	return nil, fault.With(fault.Host, "the machine's report has no end")
}

// Flame is a function of the kernel's and those that it called.
type Flame struct {
	Name string   `json:"name"`
	Time int64    `json:"time"` // nanoseconds, with those that it called
	Kids []*Flame `json:"kids,omitempty"`
}

// Flame looks for some seconds what the kernel spends its time on.
func (s *Source) Flame(ctx context.Context, seconds int) (*Flame, error) {
	c, err := s.Live(ctx)
	if err != nil {
		return nil, err
	}
	b, err := report(ctx, c, "profile", fmt.Sprint(seconds), 0)
	if err != nil {
		return nil, err
	}
	return flame(b)
}

// Limits of a flame graph: the guest's kernel says what is in it.
const (
	flameDepth = 100
	flameNodes = 20000
	nameMost   = 200
)

// flame adds up the stacks of a profile.
func flame(b []byte) (*Flame, error) {
	p, err := profile.Parse(bytes.NewReader(b))
	if err != nil || len(p.SampleType) == 0 {
		return nil, fault.With(fault.Host, "the kernel's profile cannot be read: %v", err)
	}
	root := &Flame{Name: "kernel"}
	nodes := 0
	value := len(p.SampleType) - 1 // nanoseconds
	for _, sample := range p.Sample {
		at := root
		v := max(sample.Value[value], 0)
		at.Time += v
		depth := 0
		for _, l := range slices.Backward(sample.Location) {
			for _, line := range slices.Backward(l.Line) {
				if depth++; line.Function == nil || depth > flameDepth {
					continue
				}
				name := printable(shortName(line.Function.Name), nameMost)
				i := slices.IndexFunc(at.Kids, func(k *Flame) bool { return k.Name == name })
				if i < 0 {
					if nodes++; nodes > flameNodes {
						return nil, fault.With(fault.Host, "the kernel's profile has too many functions")
					}
					at.Kids = append(at.Kids, &Flame{Name: name})
					i = len(at.Kids) - 1
				}
				at = at.Kids[i]
				at.Time += v
			}
		}
	}
	return root, nil
}

// shortName leaves out what all functions of ours begin with.
func shortName(s string) string {
	for _, prefix := range []string{"hardtack/kernel/", "hardtack/", "gvisor.dev/gvisor/pkg/"} {
		if rest, ok := strings.CutPrefix(s, prefix); ok {
			return rest
		}
	}
	return s
}
