package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"hardtack/overlay"
	"hardtack/tool/fault"
)

// goVerbs are the verbs of go that build, and so take -overlay.
var goVerbs = []string{"build", "install", "run", "test", "vet"}

func newGo() *cobra.Command {
	return &cobra.Command{
		Use:   "go build|install|run|test|vet|env [ARG...]",
		Short: "Build any Go program with channel-aware scheduling",
		Long: `Run the go command on any module, with Hardtack's changes to the Go runtime
(-overlay): channels count their use, and goroutines that meet on contended
channels are kept on one core while that is faster. The program needs no change.
All arguments are passed to go. "env" prints what would be done.

It needs ` + overlay.Version + ` and builds for linux on amd64 and arm64. The first
build recompiles the standard library; patched files are kept in the user's cache
directory.

The programs that it builds read these variables:
  HARDTACK_AFFINITY          off, process, node or group (default: group)
  HARDTACK_AFFINITY_PERIOD   time between votes (default: 500ms)
  HARDTACK_AFFINITY_TOUCHES  uses of a channel in a period that make it vote
                             for fewer cores (process, node; default: 800)
  HARDTACK_AFFINITY_LOG      write samples and decisions to this file
A bad value prints one line on standard error and turns the policy off.

The exit status is go's, or 2 if go was not started.`,
		Example: `  hardtack go build -o server ./cmd/server
  hardtack go test ./...
  HARDTACK_AFFINITY=process hardtack go run .
  hardtack go env`,
		DisableFlagParsing: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 || args[0] == "-h" || args[0] == "--help" {
				return cmd.Help()
			}
			if args[0] == "env" {
				return goEnv(args[1:])
			}
			if !slices.Contains(goVerbs, args[0]) {
				return fault.Bad("%q does not build; want %s or env, or use go itself", args[0], strings.Join(goVerbs, ", "))
			}
			argv, err := goCommand(args, "group")
			if err != nil {
				return err
			}
			return runGo(argv)
		},
	}
}

// goCommand is the command line of go for a verb and its arguments, with the
// overlay prepared.
func goCommand(args []string, policy string) ([]string, error) {
	head, rest := splitChdir(args[1:])
	if err := noOverlay(rest); err != nil {
		return nil, err
	}
	t, err := toolchain(head)
	if err != nil {
		return nil, err
	}
	o, err := overlay.Prepare(t, overlay.Options{Policy: policy})
	if err != nil {
		return nil, err
	}
	argv := append([]string{goTool(), args[0]}, head...)
	argv = append(argv, "-overlay="+o.List)
	return append(argv, rest...), nil
}

// splitChdir takes -C off: go wants it first.
func splitChdir(args []string) (head, rest []string) {
	if len(args) > 0 && (strings.HasPrefix(args[0], "-C=") || strings.HasPrefix(args[0], "--C=")) {
		return args[:1], args[1:]
	}
	if len(args) > 1 && (args[0] == "-C" || args[0] == "--C") {
		return args[:2], args[2:]
	}
	return nil, args
}

// noOverlay refuses an overlay of the caller's own, which ours would replace
// without a word. Arguments behind a program's name are the program's.
func noOverlay(args []string) error {
	for _, a := range args {
		if a == "--" || a == "-args" || a == "--args" {
			return nil
		}
		if name := strings.TrimLeft(a, "-"); len(name) < len(a) && (name == "overlay" || strings.HasPrefix(name, "overlay=")) {
			return fault.Bad("-overlay is what this command sets; it cannot be given too")
		}
	}
	return nil
}

func goTool() string {
	if tool := os.Getenv("GO"); tool != "" {
		return tool
	}
	return "go"
}

// toolchain asks go which Go would build here; head may hold -C.
func toolchain(head []string) (overlay.Toolchain, error) {
	names := []string{"GOVERSION", "GOROOT", "GOOS", "GOARCH", "GOFLAGS"}
	cmd := exec.Command(goTool(), append(append([]string{"env"}, head...), names...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return overlay.Toolchain{}, fmt.Errorf("asking %s: %w", goTool(), err)
	}
	v := strings.Split(string(out), "\n")
	if len(v) < len(names) {
		return overlay.Toolchain{}, fmt.Errorf("%s env gave %d lines for %d names", goTool(), len(v), len(names))
	}
	if strings.Contains(v[4], "-overlay") {
		return overlay.Toolchain{}, fault.Bad("GOFLAGS holds an -overlay, which this command would replace")
	}
	return overlay.Toolchain{Version: v[0], Root: v[1], OS: v[2], Arch: v[3]}, nil
}

// runGo runs go with our standard files; its exit status becomes ours.
// Interrupts are for it, which gets them from the terminal too.
func runGo(argv []string) error {
	// Caught, not ignored: go would inherit that.
	quiet := make(chan os.Signal, 1)
	signal.Notify(quiet, syscall.SIGINT, syscall.SIGQUIT)
	defer signal.Stop(quiet)
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		if ws, ok := exit.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
			return exitStatus(128 + int(ws.Signal()))
		}
		return exitStatus(exit.ExitCode())
	}
	return err
}

func goEnv(args []string) error {
	head, rest := splitChdir(args)
	if len(rest) > 0 {
		return fault.Bad("env takes no arguments besides -C; for go's own settings use go env")
	}
	t, err := toolchain(head)
	if err != nil {
		return err
	}
	o, err := overlay.Prepare(t, overlay.Options{Policy: "group"})
	if err != nil {
		return err
	}
	fmt.Printf("go        %s, %s/%s, %s\n", t.Version, t.OS, t.Arch, t.Root)
	fmt.Printf("policy    group (HARDTACK_AFFINITY at run time changes it)\n")
	fmt.Printf("overlay   %s\n", o.List)
	fmt.Printf("command   %s VERB -overlay=%s ARG...\n", goTool(), o.List)
	for _, f := range o.Files {
		verb := "patched"
		if _, err := os.Stat(t.Root + "/src/" + f); err != nil {
			verb = "new    "
		}
		fmt.Printf("%s   %s\n", verb, f)
	}
	return nil
}
