package main

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"path"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"hardtack/tool/fault"
	"hardtack/tool/named"
)

// execFlags are the flags of hardtack exec.
type execFlags struct {
	input, terminal bool
	env, envFiles   []string
	workdir, user   string
	detach          bool
}

func newExec() *cobra.Command {
	var f execFlags
	cmd := &cobra.Command{
		Use:   "exec [flags] MACHINE CMD [ARG...]",
		Short: "Run a program in a machine that runs",
		Long: `Run a program beside process 1, with its environment, working directory and user
where flags say nothing else. Many can run at a time.

Without -i the program's input is empty. With -t it has a terminal of its own, which has
the size of this one. Without -t SIGINT, SIGTERM, SIGHUP and SIGQUIT are passed on to it.
If this command is killed, the program is hung up (SIGHUP). With -d it returns when the program
runs, and a process in the background stays with it; what it prints is lost.

Exit status:
  125  hardtack could not: there is no such machine, it does not run, bad flags
  126  the program cannot be run
  127  there is no such program
  128+N  signal N ended the program
  any other  the status of the program`,
		Example: `  hardtack exec web ps
  hardtack exec -it web /bin/sh
  echo hello | hardtack exec -i web tee /tmp/greeting`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) < 2 {
				return fault.With(named.StatusFailed, "want a MACHINE and a CMD; see %s --help", cmd.CommandPath())
			}
			return nil
		},
		ValidArgsFunction: func(cmd *cobra.Command, args []string, s string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return machineNames(cmd, args, s)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.detach && !detached() {
				_, err := launched(os.Args[1:])
				return err
			}
			return reported(f.exec(cmd.Context(), args[0], args[1:]))
		},
	}
	fl := cmd.Flags()
	fl.SetInterspersed(false) // the program's flags are its own
	f.define(fl)
	fl.BoolVarP(&f.detach, "detach", "d", false, "return when the program runs")
	fl.StringVarP(&f.user, "user", "u", "", "`user`: NAME or UID, with :GROUP or :GID")
	cmd.SetFlagErrorFunc(execFlagError)
	return cmd
}

func execFlagError(cmd *cobra.Command, err error) error {
	return fault.With(named.StatusFailed, "%v; see %s --help", err, cmd.CommandPath())
}

// exec runs a program in a machine and returns its status as an error.
func (f *execFlags) exec(ctx context.Context, machine string, args []string) error {
	status, err := f.run(ctx, machine, args)
	switch {
	case err != nil && fault.Status(err) < named.StatusFailed:
		return fault.With(named.StatusFailed, "%w", err)
	case err != nil:
		return err
	case status != 0:
		return exitStatus(status)
	}
	return nil
}

// define makes the flags that a program in another kernel has, too.
func (f *execFlags) define(fl *pflag.FlagSet) {
	fl.BoolVarP(&f.input, "interactive", "i", false, "give the program this command's input")
	fl.BoolVarP(&f.terminal, "tty", "t", false, "give the program a terminal")
	fl.StringArrayVarP(&f.env, "env", "e", nil, "set a `variable`: NAME=VALUE, or NAME for the host's value (repeatable)")
	fl.StringArrayVar(&f.envFiles, "env-file", nil, "set the variables of a `file`, one a line (repeatable)")
	fl.StringVarP(&f.workdir, "workdir", "w", "", "working `directory`")
}

func (f *execFlags) run(ctx context.Context, name string, args []string) (int, error) {
	m, err := named.Find(name)
	if err != nil {
		return 0, err
	}
	s, err := m.State()
	if err != nil {
		return 0, err
	}
	if !s.Runs() {
		return 0, fault.With(named.StatusFailed, "the machine %q does not run: it is %s", m.Name, s.Status)
	}
	c, done, err := m.Look(ctx)
	if err != nil {
		return 0, err
	}
	defer done()
	p := named.Program{Args: args, Dir: s.Cwd, UID: s.UID, GID: s.GID, Groups: s.Groups, Terminal: f.terminal, Out: os.Stdout, Err: os.Stderr}
	e := &env{list: s.Env}
	if f.user != "" {
		u, err := named.User(ctx, c, f.user)
		if err != nil {
			return 0, err
		}
		p.UID, p.GID, p.Groups = u.UID, u.GID, u.Groups
		e.set("HOME", u.Home)
	}
	if f.workdir != "" {
		if p.Dir = path.Clean(f.workdir); !strings.HasPrefix(p.Dir, "/") {
			p.Dir = path.Join(s.Cwd, f.workdir)
		}
	}
	if t := os.Getenv("TERM"); f.terminal {
		e.set("TERM", first(t, "xterm"))
	}
	if err := e.addUsers(f.envFiles, f.env); err != nil {
		return 0, err
	}
	p.Env = e.list
	if f.detach {
		p.Out, p.Err, p.Started = io.Discard, io.Discard, func() { tell(report{Name: name}) }
		return p.Run(ctx, c)
	}
	if f.input {
		p.In = os.Stdin
	}
	restore, err := f.connect(ctx, &p)
	if err != nil {
		return 0, err
	}
	defer restore()
	return p.Run(ctx, c)
}

// connect passes this command's terminal and signals on.
func (f *execFlags) connect(ctx context.Context, p *named.Program) (restore func(), err error) {
	tty := int(os.Stdin.Fd())
	if !f.terminal || !term.IsTerminal(tty) {
		signals, numbers := make(chan os.Signal, 4), make(chan int)
		signal.Notify(signals, unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGQUIT)
		go func() {
			for s := range signals {
				if n, ok := s.(syscall.Signal); ok {
					numbers <- int(n)
				}
			}
		}()
		p.Signals = numbers
		return func() { signal.Stop(signals) }, nil
	}
	sizes, changed := make(chan [2]uint16), make(chan os.Signal, 1)
	get := func() (rows, cols uint16) {
		w, h, err := term.GetSize(tty)
		if err != nil {
			return 0, 0
		}
		return uint16(h), uint16(w)
	}
	p.Rows, p.Cols = get()
	signal.Notify(changed, unix.SIGWINCH)
	go func() {
		for range changed {
			rows, cols := get()
			select {
			case sizes <- [2]uint16{rows, cols}:
			case <-ctx.Done():
				return
			}
		}
	}()
	p.Sizes = sizes
	if !f.input {
		return func() { signal.Stop(changed) }, nil
	}
	old, err := term.MakeRaw(tty)
	if err != nil {
		return nil, err
	}
	return func() {
		signal.Stop(changed)
		_ = term.Restore(tty, old)
	}, nil
}

func newCP() *cobra.Command {
	var archive, follow bool
	cmd := &cobra.Command{
		Use:   "cp [flags] MACHINE:PATH PATH|-\n  hardtack cp [flags] PATH|- MACHINE:PATH",
		Short: "Copy files between a machine and the host",
		Long: `Copy a file, or a folder with what is in it, out of a machine that runs or into it. If the
destination is a folder, the copy is made in it; of a source that ends in /. what is in it. Symbolic links are copied as they are.
What is neither file, folder nor link is refused.

With - for the host's side a tar is written to standard output, or read from standard input and
unpacked in a folder of the machine.

In the machine the files belong to root, or with -a to the numbers of their owners here.`,
		Example: `  hardtack cp web:/etc/nginx .
  hardtack cp index.html web:/srv/
  hardtack cp web:/var/log - | tar t`,
		Args: exactly(2, "a source and a destination"),
		RunE: func(cmd *cobra.Command, args []string) error {
			from, source, err1 := named.ParsePlace(args[0])
			to, dest, err2 := named.ParsePlace(args[1])
			if err := errors.Join(err1, err2); err != nil {
				return err
			}
			if (from == "") == (to == "") {
				return fault.Bad("one of the two must be in a machine: MACHINE:PATH")
			}
			m, err := named.Find(first(from, to))
			if err != nil {
				return err
			}
			c, done, err := m.Look(cmd.Context())
			if err != nil {
				return err
			}
			defer done()
			switch {
			case from != "" && dest == "-":
				return named.TarOut(cmd.Context(), c, source, os.Stdout, follow)
			case to != "" && source == "-":
				return named.TarIn(cmd.Context(), c, os.Stdin, dest, archive)
			case from != "":
				return named.CopyOut(cmd.Context(), c, source, dest, follow)
			}
			return named.CopyIn(cmd.Context(), c, source, dest, 0, 0, archive, follow)
		},
	}
	cmd.Flags().BoolVarP(&archive, "archive", "a", false, "keep the numbers of owners and groups")
	cmd.Flags().BoolVarP(&follow, "follow-link", "L", false, "copy what a symbolic link PATH leads to")
	return cmd
}

// addUsers sets what --env-file and -e say, in this order.
func (e *env) addUsers(files, list []string) error {
	fromFiles, err := envFiles(files)
	if err != nil {
		return err
	}
	for _, v := range append(fromFiles, list...) {
		name, value, given := strings.Cut(v, "=")
		if name == "" {
			return fault.Bad("--env %q: want NAME=VALUE", v)
		}
		if !given {
			var ok bool
			if value, ok = os.LookupEnv(name); !ok {
				continue
			}
		}
		e.set(name, value)
	}
	return nil
}
