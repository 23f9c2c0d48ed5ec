// Package cluster is the command that looks after the clusters of a machine, from inside:
// what they are, programs in them, and their ends (docs/clusters.md).
package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	abi "hardtack/abi/cluster"
	"hardtack/idl/spawn"
	"hardtack/msg"
	transport "hardtack/msg/cluster"
)

const usage = `usage: cluster ls
       cluster run [-t] NUMBER [--] PROGRAM [ARGUMENT...]
       cluster stop|kill|restart NUMBER
       cluster cores COUNT --from NUMBER --to NUMBER
       cluster memory SIZE --from NUMBER --to NUMBER
       cluster agent
`

// Statuses of the command itself, beside those of programs.
const (
	exitLost    = 255 // the other cluster has ended
	exitNone    = 127 // the program cannot be started there
	exitMisused = 2
)

const control = "/proc/hardtack/clusters"

// Main is the command; it returns the status to exit with.
func Main(args []string) int {
	switch {
	case len(args) == 1 && args[0] == "ls":
		b, err := os.ReadFile(control)
		os.Stdout.Write(b)
		return report(err)
	case len(args) == 2 && (args[0] == "stop" || args[0] == "kill" || args[0] == "restart"):
		if _, err := strconv.ParseUint(args[1], 10, 32); err != nil {
			break
		}
		return report(os.WriteFile(control, []byte(args[0]+" "+args[1]), 0))
	case len(args) > 0 && (args[0] == "cores" || args[0] == "memory"):
		if m, ok := parseMove(args); ok {
			return m.ask()
		}
	case len(args) == 1 && args[0] == "agent":
		return report(Agent(context.Background()))
	case len(args) >= 3 && args[0] == "run":
		terminal := args[1] == "-t"
		if terminal {
			args = args[1:]
		}
		if len(args) < 3 {
			break
		}
		n, err := strconv.ParseUint(args[1], 10, 32)
		if args = args[2:]; args[0] == "--" {
			args = args[1:]
		}
		if err != nil || len(args) == 0 {
			break
		}
		return run(int(n), args, terminal)
	}
	fmt.Fprint(os.Stderr, usage)
	return exitMisused
}

func report(err error) int {
	if err != nil {
		fmt.Fprintf(os.Stderr, "cluster: %v\n", err)
		return 1
	}
	return 0
}

// remote is a program in another cluster.
type remote struct {
	*spawn.Client
	signals chan os.Signal
}

// run runs a program in a cluster, with a terminal or with this process's files, environment, directory and
// signals.
func run(cluster int, args []string, terminal bool) int {
	ctx := context.Background()
	c, err := msg.Dial(ctx, fmt.Sprintf("%s:%d/%s", transport.Scheme, cluster, abi.Spawn), spawn.Interface, options())
	if err != nil {
		switch {
		case errors.Is(err, syscall.ENODEV):
			err = fmt.Errorf("cluster %d does not run", cluster)
		case errors.Is(err, syscall.ENOENT):
			err = fmt.Errorf("cluster %d runs no agent", cluster)
		}
		fmt.Fprintf(os.Stderr, "cluster: %v\n", err)
		return exitLost
	}
	defer c.Close()
	p := &remote{spawn.NewClient(spawn.New(c), nil), make(chan os.Signal, 16)}
	signal.Notify(p.signals, unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGTERM, unix.SIGUSR1, unix.SIGUSR2, unix.SIGALRM)
	if !terminal { // whose size is passed on instead
		signal.Notify(p.signals, unix.SIGWINCH)
	}
	dir, err := os.Getwd()
	if err != nil {
		return report(err)
	}
	mask := unix.Umask(0)
	unix.Umask(mask)
	in := spawn.StartCall{Arguments: join(args), Environment: join(os.Environ()), Directory: dir, Umask: uint32(mask), Terminal: terminal}
	if terminal {
		in.Rows, in.Cols = size()
	}
	_, err = p.Start(ctx, in)
	switch {
	case errors.Is(err, spawn.ErrNoProgram):
		fmt.Fprintf(os.Stderr, "cluster: %v\n", err)
		return exitNone
	case err != nil:
		return lost(cluster, err)
	}
	restore := func() {}
	if terminal {
		restore = p.attach(ctx)
	}
	status, err := p.follow(ctx)
	restore()
	if err != nil {
		return lost(cluster, err)
	}
	if status.Signal != 0 {
		c.Close()
		dieOf(unix.Signal(status.Signal))
	}
	return int(status.Status)
}

func lost(cluster int, err error) int {
	fmt.Fprintf(os.Stderr, "cluster: the program in cluster %d is lost: %v\n", cluster, err)
	return exitLost
}

func join(list []string) string {
	var b strings.Builder
	for _, s := range list {
		b.WriteString(s)
		b.WriteByte(0)
	}
	return b.String()
}

// follow passes input, output and signals on until the program ends.
func (p *remote) follow(ctx context.Context) (status spawn.WaitReply, err error) {
	go p.input(ctx)
	go func() {
		for s := range p.signals {
			p.Signal(ctx, spawn.SignalCall{Number: uint8(s.(syscall.Signal))}) // it may have ended
		}
	}()
	var both sync.WaitGroup
	both.Go(func() { p.output(ctx, 1, os.Stdout) })
	both.Go(func() { p.output(ctx, 2, os.Stderr) })
	status, err = p.Wait(ctx, spawn.WaitCall{})
	both.Wait()
	return status, err
}

func (p *remote) input(ctx context.Context) {
	b := make([]byte, 16<<10)
	for {
		n, err := os.Stdin.Read(b)
		if n > 0 {
			out, err := p.Input(ctx, spawn.InputCall{Bytes: b[:n]})
			if err != nil || out.Broken {
				return
			}
		}
		if err != nil {
			p.Input(ctx, spawn.InputCall{})
			return
		}
	}
}

func (p *remote) output(ctx context.Context, which uint8, to *os.File) {
	for {
		out, err := p.Output(ctx, spawn.OutputCall{Which: which})
		if err != nil || len(out.Bytes) == 0 {
			return // Wait tells why
		}
		if _, err := to.Write(out.Bytes); err != nil {
			p.Signal(ctx, spawn.SignalCall{Number: uint8(unix.SIGPIPE)})
		}
	}
}

// dieOf ends the process as the program was ended.
func dieOf(s unix.Signal) {
	signal.Reset(s)
	unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{})
	unix.Kill(os.Getpid(), s)
	time.Sleep(time.Second) // another thread may take it
	os.Exit(128 + int(s))
}
