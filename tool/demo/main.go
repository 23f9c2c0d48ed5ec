// Command demo is what `make run` runs: a machine with Redis and NGINX.
//
// On a terminal it says how to reach both and hands the terminal over. Without
// one it starts the same machine, talks to both servers as a client of the
// host, powers the machine off and says what failed.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

const (
	redisAddr = "127.0.0.1:16379"
	webAddr   = "127.0.0.1:18080"

	// startTime is how long the servers may take to answer; a busy host
	// without hardware virtualisation is slow.
	startTime = 3 * time.Minute
	// stopTime is how long the machine may take to power off.
	stopTime = time.Minute
)

func main() {
	hardtack := flag.String("hardtack", "bin/hardtack", "the hardtack command")
	root := flag.String("root", "build/demo.tar", "the root file system")
	check := flag.Bool("check", false, "check the servers and power off even on a terminal")
	flag.Parse()

	args := append([]string{"run", "-p", redisAddr + ":6379", "-p", webAddr + ":80"}, flag.Args()...)
	args = append(args, *root)
	if !*check && term.IsTerminal(int(os.Stdin.Fd())) {
		fmt.Printf(`
  Redis   redis-cli -p 16379, or any client at %s
  NGINX   http://%s/
  Leave   exit or Ctrl-D in the shell; Ctrl-A x ends the machine at once

`, redisAddr, webAddr)
		name, err := filepath.Abs(*hardtack)
		if err == nil {
			err = syscall.Exec(name, append([]string{"hardtack"}, args...), os.Environ())
		}
		fail(err)
	}
	if err := checkMachine(*hardtack, args); err != nil {
		fail(err)
	}
	fmt.Println("ok: Redis and NGINX answer as they should, and the machine powered off")
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "demo:", err)
	os.Exit(1)
}

// checkMachine starts the machine, checks the servers and powers it off.
func checkMachine(hardtack string, args []string) error {
	ctx, stop := signal.NotifyContext(context.Background(), unix.SIGINT, unix.SIGTERM)
	defer stop()
	args = append([]string{args[0], "-e", "HARDTACK_CHECK=1"}, args[1:]...)
	cmd := exec.Command(hardtack, args...)
	listening := newWatch(os.Stdout, "the servers listen")
	cmd.Stdout, cmd.Stderr = listening, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: unix.SIGTERM}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan struct{})
	var status error
	go func() { status = cmd.Wait(); close(ended) }()

	alive, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { <-ended; cancel() }()

	// Without the word, the clients try all the same and say what they see.
	select {
	case <-listening.seen:
	case <-alive.Done():
	case <-time.After(startTime):
	}
	err = checkServers(alive)
	select {
	case <-ended:
		return errors.Join(fmt.Errorf("the machine ended during the checks: %w", orDone(status)), err)
	default:
	}
	if err != nil {
		halt(cmd, ended)
		return err
	}
	return powerOff(cmd, stdin, ended, &status)
}

func orDone(err error) error {
	if err == nil {
		return errors.New("status 0")
	}
	return err
}

// powerOff tells /init to end and waits for the machine to follow.
func powerOff(cmd *exec.Cmd, stdin io.WriteCloser, ended chan struct{}, status *error) error {
	if _, err := io.WriteString(stdin, "poweroff\n"); err != nil {
		halt(cmd, ended)
		return err
	}
	if err := stdin.Close(); err != nil {
		halt(cmd, ended)
		return err
	}
	select {
	case <-ended:
		if *status != nil {
			return fmt.Errorf("the machine powered off, but: %w", *status)
		}
		return nil
	case <-time.After(stopTime):
		halt(cmd, ended)
		return fmt.Errorf("the machine did not power off within %v", stopTime)
	}
}

// halt ends the machine: hardtack takes the second signal as an order.
func halt(cmd *exec.Cmd, ended chan struct{}) {
	for range 2 {
		_ = cmd.Process.Signal(unix.SIGTERM)
		select {
		case <-ended:
			return
		case <-time.After(time.Second):
		}
	}
	<-ended
}

// checkServers runs both checks, each as soon as its server answers.
func checkServers(ctx context.Context) error {
	begin := time.Now()
	steps := []struct {
		what string
		run  func(context.Context) error
	}{
		{"Redis: PING", waitRedis},
		{"Redis: SET, GET", setGet},
		{fmt.Sprintf("Redis: %d pipelined SETs read back", pipelined), pipeline},
		{"NGINX: first page", waitWeb},
		{fmt.Sprintf("NGINX: %d requests by %d clients", requests, clients), fetchAll},
	}
	for _, s := range steps {
		at := time.Now()
		if err := s.run(ctx); err != nil {
			return fmt.Errorf("%s: %w", s.what, err)
		}
		fmt.Printf("ok: %-42s %8.2fs (at %.1fs)\n", s.what, time.Since(at).Seconds(), time.Since(begin).Seconds())
	}
	return nil
}

// retry calls f until it works or the servers' time to start is over.
func retry(ctx context.Context, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	for {
		try, cancel := context.WithTimeout(ctx, 5*time.Second)
		err := f(try)
		cancel()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("no answer: %w", err)
		case <-time.After(200 * time.Millisecond):
		}
	}
}
