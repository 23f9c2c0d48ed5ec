package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"hardtack/tool/fault"
	"hardtack/tool/named"
	"hardtack/tool/watch"
)

func newRecord() *cobra.Command {
	var out string
	var d time.Duration
	cmd := &cobra.Command{
		Use:   "record [flags] MACHINE",
		Short: "Save what a machine's kernel did in the last seconds",
		Long: `Save what the flight recorder of a machine has, for https://ui.perfetto.dev or
chrome://tracing: what each processor ran, system calls, interrupts of devices, and when the
collector stopped all. Of system calls there are those that the kernel measures anyway, one in
many; with --for there are all of the time that is given, or the last 65,536.

Of a detached machine whose kernel panicked, and that was not removed, this is what the
recorder had then.`,
		Example:           "  hardtack record web -o web.json\n  hardtack record --for 2s web -o web.json",
		Args:              exactly(1, "a MACHINE"),
		ValidArgsFunction: machineNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			if d < 0 || d > time.Hour {
				return fault.Bad("--for %v: want up to an hour", d)
			}
			if out == "" {
				return fault.Bad("want -o FILE; see %s --help", cmd.CommandPath())
			}
			return runRecord(cmd.Context(), args[0], out, d)
		},
	}
	cmd.Flags().StringVarP(&out, "output", "o", "", "the `file` to write")
	cmd.Flags().DurationVar(&d, "for", 0, "record all system calls for so long first, as in 2s")
	return cmd
}

func runRecord(ctx context.Context, name, out string, d time.Duration) error {
	m, err := named.Find(name)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	state, err := m.State()
	if err != nil {
		return err
	}
	var r *watch.Recording
	if state.Runs() {
		s, done, err := m.Watch(ctx)
		if err != nil {
			return err
		}
		defer done()
		if r, err = s.Record(ctx, d > 0, d); err != nil {
			return err
		}
	} else {
		text, err := m.LastWords()
		if errors.Is(err, fs.ErrNotExist) {
			return fault.With(fault.Host, "the machine %q does not run, and its kernel has left no record", m.Name)
		} else if err != nil {
			return err
		}
		if r, err = watch.ParsePanic(string(text)); err != nil {
			return err
		}
	}
	if err := writeRecording(r, out); err != nil {
		return err
	}
	fmt.Printf("%s (%d events)\n", out, r.Events())
	return nil
}

// lastWords keeps what a kernel that panics has in its flight recorder. m is nil for a
// machine without a name.
func (f *runFlags) lastWords(m *named.Machine) func([]byte) {
	return func(text []byte) {
		var err error
		if m != nil && f.detach && !f.remove {
			err = m.KeepLastWords(text)
		}
		if f.flight != "" && err == nil {
			var r *watch.Recording
			if r, err = watch.ParsePanic(string(text)); err == nil {
				err = writeRecording(r, f.flight)
			}
		}
		if err != nil {
			fmt.Fprintf(os.Stderr, "the flight recorder: %v\n", err)
		}
	}
}

func writeRecording(r *watch.Recording, name string) (err error) {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	defer func() {
		if cerr := f.Close(); err == nil {
			err = cerr
		}
	}()
	return r.Write(f)
}
