package main

import (
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"hardtack/tool/fault"
	"hardtack/tool/tasktrace"
)

func newTask() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "task",
		Short: "Look at programs that use the task library",
		Args:  cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fault.Bad("unknown command %q; see %s --help", args[0], cmd.CommandPath())
			}
			return cmd.Help()
		},
	}
	cmd.AddCommand(newTaskTrace())
	return cmd
}

func newTaskTrace() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "trace FILE",
		Short: "Make a timeline page of a trace",
		Long: `Make an HTML page from a trace that task.Runtime.StartTrace recorded: one lane per
worker, with runs, stolen tasks, joins, blocked tasks and sleeps, the changes of the
number of workers, and how each worker spent its time.
"-" reads standard input. Perfetto reads the same file.`,
		Example: `  hardtack task trace trace.json
  hardtack task trace -o page.html trace.json`,
		Args: exactly(1, "the trace's file"),
		RunE: func(cmd *cobra.Command, args []string) error {
			in, title := io.Reader(os.Stdin), "task trace"
			if args[0] != "-" {
				f, err := os.Open(args[0])
				if err != nil {
					return fault.Bad("%v", err)
				}
				defer f.Close()
				in, title = f, filepath.Base(args[0])
			}
			t, err := tasktrace.Read(in)
			if err != nil {
				return err
			}
			if output == "" {
				output = "-"
				if args[0] != "-" {
					output = args[0] + ".html"
				}
			}
			tidy, stop := newTidy()
			defer stop()
			return tidy.create(output, func(tmp string) error {
				out, err := os.OpenFile(tmp, os.O_WRONLY|os.O_TRUNC, 0)
				if err != nil {
					return err
				}
				if err := t.WritePage(out, title); err != nil {
					out.Close()
					return err
				}
				return out.Close()
			})
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "", `the page (default FILE.html, "-" for standard output)`)
	return cmd
}
