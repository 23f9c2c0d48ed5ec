package named

import (
	"context"
	"fmt"
	"io"
	"strings"
	"syscall"

	"hardtack/idl/live"
	"hardtack/tool/fault"
)

// Trace says whose system calls to show.
type Trace struct {
	PIDs  []int  // in the machine, with children that they make; none: all processes
	Calls string // names with commas between, or ! and then names of calls not to show; empty: all
}

// lines are the commands for the machine's /proc/hardtack/trace.
func (t *Trace) lines() []string {
	var l []string
	if t.Calls != "" {
		l = append(l, "calls "+t.Calls)
	}
	if len(t.PIDs) == 0 {
		l = append(l, "all")
	}
	for _, pid := range t.PIDs {
		l = append(l, fmt.Sprintf("pid %d", pid))
	}
	return l
}

// Show writes system calls as text until the processes have ended, or ctx has.
func (t *Trace) Show(ctx context.Context, c *live.Client, w io.Writer) error {
	out, err := c.Start(ctx, live.StartCall{Flags: flagTrace, Args: joined(t.lines())})
	if err != nil {
		return err
	}
	switch e := syscall.Errno(out.Errno); e {
	case 0:
	case syscall.EBUSY:
		return fault.With(fault.Host, "somebody else traces this machine")
	case syscall.ESRCH:
		return fault.Bad("there is no such process in the machine: %s", strings.Trim(fmt.Sprint(t.PIDs), "[]"))
	case syscall.EINVAL:
		return fault.Bad("there is no such system call: %s", t.Calls)
	default:
		return fmt.Errorf("trace: %w", e)
	}
	defer closeSession(c, out.Session)
	for {
		n, err := c.Next(ctx, live.NextCall{Session: out.Session})
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return fmt.Errorf("the machine ended, or its connection did: %w", err)
		case n.What != 1:
			return nil
		}
		if _, err := w.Write(n.Data); err != nil {
			return err
		}
	}
}
