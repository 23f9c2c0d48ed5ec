package main

import (
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"hardtack/tool/fault"
	"hardtack/tool/msgtop"
)

func newMsg() *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:   "msg",
		Short: "Look into the typed channels of running programs",
		Long: `Look into the connections of this user's running programs, if the programs allow it
(package msg/debug, function Start).`,
		Example: `  hardtack msg top
  hardtack msg trace ping`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fault.Bad("unknown command %q; see %s --help", args[0], cmd.CommandPath())
			}
			return cmd.Help()
		},
	}
	cmd.PersistentFlags().StringVar(&dir, "dir", msgtop.Directory(), "the `directory` where the programs can be asked")
	cmd.AddCommand(newMsgTop(&dir), newMsgTrace(&dir))
	return cmd
}

func newMsgTop(dir *string) *cobra.Command {
	var every time.Duration
	var count int
	cmd := &cobra.Command{
		Use:   "top",
		Short: "Show connections: rates, queues, who is parked",
		Long: `Show the connections, the busiest first: messages sent and received per second,
messages that wait to be received, and whether the receiver at each end is parked
(asleep until a message comes) or awake (working or spinning).

The first sample has no rates. On a terminal the table is redrawn in place.`,
		Example: `  hardtack msg top
  hardtack msg top -n 2 --every 5s`,
		Args: exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if every < 10*time.Millisecond {
				return fault.Bad("--every %v: at least 10ms", every)
			}
			ctx, stop := untilSignal(cmd)
			defer stop()
			t := msgtop.Top{Dir: *dir}
			screen := term.IsTerminal(int(os.Stdout.Fd())) && count == 0
			for i := 1; ; i++ {
				rows, err := t.Look(ctx)
				if err != nil {
					return err
				}
				if screen {
					fmt.Print("\x1b[H\x1b[2J")
				}
				if err := msgtop.Print(os.Stdout, rows); err != nil {
					return err
				}
				if i == count {
					return nil
				}
				select {
				case <-ctx.Done():
					return nil
				case <-time.After(every):
				}
			}
		},
	}
	cmd.Flags().DurationVar(&every, "every", time.Second, "the `time` between two samples")
	cmd.Flags().IntVarP(&count, "count", "n", 0, "the `number` of samples; 0: until interrupted")
	return cmd
}

func newMsgTrace(dir *string) *cobra.Command {
	return &cobra.Command{
		Use:   "trace NAME",
		Short: "Show messages as they pass",
		Long: `Show decoded messages as they pass. NAME is an interface, a process (its PID), or
one connection as "msg top" numbers it, PID/CONN. Messages that come faster than
they can be shown are counted and skipped; the programs do not wait.`,
		Example: `  hardtack msg trace ping
  hardtack msg trace 4711/2`,
		Args: exactly(1, "a NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			want, err := msgtop.ParseWant(args[0])
			if err != nil {
				return fault.Bad("%v", err)
			}
			ctx, stop := untilSignal(cmd)
			defer stop()
			return msgtop.Trace(ctx, os.Stdout, *dir, want)
		},
	}
}
