// Package report has what the commands that measure share: how they begin and end, how
// they run a program and learn its processor time, and how figures are summed up.
//
// A row is judged by three figures. The median is what a user meets. The least is what
// the program does when nothing disturbs it. The processor time is what its threads
// computed: another program on the machine takes time away, but adds little to it.
package report

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Main runs a command and ends the process with what it says.
func Main(run func() error) {
	if err := run(); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", filepath.Base(os.Args[0]), err)
		os.Exit(1)
	}
}

// Log writes a line to standard error: how far a command has come.
func Log(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }

// Rounds defines the flag -rounds and gives its value, which Parse checks.
func Rounds(n int) *int {
	return flag.Int("rounds", n, "how often everything is measured")
}

// AtLeastOne is an error if a number that has to be positive is not.
func AtLeastOne(name string, n int) error {
	if n < 1 {
		return fmt.Errorf("-%s wants at least 1", name)
	}
	return nil
}

// Median of some figures, 0 without any.
func Median(v []float64) float64 {
	if len(v) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(v))
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}

// Least of some figures, 0 without any.
func Least(v []float64) float64 {
	if len(v) == 0 {
		return 0
	}
	return slices.Min(v)
}

// Show is a figure with as many digits as it deserves.
func Show(v float64) string {
	switch {
	case v >= 1000:
		return fmt.Sprintf("%.0f", v)
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2f", v)
}

// Cell is the median and, in parentheses, the least.
func Cell(v []float64) string {
	if len(v) == 0 {
		return "—"
	}
	return Show(Median(v)) + " (" + Show(Least(v)) + ")"
}

// Processor is the processor time of a process that has ended, user and system, with
// that of the children it has waited for.
func Processor(s *os.ProcessState) time.Duration { return s.UserTime() + s.SystemTime() }

// Spent is the processor time of this process so far, all threads together.
func Spent() time.Duration { return spent(unix.CLOCK_PROCESS_CPUTIME_ID) }

// SpentByThread is the processor time of the calling thread.
func SpentByThread() time.Duration { return spent(unix.CLOCK_THREAD_CPUTIME_ID) }

// spent cannot fail: which is one of Linux's constants. Getrusage would be a tick behind.
func spent(which int32) time.Duration {
	var ts unix.Timespec
	unix.ClockGettime(which, &ts)
	return time.Duration(ts.Nano())
}

// Output runs a command and gives what it prints and its processor time. An error has
// what the command printed to standard error, unless cmd.Stderr is set.
func Output(cmd *exec.Cmd) (string, time.Duration, error) {
	var stderr strings.Builder
	if cmd.Stderr == nil {
		cmd.Stderr = &stderr
	}
	out, err := cmd.Output()
	if cmd.ProcessState == nil { // it was not started
		return "", 0, fmt.Errorf("%s: %w", strings.Join(cmd.Args, " "), err)
	}
	if err != nil {
		return string(out), Processor(cmd.ProcessState), fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, stderr.String())
	}
	return string(out), Processor(cmd.ProcessState), nil
}

// Build runs a command that makes a program.
func Build(dir string, env []string, name string, args ...string) error {
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, text)
	}
	return nil
}

// CPU is the name of the processor.
func CPU() string {
	data, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(data)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return "unknown processor"
}

// Load says how busy the machine is, as a sentence for a page.
func Load() string {
	data, err := os.ReadFile("/proc/loadavg")
	if f := strings.Fields(string(data)); err == nil && len(f) > 1 {
		return fmt.Sprintf("Before the run, other\nprograms kept %s processors busy on average (load of five minutes; here are %d).", f[1], runtime.NumCPU())
	}
	return ""
}

// Root is the nearest folder upwards with this project's go.mod.
func Root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for ; ; dir = filepath.Dir(dir) {
		if data, err := os.ReadFile(filepath.Join(dir, "go.mod")); err == nil && strings.HasPrefix(string(data), "module hardtack\n") {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("run it inside the project")
		}
	}
}

// WritePage writes a page to a folder that it makes, and draws its pictures there, by
// the names of their files.
func WritePage(dir, name, page string, pictures map[string]func(file string) error) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for file, draw := range pictures {
		if err := draw(filepath.Join(dir, file)); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(dir, name), []byte(page), 0o644)
}
