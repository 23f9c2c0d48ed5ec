// Command guesttest runs all test programs of a directory, each in an empty
// working directory with a time limit, and prints their output in the form of
// `go test -v`. It runs as an ordinary program on Linux and as process 1 of a
// guest; there the machine ends with it.
//
//	guesttest [-run NAME,...] [-limit DURATION] [-tmp DIR] PROGRAMS
//
// After the last program it prints "guesttest: done"; its exit status is 1 when
// a program failed.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

func main() {
	if os.Getpid() == 1 && os.Getenv("GUESTTEST_CHILD") == "" {
		os.Exit(reap())
	}
	run := flag.String("run", "", "only the programs of these names (comma between)")
	limit := flag.Duration("limit", 60*time.Second, "time limit for one program")
	tmp := flag.String("tmp", "/tmp", "where working directories are made; a tmpfs")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: guesttest [flags] DIRECTORY")
		os.Exit(2)
	}
	programs, err := filepath.Glob(filepath.Join(flag.Arg(0), "*"))
	if err != nil || len(programs) == 0 {
		fmt.Fprintln(os.Stderr, "guesttest: no programs in", flag.Arg(0))
		os.Exit(2)
	}
	status := 0
	for _, program := range programs {
		if !selected(filepath.Base(program), *run) {
			continue
		}
		if !one(program, *tmp, *limit) {
			status = 1
		}
	}
	if text, err := os.ReadFile("/proc/hardtack/bounds"); err == nil { // a kernel built to compare them
		fmt.Printf("guesttest: bounds\n%sguesttest: end of bounds\n", text)
	}
	fmt.Println("guesttest: done")
	os.Exit(status)
}

func selected(name, names string) bool {
	return names == "" || slices.Contains(strings.Split(names, ","), name)
}

// reap is process 1: it starts itself again for the work and waits for every
// process that is left to it.
func reap() int {
	self, err := os.Executable()
	if err != nil {
		self = os.Args[0]
	}
	child, err := syscall.ForkExec(self, os.Args, &syscall.ProcAttr{
		Env:   append(os.Environ(), "GUESTTEST_CHILD=1"),
		Files: []uintptr{0, 1, 2},
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, "guesttest:", err)
		return 70
	}
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case err != nil && !errors.Is(err, syscall.EINTR):
			fmt.Fprintln(os.Stderr, "guesttest: wait:", err)
			return 70
		case pid == child && status.Exited():
			return status.ExitStatus()
		case pid == child && status.Signaled():
			return 128 + int(status.Signal())
		}
	}
}

// one runs a program and prints its output between two lines of its name.
func one(program, tmp string, limit time.Duration) bool {
	name := filepath.Base(program)
	dir, err := os.MkdirTemp(tmp, "gt")
	if err != nil {
		fmt.Printf("guesttest: FAIL %s: %v\n", name, err)
		return false
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o755); err != nil {
		fmt.Printf("guesttest: FAIL %s: %v\n", name, err)
		return false
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, program)
	cmd.Dir = dir
	cmd.Env = []string{"PATH=/bin:/usr/bin", "HOME=/", "LANG=C",
		"GODEBUG=asyncpreemptoff=1"} // its signals would interrupt calls at random
	// A session of its own: no program may reach the driver's terminal, and
	// the whole group can be ended.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 2 * time.Second
	// A file, not a pipe: descendants that outlive the program cannot hold it.
	log, err := os.CreateTemp(tmp, "gtlog")
	if err != nil {
		fmt.Printf("guesttest: FAIL %s: %v\n", name, err)
		return false
	}
	defer os.Remove(log.Name())
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	began := time.Now()
	fmt.Printf("guesttest: RUN %s\n", name)
	err = cmd.Run()
	out, _ := os.ReadFile(log.Name())
	os.Stdout.Write(out)
	if len(out) > 0 && out[len(out)-1] != '\n' {
		fmt.Println()
	}
	seconds := time.Since(began).Seconds()
	switch {
	case ctx.Err() != nil:
		fmt.Printf("guesttest: FAIL %s: time limit (%.1fs)\n", name, seconds)
	case err != nil:
		fmt.Printf("guesttest: FAIL %s: %v (%.1fs)\n", name, err, seconds)
	default:
		fmt.Printf("guesttest: PASS %s (%.1fs)\n", name, seconds)
	}
	return err == nil
}
