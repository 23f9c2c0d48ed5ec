package membench

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Machine is what an experiment runs on.
type Machine struct {
	Tool   string // hardtack
	Kernel string // "" for the one beside the tool
	Root   string // the guest's files, which Build made
	Memory string // as QEMU takes it
	CPUs   int
	Flags  []string // more flags of `hardtack run`
}

// Run is what one run of the well-behaved program beside some offenders showed.
type Run struct {
	Offenders string        // names of kinds, with + between
	Rounds    int           // of the well-behaved program
	Failed    int           // its failed calls
	Calls     []string      // those, as call:error:count
	Deaths    int           // of it
	Median    time.Duration // of a round
	Worst     time.Duration
	Gone      time.Duration // after the beginning, memory was in use as far as it ever was
	Killed    time.Duration // after the beginning, the first offender was dead; negative if none was
	Kills     int           // of offenders
	Used      int           // percent of memory in use when memory was gone
	Root      bool          // root could start a program at the end
	Broken    string        // how the machine ended, if it did not survive
}

// Good says whether the well-behaved program noticed nothing but time.
func (r Run) Good() bool {
	return r.Broken == "" && r.Rounds > 0 && r.Failed == 0 && r.Deaths == 0 && r.Root
}

// Build puts the guest's program into the root directory dir, which all may enter.
func Build(repo, dir string) error {
	if err := os.Chmod(dir, 0o755); err != nil {
		return err
	}
	for _, d := range []string{"tmp", "proc", "dev", "sys", "etc", "run", "share"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			return err
		}
	}
	if err := os.Chmod(filepath.Join(dir, "share"), 0o777); err != nil {
		return err
	}
	sources, err := filepath.Glob(filepath.Join(repo, "bench", "memory", "guest", "*.c"))
	if err != nil {
		return err
	}
	arg := append([]string{"-static", "-O2", "-Wall", "-Wno-unused-result", "-s", "-o", filepath.Join(dir, "memory")}, sources...)
	if out, err := exec.Command("gcc", append(arg, "-lpthread")...).CombinedOutput(); err != nil {
		return fmt.Errorf("gcc: %w\n%s", err, out)
	}
	return nil
}

// Beside runs the well-behaved program beside each of the offenders in turn, for so long.
// One boot serves all until a machine breaks; the next boot goes on behind that run. With
// same they are the same user's.
func (m Machine) Beside(offenders []string, each time.Duration, same bool) ([]Run, error) {
	var runs []Run
	for len(offenders) > 0 {
		out, err := m.boot(offenders, each, same)
		got := Parse(out)
		if len(got) == 0 {
			return runs, fmt.Errorf("the guest ran nothing: %v\n%s", err, end(out))
		}
		if last := &got[len(got)-1]; last.Broken != "" {
			last.Broken = why(out, err)
		}
		runs = append(runs, got...)
		offenders = offenders[min(len(got), len(offenders)):]
	}
	return runs, nil
}

func (m Machine) boot(offenders []string, each time.Duration, same bool) (string, error) {
	limit := time.Minute + time.Duration(len(offenders))*(each*2+20*time.Second)
	ctx, cancel := context.WithTimeout(context.Background(), limit+30*time.Second)
	defer cancel()
	arg := []string{"run", "--accel", "tcg", "--timeout", limit.String()}
	arg = append(arg, m.machine(offenders)...)
	if m.Kernel != "" {
		arg = append(arg, "--kernel", m.Kernel)
	}
	arg = append(append(arg, m.Flags...), m.Root, "--", "/memory")
	if same {
		arg = append(arg, "-same")
	}
	arg = append(append(arg, strconv.FormatInt(each.Milliseconds(), 10)), offenders...)
	cmd := exec.CommandContext(ctx, m.Tool, arg...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	return out.String(), err
}

// machine is the flags for the machine that the offenders need. Two kernels need more memory.
func (m Machine) machine(offenders []string) []string {
	kinds := strings.Split(strings.Join(offenders, "+"), "+")
	cpus, share := strconv.Itoa(m.CPUs), filepath.Join(m.Root, "share")
	flags := []string{"--memory", m.Memory, "--cpus", cpus}
	if slices.Contains(kinds, "channels") {
		flags = []string{"--cluster", "memory=96M,cpus=" + cpus, "--cluster", "memory=96M,cpus=1,init=/memory"}
	}
	if slices.Contains(kinds, "shares") || slices.Contains(kinds, "sharenames") {
		flags = append(flags, "--mount", "type=bind,source="+share+",target=/share,owners=mapped")
	}
	return flags
}

// Parse reads the console of a boot. A run that began and has no row is Broken.
func Parse(out string) (runs []Run) {
	begun := ""
	for line := range strings.Lines(out) {
		word := strings.Fields(line)
		switch {
		case len(word) == 2 && word[0] == "begin":
			begun = word[1]
		case len(word) > 2 && word[0] == "row" && word[1] == begun:
			runs = append(runs, parseRow(word[1], word[2:]))
		case len(word) > 1 && word[0] == "end":
			begun = ""
		}
	}
	if begun == "" {
		return runs
	}
	if n := len(runs); n > 0 && runs[n-1].Offenders == begun { // it broke when it cleaned up
		runs[n-1].Broken = "?"
		return runs
	}
	return append(runs, Run{Offenders: begun, Broken: "?"})
}

func parseRow(name string, words []string) Run {
	r := Run{Offenders: name}
	for _, w := range words {
		key, text, ok := strings.Cut(w, "=")
		if !ok {
			r.Calls = append(r.Calls, w)
			continue
		}
		n, err := strconv.Atoi(text)
		if err != nil {
			continue
		}
		switch key {
		case "rounds":
			r.Rounds = n
		case "failed":
			r.Failed = n
		case "deaths":
			r.Deaths = n
		case "median":
			r.Median = time.Duration(n) * time.Microsecond
		case "worst":
			r.Worst = time.Duration(n) * time.Microsecond
		case "gone":
			r.Gone = time.Duration(n) * time.Millisecond
		case "killed":
			r.Killed = time.Duration(n) * time.Millisecond
		case "kills":
			r.Kills = n
		case "used":
			r.Used = n
		case "root":
			r.Root = n == 1
		}
	}
	return r
}

// why says how a machine ended that should not have.
func why(out string, err error) string {
	for line := range strings.Lines(out) {
		for _, sign := range []string{"panic: ", "fatal error: ", "kernel memory is exhausted"} {
			if at := strings.Index(line, sign); at >= 0 {
				return strings.TrimSpace(line[at:])
			}
		}
	}
	if err != nil {
		return err.Error()
	}
	return "it ended early"
}

// end is the end of a console's text.
func end(out string) string {
	lines := slices.Collect(strings.Lines(out))
	return strings.Join(lines[max(0, len(lines)-20):], "")
}
