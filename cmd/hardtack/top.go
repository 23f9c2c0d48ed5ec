package main

import (
	"context"
	"encoding/json"
	"os"
	"os/signal"
	"syscall"
	"time"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"hardtack/tool/fault"
	"hardtack/tool/named"
	"hardtack/tool/watch"
)

func newTop() *cobra.Command {
	var once, asJSON bool
	cmd := &cobra.Command{
		Use:   "top [flags] [MACHINE]",
		Short: "Show what a machine does, live",
		Long: `Show processors, memory, system calls with their latencies, the network, disks and
processes of a machine that runs, each second. Without a name it is the only machine that runs.

Keys: tab or arrows choose what the list shows (processes, system calls, connections), c, m
and p sort processes by time, memory and number, space holds the picture, q ends.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return fault.Bad("want one MACHINE at most; see %s --help", cmd.CommandPath())
			}
			return nil
		},
		ValidArgsFunction: machineNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			m, err := onlyMachine(args)
			if err != nil {
				return err
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
			defer stop()
			s, done, err := m.Watch(ctx)
			if err != nil {
				return err
			}
			defer done()
			if asJSON {
				return topJSON(ctx, s, once)
			}
			if once || !term.IsTerminal(int(os.Stdout.Fd())) {
				return topOnce(ctx, s)
			}
			_, err = tea.NewProgram(watch.NewTop(ctx, s), tea.WithContext(ctx)).Run()
			if ctx.Err() != nil {
				return nil
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&once, "once", false, "print one picture, of one second")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON, an object a line each second; with --once one")
	return cmd
}

// onlyMachine is the machine that is named, or the only one.
func onlyMachine(args []string) (*named.Machine, error) {
	if len(args) == 1 {
		return named.Find(args[0])
	}
	list, err := named.List()
	if err != nil {
		return nil, err
	}
	var found *named.Machine
	for _, m := range list {
		if s, err := m.State(); err != nil || !s.Runs() {
			continue
		}
		if found != nil {
			return nil, fault.Bad("several machines run: %s, %s …; say which", found.Name, m.Name)
		}
		found = m
	}
	if found == nil {
		return nil, fault.With(fault.Host, "no machine runs")
	}
	return found, nil
}

func topOnce(ctx context.Context, s *watch.Source) error {
	sampler := &watch.Sampler{Source: s}
	sampler.Take(ctx)
	select {
	case <-time.After(time.Second):
	case <-ctx.Done():
		return nil
	}
	_, err := lipgloss.Println(watch.Picture(s.Name, sampler.Take(ctx), 100, 40))
	return err
}

// topJSON prints what the picture is made of. The first look has no rates, and is not printed.
func topJSON(ctx context.Context, s *watch.Source, once bool) error {
	sampler := &watch.Sampler{Source: s}
	sampler.Take(ctx)
	for e := json.NewEncoder(os.Stdout); ; {
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return nil
		}
		sample := sampler.Take(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err := e.Encode(sample); err != nil || once || !sample.Up {
			return err
		}
	}
}
