package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"text/template"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"hardtack/tool/fault"
	"hardtack/tool/named"
)

// machineNames completes the names of machines.
func machineNames(*cobra.Command, []string, string) (names []string, _ cobra.ShellCompDirective) {
	list, _ := named.List()
	for _, m := range list {
		names = append(names, m.Name)
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// signalNumber reads a signal's name or number.
func signalNumber(s string) (int, error) {
	if n, err := strconv.Atoi(s); err == nil && n >= 1 && n <= 64 {
		return n, nil
	}
	name := strings.ToUpper(s)
	if !strings.HasPrefix(name, "SIG") {
		name = "SIG" + name
	}
	if n := unix.SignalNum(name); n != 0 {
		return int(n), nil
	}
	return 0, fault.Bad("%q is no signal", s)
}

// each does something to machines and goes on after an error; the last one is returned, the
// others are printed.
func each(cmd *cobra.Command, names []string, do func(m *named.Machine) error) error {
	var last error
	for _, name := range names {
		if last != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", cmd.CommandPath(), last)
		}
		m, err := named.Find(name)
		if err == nil {
			err = do(m)
		}
		if err != nil {
			last = err
		}
	}
	return last
}

// row is what ps knows of a machine: the state, and how ps puts it.
type row struct {
	named.State
}

// Described is what stands in ps's column STATUS.
func (r row) Described() string {
	switch r.Status {
	case named.Up:
		return "Up " + ago(r.Started)
	case named.Exited, named.Restarting:
		return fmt.Sprintf("%s%s (%d) %s ago", strings.ToUpper(r.Status[:1]), r.Status[1:], r.ExitCode, ago(r.Finished))
	case named.Dead:
		return "Dead: " + r.Error
	}
	return "Created"
}

func ago(t time.Time) string {
	d := max(time.Since(t), 0)
	for _, u := range []struct {
		d    time.Duration
		name string
	}{{24 * time.Hour, "day"}, {time.Hour, "hour"}, {time.Minute, "minute"}} {
		if n := int(d / u.d); n >= 1 {
			return plural(n, u.name)
		}
	}
	return plural(int(d/time.Second), "second")
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// printRows prints a table, a template for each row, or JSON.
func printRows[T any](w io.Writer, rows []T, format string, asJSON bool, head string, line func(T) string) error {
	switch {
	case asJSON || format == "json":
		e := json.NewEncoder(w)
		for _, r := range rows {
			if err := e.Encode(r); err != nil {
				return err
			}
		}
		return nil
	case format != "":
		format, table := strings.CutPrefix(strings.NewReplacer(`\t`, "\t", `\n`, "\n").Replace(format), "table ")
		t, err := template.New("format").Funcs(template.FuncMap{"json": func(v any) (string, error) {
			b, err := json.Marshal(v)
			return string(b), err
		}}).Parse(format)
		if err != nil {
			return fault.Bad("--format: %v", err)
		}
		if table {
			tw := tabwriter.NewWriter(w, 0, 8, 3, ' ', 0)
			defer tw.Flush()
			if w = tw; t.Execute(w, headings(reflect.TypeFor[T]())) == nil {
				fmt.Fprintln(w)
			}
		}
		for _, r := range rows {
			if err := t.Execute(w, r); err != nil {
				return fault.Bad("--format: %v", err)
			}
			if _, err := fmt.Fprintln(w); err != nil {
				return err
			}
		}
		return nil
	}
	tw := tabwriter.NewWriter(w, 0, 8, 3, ' ', 0)
	fmt.Fprintln(tw, head)
	for _, r := range rows {
		fmt.Fprintln(tw, line(r))
	}
	return tw.Flush()
}

// headings are the names of a row's fields for a template, in capitals.
func headings(t reflect.Type) map[string]string {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	names := map[string]string{}
	for _, f := range reflect.VisibleFields(t) {
		names[f.Name] = strings.ToUpper(f.Name)
	}
	for m := range t.Methods() {
		names[m.Name] = strings.ToUpper(m.Name)
	}
	return names
}

// addFormat defines the flags that printRows serves.
func addFormat(cmd *cobra.Command, format *string, asJSON *bool) {
	cmd.Flags().StringVar(format, "format", "", "print each by this Go `template`, as in '{{.Name}}'")
	cmd.Flags().BoolVar(asJSON, "json", false, "print JSON, an object a line")
}

func newPS() *cobra.Command {
	var all, quiet, asJSON, whole, latest bool
	var format string
	var filters []string
	last := -1
	cmd := &cobra.Command{
		Use:   "ps [flags]",
		Short: "List machines",
		Long:  "List the machines that run, and with -a those that have ended, or whose process was killed.",
		Args:  exactly(0, "no arguments"),
		RunE: func(*cobra.Command, []string) error {
			wanted, err := parseFilters(filters)
			if err != nil {
				return err
			}
			if latest {
				last = 1
			}
			all = all || wanted.ended || last >= 0
			list, err := named.List()
			if err != nil {
				return err
			}
			var rows []row
			for _, m := range list {
				s, err := m.State()
				if err != nil {
					return err
				}
				if s.Status == named.Dead && s.AutoRemove && m.Remove() == nil {
					continue // it would have removed itself, but was killed
				}
				if wanted.matches(s) && (all || s.Status != named.Exited && s.Status != named.Dead) {
					rows = append(rows, row{State: *s})
				}
			}
			if quiet {
				format = "{{.Name}}"
			}
			if last >= 0 {
				slices.SortFunc(rows, func(a, b row) int { return b.Created.Compare(a.Created) })
				rows = rows[:min(last, len(rows))]
			}
			cut := func(s string) string {
				if whole {
					return s
				}
				return short(s, 30)
			}
			return printRows(os.Stdout, rows, format, asJSON, "NAME\tROOT\tCOMMAND\tCREATED\tSTATUS\tPORTS", func(r row) string {
				return fmt.Sprintf("%s\t%s\t%s\t%s ago\t%s\t%s", r.Name, cut(r.Root), cut(strconv.Quote(strings.Join(r.Args, " "))),
					ago(r.Created), r.Described(), strings.Join(r.Ports, ", "))
			})
		},
	}
	cmd.Flags().BoolVarP(&all, "all", "a", false, "those that have ended, too")
	cmd.Flags().StringArrayVarP(&filters, "filter", "f", nil, "only machines with `what=value`: name (a part of it), status, exited (the exit status), root (repeatable)")
	cmd.Flags().BoolVarP(&quiet, "quiet", "q", false, "names only")
	cmd.Flags().BoolVar(&whole, "no-trunc", false, "whole roots and commands")
	cmd.Flags().IntVarP(&last, "last", "n", -1, "the `number` of machines that were made last, ended or not (-1: all)")
	cmd.Flags().BoolVarP(&latest, "latest", "l", false, "the machine that was made last, ended or not")
	addFormat(cmd, &format, &asJSON)
	return cmd
}

func short(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return s
}

func newStop() *cobra.Command {
	var seconds int
	var signal string
	cmd := &cobra.Command{
		Use:               "stop [flags] MACHINE...",
		Short:             "End machines",
		Long:              "Send process 1 SIGTERM, and end the machine if it still runs after a while.",
		Args:              atLeast(1, "a MACHINE"),
		ValidArgsFunction: machineNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			n, err := signalNumber(signal)
			if err != nil {
				return err
			}
			if seconds < -1 || seconds > 1e6 {
				return fault.Bad("--time %d: want a number of seconds, or -1", seconds)
			}
			patience := uint32(math.MaxUint32) // seven weeks
			if seconds >= 0 {
				patience = uint32(seconds) * 1000
			}
			return each(cmd, args, func(m *named.Machine) error {
				if err := m.Stop(cmd.Context(), n, patience); err != nil {
					return err
				}
				_, err := fmt.Println(m.Name)
				return err
			})
		},
	}
	cmd.Flags().IntVarP(&seconds, "time", "t", 10, "`seconds` to wait before the machine is ended; -1: as long as it takes")
	cmd.Flags().StringVarP(&signal, "signal", "s", "TERM", "the `signal` to send first")
	return cmd
}

func newKill() *cobra.Command {
	var signal string
	cmd := &cobra.Command{
		Use:               "kill [flags] MACHINE...",
		Short:             "Send process 1 a signal",
		Long:              "Send process 1 a signal. KILL, the default, ends the machine.",
		Args:              atLeast(1, "a MACHINE"),
		ValidArgsFunction: machineNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			n, err := signalNumber(signal)
			if err != nil {
				return err
			}
			return each(cmd, args, func(m *named.Machine) error {
				if err := m.Kill(cmd.Context(), n); err != nil {
					return err
				}
				_, err := fmt.Println(m.Name)
				return err
			})
		},
	}
	cmd.Flags().StringVarP(&signal, "signal", "s", "KILL", "the `signal`, a name or number")
	return cmd
}

func newWait() *cobra.Command {
	return &cobra.Command{
		Use:               "wait MACHINE...",
		Short:             "Wait until machines have ended, and print their exit statuses",
		Args:              atLeast(1, "a MACHINE"),
		ValidArgsFunction: machineNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			return each(cmd, args, func(m *named.Machine) error {
				status, err := m.Wait(cmd.Context())
				if err == nil {
					_, err = fmt.Println(status)
				}
				return err
			})
		},
	}
}

func newInspect() *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:               "inspect [flags] MACHINE...",
		Short:             "Print what machines are, as JSON",
		Args:              atLeast(1, "a MACHINE"),
		ValidArgsFunction: machineNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			rows := []*named.State{}
			err := each(cmd, args, func(m *named.Machine) error {
				s, err := m.State()
				if err == nil {
					rows = append(rows, s)
				}
				return err
			})
			if format != "" {
				if ferr := printRows(os.Stdout, rows, format, false, "", nil); ferr != nil {
					return ferr
				}
				return err
			}
			e := json.NewEncoder(os.Stdout)
			e.SetIndent("", "  ")
			if eerr := e.Encode(rows); eerr != nil {
				return eerr
			}
			return err
		},
	}
	cmd.Flags().StringVarP(&format, "format", "f", "", "print each by this Go `template`, or json")
	return cmd
}

func newRM() *cobra.Command {
	var force bool
	cmd := &cobra.Command{
		Use:               "rm [flags] MACHINE...",
		Short:             "Remove machines that have ended",
		Args:              atLeast(1, "a MACHINE"),
		ValidArgsFunction: machineNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			if force { // as docker: what is gone already is no failure
				args = slices.DeleteFunc(args, func(name string) bool {
					_, err := named.Find(name)
					if missing := (*named.Missing)(nil); !errors.As(err, &missing) {
						return false
					}
					fmt.Fprintf(os.Stderr, "%s: %v\n", cmd.CommandPath(), err)
					return true
				})
			}
			return each(cmd, args, func(m *named.Machine) error {
				if force && m.Alive() {
					if err := m.End(cmd.Context()); err != nil {
						return err
					}
				}
				if err := m.Remove(); err != nil {
					return err
				}
				_, err := fmt.Println(m.Name)
				return err
			})
		},
	}
	cmd.Flags().BoolVarP(&force, "force", "f", false, "end those that run")
	return cmd
}

func newStats() *cobra.Command {
	var once, asJSON bool
	var format string
	cmd := &cobra.Command{
		Use:               "stats [flags] [MACHINE...]",
		Short:             "Show what machines use",
		Long:              "Show what machines use: processors and memory of the host, and the guest's memory, kernel heap and processes. Without names all that run.",
		ValidArgsFunction: machineNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			before := map[string]named.Usage{}
			for {
				rows, err := usages(cmd.Context(), args, before)
				if err != nil {
					return err
				}
				err = printRows(os.Stdout, rows, format, asJSON, "NAME\tCPU %\tHOST MEMORY\tGUEST MEMORY\tKERNEL HEAP\tPROCESSES", func(u named.Usage) string {
					return fmt.Sprintf("%s\t%.1f\t%s\t%s / %s\t%s\t%d", u.Name, u.Percent, size(u.Resident), size(u.Used), size(u.Memory), size(u.Heap), u.Processes)
				})
				if err != nil || once {
					return err
				}
				select {
				case <-cmd.Context().Done():
					return nil
				case <-time.After(time.Second):
				}
			}
		},
	}
	cmd.Flags().BoolVar(&once, "no-stream", false, "once instead of every second")
	addFormat(cmd, &format, &asJSON)
	return cmd
}

// usages asks the machines. Those that were not named may end meanwhile.
func usages(ctx context.Context, names []string, before map[string]named.Usage) (rows []named.Usage, err error) {
	var list []*named.Machine
	for _, name := range names {
		m, err := named.Find(name)
		if err != nil {
			return nil, err
		}
		list = append(list, m)
	}
	if len(names) == 0 {
		if list, err = named.List(); err != nil {
			return nil, err
		}
	}
	for _, m := range list {
		if s, err := m.State(); len(names) == 0 && (err != nil || !s.Runs()) {
			continue
		}
		u, err := m.Usage(ctx, before[m.Name])
		if err != nil && len(names) > 0 {
			return nil, err
		}
		if err == nil {
			before[m.Name] = u
			rows = append(rows, u)
		}
	}
	return rows, nil
}

func size(n uint64) string {
	switch {
	case n >= 1<<30:
		return fmt.Sprintf("%.2fGiB", float64(n)/(1<<30))
	case n >= 1<<20:
		return fmt.Sprintf("%.1fMiB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%dKiB", n>>10)
}
