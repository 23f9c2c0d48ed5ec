// Command hardtack builds the kernel, makes root file systems and runs them in
// QEMU. Each verb is in a file of its own.
package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"hardtack/tool/fault"
)

func main() { os.Exit(run(os.Args[1:])) }

// exitStatus is a status that needs no words: the guest's own.
type exitStatus int

func (e exitStatus) Error() string { return fmt.Sprintf("status %d", int(e)) }

func run(args []string) int {
	if isVetTool(args) {
		runVetTool() // does not return
	}
	root := newRoot()
	root.SetArgs(args)
	cmd, err := root.ExecuteC()
	var guest exitStatus
	switch {
	case err == nil:
		return fault.OK
	case errors.As(err, &guest):
		return int(guest)
	}
	// One line, whatever is in the error.
	fmt.Fprintf(os.Stderr, "%s: %s\n", cmd.CommandPath(), strings.Join(strings.FieldsFunc(err.Error(), isBreak), "; "))
	return fault.Status(err)
}

func isBreak(r rune) bool { return r == '\n' || r == '\r' }

const statuses = `Exit status:
  0    done; for run: process 1 ended with 0
  1    an error on the host: no space, no permission, a missing tool
  2    bad input: flags, images, programs, a busy port
  70   run: the kernel panicked (the message is on standard error)
  71   run: the machine ended without reporting a status
  124  run: --timeout ran out
  128+N  ended by signal N
  any other  run: the status of process 1`

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "hardtack",
		Short: "An operating system in Go that runs Linux server programs",
		Long: `Hardtack is an operating system written in Go. This command builds its kernel,
makes root file systems and runs them in QEMU.

` + statuses,
		Example: `  hardtack build
  hardtack image debian -o root.tar bash redis-server
  hardtack run -p 6379:6379 root.tar -- redis-server --protected-mode no`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fault.Bad("unknown command %q; see %s --help", args[0], cmd.CommandPath())
			}
			return cmd.Help()
		},
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return fault.Bad("%v; see %s --help", err, cmd.CommandPath())
	})
	root.AddCommand(newBuild(), newImage(), newFsck(), newRun(), newPS(), newExec(), newCluster(), newLogs(), newCP(), newStop(), newKill(), newWait(), newRM(),
		newInspect(), newStats(), newTop(), newTrace(), newRecord(), newSnapshot(), newFork(), newGo(), newAffinity(), newIDL(), newVetMsg(), newNames(), newMsg(), newTask(), newModel(), newMaxlive())
	root.InitDefaultCompletionCmd()
	return root
}

// exactly and atLeast are cobra's checks of arguments as bad input.
func exactly(n int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != n {
			return fault.Bad("want %s; see %s --help", what, cmd.CommandPath())
		}
		return nil
	}
}

func atLeast(n int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) < n {
			return fault.Bad("want %s; see %s --help", what, cmd.CommandPath())
		}
		return nil
	}
}
