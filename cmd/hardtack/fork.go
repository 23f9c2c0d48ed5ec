package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"hardtack/tool/fault"
	"hardtack/tool/machine"
	"hardtack/tool/named"
	"hardtack/tool/rootfs"
)

// guest is what a snapshot says of the guest: what exec and inspect need.
type guest struct {
	Root     string   `json:"root"`
	Args     []string `json:"args"`
	Env      []string `json:"env"`
	Cwd      string   `json:"cwd"`
	UID      uint32   `json:"uid"`
	GID      uint32   `json:"gid"`
	Groups   []uint32 `json:"groups"`
	Terminal bool     `json:"terminal"` // its console is one
}

func newGuest(s *named.State, terminal bool) *guest {
	return &guest{Root: s.Root, Args: s.Args, Env: s.Env, Cwd: s.Cwd, UID: s.UID, GID: s.GID, Groups: s.Groups, Terminal: terminal}
}

// hostName makes a host name of a machine's.
func hostName(name string) string { return strings.ReplaceAll(name, "_", "-") }

// copied are the flags of run that make sense for a copy: what else there is of a machine
// was decided when the first one started.
var copied = map[string]bool{"from": true, "name": true, "detach": true, "rm": true, "publish": true, "hostname": true,
	"metrics": true, "ui": true, "record": true, "timeout": true, "restart": true, "kernel": true, "dry-run": true}

// checkCopy checks what is given beside --from.
func (f *runFlags) checkCopy(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fault.Bad("with --from there is no ROOT and no command: the snapshot %s has both", f.from)
	}
	for _, name := range changedFlags(cmd) {
		if !copied[name] {
			return fault.Bad("--%s: a copy has what the machine had when the snapshot was made", name)
		}
	}
	return nil
}

// runCopy runs a machine that goes on from a snapshot.
func (f *runFlags) runCopy(cmd *cobra.Command) error {
	snap, err := machine.OpenSnapshot(f.from)
	if err != nil {
		return err
	}
	var g guest
	if err := json.Unmarshal(snap.Guest, &g); err != nil {
		return fault.Bad("the snapshot %s: %v", f.from, err)
	}
	if f.cfg.Kernel != "" {
		if err := snap.CheckKernel(f.cfg.Kernel); err != nil {
			return err
		}
	}
	if err := f.setPublish(); err != nil {
		return err
	}
	if err := f.checkValues(); err != nil {
		return err
	}
	if strings.ContainsFunc(f.hostname, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
		return fault.Bad("--hostname %q: a copy's has no spaces", f.hostname)
	}
	f.cfg.Netdev = ""
	snap.Configure(&f.cfg)
	if err := f.cfg.Check(); err != nil {
		return err
	}
	if f.dryRun {
		argv, err := f.cfg.Command()
		if err == nil {
			fmt.Println(machine.Quote(argv))
		}
		return err
	}
	none, err := os.Open(os.DevNull) // it does not boot
	if err != nil {
		return err
	}
	defer none.Close()
	boot := &rootfs.Boot{Args: g.Args, Env: g.Env, Cwd: g.Cwd, UID: g.UID, GID: g.GID, Groups: g.Groups,
		Terminal: g.Terminal && term.IsTerminal(int(os.Stdin.Fd()))}
	if cmd.Flags().Changed("hostname") {
		boot.Hostname = f.hostname
	} else if f.name != "" {
		boot.Hostname = hostName(f.name)
	}
	return f.attend(cmd.Context(), g.Root, boot, none)
}

func newSnapshot() *cobra.Command {
	var out string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "snapshot -o SNAPSHOT MACHINE",
		Short: "Save a machine while it runs",
		Long: `Save a machine that runs into a new folder, from which "hardtack fork" and
"hardtack run --from" start copies. The machine stands still for some milliseconds and
goes on. Its disks are copied meanwhile: a machine with large disks stands still longer.

A machine cannot be saved that shares folders with the host, has several kernels or
devices of its own, or is a copy itself.`,
		Example:           "  hardtack snapshot web -o web.snap\n  hardtack fork web.snap --name web2 -p 8081:80",
		Args:              exactly(1, "a MACHINE"),
		ValidArgsFunction: machineNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			if out == "" {
				return fault.Bad("want -o SNAPSHOT; see %s --help", cmd.CommandPath())
			}
			m, err := named.Find(args[0])
			if err != nil {
				return err
			}
			paused, err := save(cmd.Context(), m, out)
			if err != nil {
				return err
			}
			if asJSON {
				return json.NewEncoder(os.Stdout).Encode(map[string]any{"snapshot": out, "paused": paused.Seconds()})
			}
			fmt.Printf("%s (the machine stood still for %.1f ms)\n", out, paused.Seconds()*1000)
			return nil
		},
	}
	cmd.Flags().StringVarP(&out, "output", "o", "", "the new `folder`")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func save(ctx context.Context, m *named.Machine, out string) (time.Duration, error) {
	dir, err := filepath.Abs(out)
	if err != nil {
		return 0, err
	}
	if _, err := os.Lstat(dir); err == nil {
		return 0, fault.Bad("%s exists", out)
	}
	return m.Snapshot(ctx, dir)
}

func newFork() *cobra.Command {
	f := &runFlags{hostname: "hardtack", net: "static", panics: "kill", restart: "no", detach: true}
	cmd := &cobra.Command{
		Use:   "fork [flags] MACHINE|SNAPSHOT",
		Short: "Start a copy of a machine that runs",
		Long: `Start a copy of a machine that runs, or of a snapshot, in the background, and print
its name. The copy has the memory, programs and disks of the first one, and is another
machine: before its programs go on they have other random numbers, the time of day, a
host name, boot ID and machine ID of their own. TCP connections with the outside are
reset, those inside stay. What a copy writes to its disks is gone when it ends.`,
		Example:           "  hardtack fork web --name web2 -p 8081:80\n  hardtack fork web.snap",
		Args:              exactly(1, "a MACHINE or a SNAPSHOT"),
		ValidArgsFunction: machineNames,
		RunE:              func(cmd *cobra.Command, args []string) error { return f.fork(cmd, args[0]) },
	}
	fl := cmd.Flags()
	fl.StringVar(&f.name, "name", "", "the copy's `name` (default: a made-up one)")
	fl.StringVar(&f.hostname, "hostname", "", "its host `name` (default: the name)")
	fl.StringArrayVarP(&f.publish, "publish", "p", nil, "forward a `port` of the host to the copy: [ADDR:]HOST:GUEST[/udp] (repeatable)")
	fl.StringVar(&f.metrics, "metrics", "", "serve the copy's figures for Prometheus at this `address` of the host: [ADDR]:PORT")
	fl.StringVar(&f.ui, "ui", "", "serve a page that shows what the copy does at this `address` of the host: [ADDR]:PORT")
	fl.BoolVar(&f.remove, "rm", false, "remove it when it has ended")
	return cmd
}

// fork has run start the copy, from a snapshot that is gone afterwards where there is none.
func (f *runFlags) fork(cmd *cobra.Command, what string) error {
	from := what
	if m, err := named.Find(what); err == nil {
		dir, err := os.MkdirTemp("", "hardtack-fork-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir) // who has files of it open needs no names
		from = filepath.Join(dir, "snapshot")
		if _, err := m.Snapshot(cmd.Context(), from); err != nil {
			return err
		}
	} else if _, serr := os.Stat(what); serr != nil {
		return fault.Bad("there is no machine and no snapshot %q", what)
	}
	args := []string{"run", "-d", "--from", from}
	for _, p := range f.publish {
		args = append(args, "-p", p)
	}
	for flag, value := range map[string]string{"--name": f.name, "--hostname": f.hostname} {
		if value != "" {
			args = append(args, flag, value)
		}
	}
	if f.remove {
		args = append(args, "--rm")
	}
	return launch(args)
}

// changedFlags are the flags that were given.
func changedFlags(cmd *cobra.Command) (names []string) {
	cmd.Flags().Visit(func(f *pflag.Flag) { names = append(names, f.Name) })
	return names
}
