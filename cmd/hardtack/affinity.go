package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"hardtack/overlay"
	"hardtack/tool/fault"
	"hardtack/tool/timeline"
)

func newAffinity() *cobra.Command {
	var out, policy string
	var compare bool
	cmd := &cobra.Command{
		Use:   "affinity [flags] PROGRAM [ARG...]",
		Short: "Run a program and draw what its channels do",
		Long: `Run a program that was built by "hardtack go build". When it ends, show how often
its channels were used (touches per second), how many touches came from another
core than the one before, and what the scheduler decided. PROGRAM may also be a
package directory or a .go file, which is built first.

A touch from another core moves at least one cache line, so the rate of such
touches stands in for the hardware's count of cache line transfers. Where the
processor lets perf read that count (perf c2c), it is shown too.

The program's output is left alone; the drawing follows on standard error. The
exit status is the program's, or 2 if it could not be run or was not built by
"hardtack go".`,
		Example: `  hardtack affinity ./server -listen :8080
  hardtack affinity --compare -o talk.svg ./cmd/talk`,
		Args: atLeast(1, "a PROGRAM"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !slices.Contains(overlay.Policies, policy) {
				return fault.Bad("--policy %q: want %s", policy, strings.Join(overlay.Policies, ", "))
			}
			return affinityRun(cmd.Context(), args, out, policy, compare)
		},
	}
	cmd.Flags().SetInterspersed(false)
	cmd.Flags().StringVarP(&out, "output", "o", "", "also draw into this `file` (SVG)")
	cmd.Flags().StringVar(&policy, "policy", "group", "the `policy`: "+strings.Join(overlay.Policies, ", "))
	cmd.Flags().BoolVar(&compare, "compare", false, "run it with the policy off first, and draw both")
	return cmd
}

func affinityRun(ctx context.Context, args []string, out, policy string, compare bool) error {
	dir, err := os.MkdirTemp("", "hardtack-affinity-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if args[0], err = program(args[0], dir); err != nil {
		return err
	}
	policies := []string{policy}
	if compare && policy != "off" {
		policies = []string{"off", policy}
	}
	var runs []*timeline.Run
	var status error
	for _, p := range policies {
		run, took, err := watchAffinity(args, dir, p)
		var exit exitStatus
		if err != nil && !errors.As(err, &exit) {
			return err
		}
		status = err
		fmt.Fprintf(os.Stderr, "\npolicy %s, %s\n", p, took.Round(time.Millisecond))
		run.Text(os.Stderr, 60)
		run.Name = fmt.Sprintf("%s, policy %s: %s", filepath.Base(args[0]), p, took.Round(time.Millisecond))
		runs = append(runs, run)
	}
	if out != "" {
		if err := timeline.SVG(out, runs...); err != nil {
			return err
		}
	}
	return status
}

// program is the path of an executable; sources are built.
func program(name, dir string) (string, error) {
	if fi, err := os.Stat(name); err == nil && fi.IsDir() || err == nil && strings.HasSuffix(name, ".go") {
		exe := filepath.Join(dir, strings.TrimSuffix(filepath.Base(name), ".go"))
		args := []string{"build", "-o", exe, name}
		if fi.IsDir() {
			args = []string{"build", "-C", name, "-o", exe, "."}
		}
		argv, err := goCommand(args, "group")
		if err != nil {
			return "", err
		}
		if err := runGo(argv); err != nil {
			return "", fault.Bad("%s does not build", name)
		}
		return exe, nil
	}
	exe, err := exec.LookPath(name)
	if err != nil {
		return "", fault.Bad("%s: %v", name, errors.Unwrap(err))
	}
	return exe, nil
}

// watch runs the program and reads its log. An exitStatus comes with a run.
func watchAffinity(args []string, dir, policy string) (*timeline.Run, time.Duration, error) {
	logs := filepath.Join(dir, policy+".")
	counters := hasHITM(dir)
	argv := args
	if counters {
		argv = append([]string{"perf", "c2c", "record", "-o", filepath.Join(dir, "perf.data"), "--"}, args...)
	}
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), "HARDTACK_AFFINITY="+policy, "HARDTACK_AFFINITY_LOG="+logs+"%")
	quiet := make(chan os.Signal, 1)
	signal.Notify(quiet, syscall.SIGINT, syscall.SIGQUIT)
	defer signal.Stop(quiet)
	start := time.Now()
	if err := cmd.Start(); err != nil {
		return nil, 0, fault.Bad("%v", err)
	}
	err := cmd.Wait()
	took := time.Since(start)
	if ws, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && err != nil {
		err = exitStatus(ws.ExitStatus())
		if ws.Signaled() {
			err = exitStatus(128 + int(ws.Signal()))
		}
	}
	log, e := os.Open(fmt.Sprint(logs, cmd.Process.Pid))
	if names, _ := filepath.Glob(logs + "*"); e != nil && counters && len(names) > 0 {
		log, e = os.Open(names[0]) // the process is perf's child
	}
	if e != nil {
		return nil, 0, fault.Bad("%s left no log: it was not built by \"hardtack go\"", args[0])
	}
	defer log.Close()
	run, e := timeline.Read(log)
	if e != nil {
		return nil, 0, e
	}
	if counters {
		printHITM(filepath.Join(dir, "perf.data"))
	}
	return run, took, err
}

// hasHITM tells whether perf sees cache-line transfers on this machine.
func hasHITM(dir string) bool {
	perf, err := exec.LookPath("perf")
	if err != nil {
		return false
	}
	probe := filepath.Join(dir, "probe.data")
	defer os.Remove(probe)
	return exec.Command(perf, "c2c", "record", "-o", probe, "--", "true").Run() == nil
}

func printHITM(data string) {
	out, err := exec.Command("perf", "c2c", "report", "-i", data, "--stats", "--stdio").Output()
	if err != nil {
		fmt.Fprintf(os.Stderr, "perf c2c report: %v\n", err)
		return
	}
	for _, line := range strings.Split(string(out), "\n") {
		if strings.Contains(line, "HITM") {
			fmt.Fprintln(os.Stderr, strings.TrimSpace(line))
		}
	}
}
