package main

import (
	"context"
	"os"
	"os/signal"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"hardtack/tool/fault"
	"hardtack/tool/names"
)

// untilSignal is a context that SIGINT and SIGTERM end.
func untilSignal(cmd *cobra.Command) (context.Context, context.CancelFunc) {
	ctx := cmd.Context()
	if ctx == nil {
		ctx = context.Background()
	}
	return signal.NotifyContext(ctx, unix.SIGINT, unix.SIGTERM)
}

func newNames() *cobra.Command {
	var path string
	cmd := &cobra.Command{
		Use:   "names",
		Short: "Run or look into the name service of typed channels",
		Long: `Run or look into the name service, which says where services on typed channels are
reached. A name lives as long as the process that set it, and belongs to the user who
took it first.

Without "names serve", the first program that needs the service runs it itself, and
another takes over when that program ends. Root's service, at /run/hardtack/names,
serves all users; other users' programs have theirs in $XDG_RUNTIME_DIR.`,
		Example: `  hardtack names serve &
  hardtack names ls
  hardtack names watch worker.
  hardtack names get --wait database`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fault.Bad("unknown command %q; see %s --help", args[0], cmd.CommandPath())
			}
			return cmd.Help()
		},
	}
	cmd.PersistentFlags().StringVar(&path, "path", "", "the service's `socket` (default: $HARDTACK_NAMES, or as said above)")

	serve := &cobra.Command{
		Use:   "serve",
		Short: "Run the service until it is interrupted",
		Args:  exactly(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := untilSignal(cmd)
			defer stop()
			return names.Serve(ctx, os.Stdout, path)
		},
	}
	ls := &cobra.Command{
		Use:   "ls [PREFIX]",
		Short: "List names",
		Args:  atMostOne("a PREFIX at most"),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := untilSignal(cmd)
			defer stop()
			return names.List(ctx, os.Stdout, path, prefixOf(args))
		},
	}
	watch := &cobra.Command{
		Use:   "watch [PREFIX]",
		Short: "Show names as they come and go, until interrupted",
		Args:  atMostOne("a PREFIX at most"),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := untilSignal(cmd)
			defer stop()
			return names.Watch(ctx, os.Stdout, path, prefixOf(args))
		},
	}
	cmd.AddCommand(serve, ls, watch, newNamesGet(&path))
	return cmd
}

func newNamesGet(path *string) *cobra.Command {
	var wait bool
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "get NAME",
		Short: "Show what a name stands for",
		Args:  exactly(1, "a NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := untilSignal(cmd)
			defer stop()
			if timeout > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, timeout)
				defer cancel()
			}
			return names.Get(ctx, os.Stdout, *path, args[0], wait)
		},
	}
	cmd.Flags().BoolVar(&wait, "wait", false, "wait for the name if nobody has it")
	cmd.Flags().DurationVar(&timeout, "timeout", 0, "give up after this `time`, as in 10s")
	return cmd
}

func atMostOne(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) > 1 {
			return fault.Bad("want %s; see %s --help", what, cmd.CommandPath())
		}
		return nil
	}
}

func prefixOf(args []string) string {
	if len(args) == 0 {
		return ""
	}
	return args[0]
}
