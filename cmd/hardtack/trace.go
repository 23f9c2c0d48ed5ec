package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"hardtack/tool/fault"
	"hardtack/tool/named"
)

func newTrace() *cobra.Command {
	var t named.Trace
	var output string
	cmd := &cobra.Command{
		Use:   "trace [flags] MACHINE",
		Short: "Show the system calls of programs in a machine that runs",
		Long: `Show system calls and signals as strace does, with nothing in the machine's image
and without stopping its programs. Each line has the thread, the time, the call and how long
it took. A call is shown when it returns.

It ends when the last of the processes has ended, and with Ctrl-C. Programs do not wait for
this command: it says how many lines were lost if it is too slow.`,
		Example: `  hardtack trace web
  hardtack trace -p 12 -e openat,read,write web
  hardtack trace -e '!futex,clock_nanosleep' -o trace.txt web`,
		Args:              exactly(1, "a MACHINE"),
		ValidArgsFunction: machineNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			t.Calls = strings.TrimPrefix(t.Calls, "trace=")
			return runTrace(cmd.Context(), args[0], output, &t)
		},
	}
	fl := cmd.Flags()
	fl.IntSliceVarP(&t.PIDs, "pid", "p", nil, "a `process` of the machine, and children that it makes from now on (repeatable; all processes)")
	fl.StringVarP(&t.Calls, "expr", "e", "", "only these `calls`, with commas between; with ! before them all others")
	fl.StringVarP(&output, "output", "o", "", "write to a `file`")
	return cmd
}

func runTrace(ctx context.Context, name, output string, t *named.Trace) (err error) {
	m, err := named.Find(name)
	if err != nil {
		return err
	}
	for _, pid := range t.PIDs {
		if pid < 1 {
			return fault.Bad("%d is no process", pid)
		}
	}
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	c, done, err := m.Look(ctx)
	if err != nil {
		return err
	}
	defer done()
	w := io.Writer(os.Stdout)
	if output != "" {
		f, err := os.Create(output)
		if err != nil {
			return err
		}
		defer func() {
			if cerr := f.Close(); err == nil {
				err = cerr
			}
		}()
		w = f
	}
	return t.Show(ctx, c, w)
}
