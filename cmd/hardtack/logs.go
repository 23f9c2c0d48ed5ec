package main

import (
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"hardtack/tool/fault"
	"hardtack/tool/named"
)

func newLogs() *cobra.Command {
	var v named.LogView
	var lines, since, until string
	cmd := &cobra.Command{
		Use:   "logs [flags] MACHINE",
		Short: "Print what a detached machine has printed",
		Long: `Print what a machine that was started with -d has printed. Of more than 32 MiB the end is kept.

A time is a date and time as in RFC 3339 (2026-11-26T17:00:00Z; without a zone in the local
one, and down to the date alone), a duration before now, as in 10m or 1h30m, or a number of
seconds since 1970. The time of a line is that of its first byte, to a millisecond.`,
		Example: `  hardtack logs -f --tail 20 web
  hardtack logs -t --since 10m web`,
		Args:              exactly(1, "a MACHINE"),
		ValidArgsFunction: machineNames,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			m, err := named.Find(args[0])
			if err != nil {
				return err
			}
			if s, err := m.State(); err == nil && !s.Detached && s.Status != named.Dead {
				return fault.With(fault.Host, "the machine %q prints to its terminal: it has no log", m.Name)
			}
			if v.Lines = -1; lines != "all" {
				// As docker does: what is no number of lines means all, if it is negative.
				if v.Lines, err = strconv.Atoi(lines); err != nil {
					return fault.Bad("--tail %q: want a number of lines, or all", lines)
				}
			}
			if v.Since, err = parseTime("--since", since); err != nil {
				return err
			}
			if v.Until, err = parseTime("--until", until); err != nil {
				return err
			}
			return m.CopyLog(cmd.Context(), os.Stdout, v)
		},
	}
	cmd.Flags().StringVarP(&lines, "tail", "n", "all", "only the last `lines`")
	cmd.Flags().BoolVarP(&v.Follow, "follow", "f", false, "go on until the machine has ended")
	cmd.Flags().StringVar(&since, "since", "", "only lines since this `time`")
	cmd.Flags().StringVar(&until, "until", "", "only lines before this `time`")
	cmd.Flags().BoolVarP(&v.Timestamps, "timestamps", "t", false, "print the time before each line")
	return cmd
}

// timeForms are docker's, without a zone; a fraction of a second is read, too.
var timeForms = []string{"2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02T15", "2006-01-02"}

// parseTime reads a time as docker does; empty is the zero time.
func parseTime(flag, s string) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	if d, err := time.ParseDuration(s); err == nil {
		return time.Now().Add(-d), nil
	}
	for _, form := range timeForms {
		if t, err := time.Parse(form+"Z07:00", s); err == nil {
			return t, nil
		}
		if t, err := time.ParseInLocation(form, s, time.Local); err == nil {
			return t, nil
		}
	}
	whole, fraction, _ := strings.Cut(s, ".")
	seconds, err := strconv.ParseInt(whole, 10, 64)
	nanos, ferr := strconv.ParseInt((fraction + "000000000")[:9], 10, 64)
	if err != nil || ferr != nil || len(fraction) > 9 || nanos < 0 {
		return time.Time{}, fault.Bad("%s %q: want a time, as in 2026-11-26T17:00:00Z, or a duration, as in 10m", flag, s)
	}
	return time.Unix(seconds, nanos), nil
}
