package main

import (
	"context"
	"os"
	"strconv"

	"github.com/spf13/cobra"

	"hardtack/tool/fault"
	"hardtack/tool/named"
)

// clusterProgram is the program in a machine that runs programs in its other kernels.
const clusterProgram = "/sbin/cluster"

func newCluster() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "cluster",
		Short: "Look after the kernels of a machine that has several",
		Long: `Look after the kernels of a machine that was started with --cluster or --clusters. They are
numbered; 0 is the first one, which runs the machine's command and cannot be ended alone.`,
	}
	cmd.AddCommand(newClusterLs(), newClusterRun(), newClusterMove("cores", "processors", "N", "2"), newClusterMove("memory", "memory", "SIZE", "32M"))
	for _, c := range []struct{ name, short, long string }{
		{"stop", "Ask a kernel to shut down", "Ask a kernel to shut down, and return."},
		{"kill", "Take a kernel's processors away", "Take a kernel's processors away at once. With restart=always it does not start again by itself."},
		{"restart", "Start a kernel again", "Start a kernel again, and end it before if it runs."},
	} {
		cmd.AddCommand(&cobra.Command{
			Use:     c.name + " MACHINE CLUSTER",
			Short:   c.short,
			Long:    c.long,
			Example: "  hardtack cluster " + c.name + " web 1",
			Args:    exactly(2, "a MACHINE and the number of a CLUSTER"),
			RunE: func(cmd *cobra.Command, args []string) error {
				return askCluster(cmd.Context(), c.name, args[0], args[1])
			},
			ValidArgsFunction: firstMachine,
		})
	}
	return cmd
}

// firstMachine completes the first argument.
func firstMachine(cmd *cobra.Command, args []string, s string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return machineNames(cmd, args, s)
}

func newClusterLs() *cobra.Command {
	var format string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "ls MACHINE",
		Short: "List a machine's kernels",
		Long: `List a machine's kernels: what each does or how it ended, how often it was started, its
processors and its memory.`,
		Args:              exactly(1, "a MACHINE"),
		ValidArgsFunction: firstMachine,
		RunE: func(cmd *cobra.Command, args []string) error {
			m, err := named.Find(args[0])
			if err != nil {
				return err
			}
			text, err := m.Clusters(cmd.Context())
			if err != nil {
				return err
			}
			if format == "" && !asJSON {
				_, err = os.Stdout.Write(text)
				return err
			}
			rows, err := named.ParseClusters(text)
			if err != nil {
				return err
			}
			return printRows(os.Stdout, rows, format, asJSON, "", nil)
		},
	}
	cmd.Flags().StringVar(&format, "format", "", "print each by this Go `template`, as in '{{.Number}} {{.State}}'")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON, an object a line")
	return cmd
}

// askCluster asks the first kernel to do something with another one.
func askCluster(ctx context.Context, what, machine, cluster string) error {
	n, err := strconv.ParseUint(cluster, 10, 8)
	if err != nil || n == 0 {
		return fault.Bad("%q is not the number of a further cluster: 1 and up", cluster)
	}
	m, err := named.Find(machine)
	if err != nil {
		return err
	}
	return m.AskCluster(ctx, what, int(n))
}

// newClusterMove is the verb that moves something of which there is so much.
func newClusterMove(name, what, much, example string) *cobra.Command {
	var from, to uint8
	cmd := &cobra.Command{
		Use:   name + " MACHINE " + much + " --from CLUSTER --to CLUSTER",
		Short: "Move " + what + " from one kernel of a machine to another",
		Long: "Move " + what + ` from one kernel of a machine to another while programs run in both, and wait until that
is done. What cannot move is in docs/clusters.md.`,
		Example:           "  hardtack cluster " + name + " web " + example + " --from 0 --to 1",
		Args:              exactly(2, "a MACHINE and how much to move"),
		ValidArgsFunction: firstMachine,
		RunE: func(cmd *cobra.Command, args []string) error {
			m, err := named.Find(args[0])
			if err != nil {
				return err
			}
			return m.Move(cmd.Context(), name, args[1], int(from), int(to))
		},
	}
	cmd.Flags().Uint8Var(&from, "from", 0, "the number of the `CLUSTER` that gives")
	cmd.Flags().Uint8Var(&to, "to", 0, "the number of the `CLUSTER` that gets")
	cmd.MarkFlagRequired("from")
	cmd.MarkFlagRequired("to")
	return cmd
}

func newClusterRun() *cobra.Command {
	var f execFlags
	cmd := &cobra.Command{
		Use:   "run [flags] MACHINE CLUSTER [--] CMD [ARG...]",
		Short: "Run a program in another kernel of a machine",
		Long: `Run a program in another kernel of a machine, as hardtack exec does in the first one: with the
machine's environment and working directory, as root. The root file system must have cmd/cluster as
` + clusterProgram + `.

Without -i the program's input is empty. With -t it has a terminal of its own, which has the size
of this one. Without -t signals are passed on to it.

Exit status:
  125  hardtack could not: there is no such machine, it does not run, bad flags
  127  there is no such program, or no ` + clusterProgram + `
  128+N  signal N ended the program
  255  there is no such cluster, it runs no programs, or has ended meanwhile
  any other  the status of the program`,
		Example: `  hardtack cluster run web 1 -- ps
  hardtack cluster run -it web 1 /bin/sh`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) < 3 {
				return fault.With(named.StatusFailed, "want a MACHINE, a CLUSTER and a CMD; see %s --help", cmd.CommandPath())
			}
			if n, err := strconv.ParseUint(args[1], 10, 8); err != nil || n == 0 {
				return fault.With(named.StatusFailed, "%q is not the number of a further cluster: 1 and up", args[1])
			}
			return nil
		},
		ValidArgsFunction: firstMachine,
		RunE: func(cmd *cobra.Command, args []string) error {
			words := []string{clusterProgram, "run"}
			if f.terminal {
				words = append(words, "-t")
			}
			program := args[2:]
			if program[0] == "--" {
				program = program[1:]
			}
			if len(program) == 0 {
				return fault.With(named.StatusFailed, "want a CMD; see %s --help", cmd.CommandPath())
			}
			f.user = "0:0" // who may start programs there
			return f.exec(cmd.Context(), args[0], append(append(words, args[1], "--"), program...))
		},
	}
	fl := cmd.Flags()
	fl.SetInterspersed(false) // the program's flags are its own
	f.define(fl)
	cmd.SetFlagErrorFunc(execFlagError)
	return cmd
}
