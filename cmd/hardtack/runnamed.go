package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"hardtack/tool/fault"
	"hardtack/tool/machine"
	"hardtack/tool/named"
	"hardtack/tool/rootfs"
	"hardtack/tool/watch"
)

// restarts is when a machine starts again after its end.
type restarts struct {
	always bool
	most   int // after failures; -1: any number
}

func parseRestart(s string) (r restarts, err error) {
	how, count, counted := strings.Cut(s, ":")
	switch {
	case s == "no" || s == "":
	case s == "always" || s == "unless-stopped":
		r.always = true
	case how == "on-failure" && !counted:
		r.most = -1
	case how == "on-failure":
		if r.most, err = strconv.Atoi(count); err != nil || r.most < 1 {
			return r, fault.Bad("--restart %q: %q is not a number of times", s, count)
		}
	default:
		return r, fault.Bad("--restart %q: want no, on-failure[:N], always or unless-stopped", s)
	}
	return r, nil
}

// due reports whether a machine that has ended so starts again.
func (r restarts) due(code, before int) bool {
	return r.always || code != 0 && (r.most < 0 || before < r.most)
}

// checkNamed checks the flags that are about names and the background.
func (f *runFlags) checkNamed() (err error) {
	if f.name != "" {
		if err := named.CheckName(f.name); err != nil {
			return err
		}
	}
	if f.again, err = parseRestart(f.restart); err != nil {
		return err
	}
	switch {
	case f.again != restarts{} && !f.detach:
		return fault.Bad("--restart needs -d")
	case f.again != restarts{} && f.remove:
		return fault.Bad("--restart and --rm exclude each other")
	}
	return nil
}

// envFiles reads files of variables as docker does: lines, without quoting; those that are
// empty or begin with # are left out.
func envFiles(names []string) (list []string, err error) {
	for _, name := range names {
		f, err := os.Open(name)
		if err != nil {
			return nil, fault.Bad("--env-file: %v", err)
		}
		s := bufio.NewScanner(f)
		for s.Scan() {
			line := strings.TrimLeft(s.Text(), " \t")
			if line == "" || line[0] == '#' {
				continue
			}
			if name, _, _ := strings.Cut(line, "="); name == "" || strings.ContainsAny(name, " \t") {
				f.Close()
				return nil, fault.Bad("--env-file %s: %q is no variable", f.Name(), line)
			}
			list = append(list, line)
		}
		f.Close()
		if s.Err() != nil {
			return nil, fault.Bad("--env-file %s: %v", name, s.Err())
		}
	}
	return list, nil
}

// A detached machine is this command, started anew in a session of its own. It tells on
// descriptor 3 how the start went.
const (
	detachedEnv = "HARDTACK_DETACHED"
	reportFD    = 3
)

// report is what a detached machine tells whoever started it.
type report struct {
	Name   string `json:"name"`
	Error  string `json:"error"`
	Status int    `json:"status"`
}

var reporting *os.File // of this process, if it is detached and has not told

// detached reports whether this is the process of a detached machine.
func detached() bool {
	if os.Getenv(detachedEnv) == "" {
		return reporting != nil
	}
	os.Unsetenv(detachedEnv)
	syscall.CloseOnExec(reportFD)
	reporting = os.NewFile(reportFD, "report")
	return true
}

func tell(r report) {
	if reporting == nil {
		return
	}
	_ = json.NewEncoder(reporting).Encode(r) // who waited for it may have gone
	reporting.Close()
	reporting = nil
}

// reported tells the error of a start.
func reported(err error) error {
	var guest exitStatus
	if err != nil && !errors.As(err, &guest) {
		tell(report{Error: err.Error(), Status: fault.Status(err)})
	}
	return err
}

// launch starts the process of a detached machine, waits until process 1 runs, and prints the
// machine's name.
func launch(args []string) error {
	name, err := launched(args)
	if err == nil {
		fmt.Println(name)
	}
	return err
}

// launched is launch without the name's print.
func launched(args []string) (name string, err error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	r, w, err := os.Pipe()
	if err != nil {
		return "", err
	}
	defer r.Close()
	cmd := exec.Command(self, args...)
	cmd.Env = named.Environ(detachedEnv, "1")
	cmd.ExtraFiles = []*os.File{w}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err = cmd.Start()
	w.Close()
	if err != nil {
		return "", err
	}
	var told report
	if err := json.NewDecoder(r).Decode(&told); err != nil {
		return "", fault.With(fault.Lost, "the machine's process ended without a word")
	}
	if told.Error != "" {
		return "", fault.With(told.Status, "%s", told.Error)
	}
	return told.Name, nil
}

// supervise runs the machine under its name, again and again if that is wanted.
func (f *runFlags) supervise(ctx context.Context, root string, boot *rootfs.Boot, initrd *os.File, con machine.Console) (int, error) {
	m, svc, err := f.claim(ctx)
	if err != nil {
		return 0, err
	}
	f.cfg.LastWords = f.lastWords(m)
	if m == nil {
		f.cfg.Renewal.Hostname = boot.Hostname
		return f.cfg.Run(ctx, initrd, con)
	}
	if f.from != "" && boot.Hostname == "" {
		boot.Hostname = hostName(m.Name)
	}
	f.cfg.Renewal.Hostname = boot.Hostname
	f.cfg.Keep = (f.detach || f.name != "") && f.cfg.Savable() == nil
	s := f.state(m.Name, root, boot)
	if err := m.Save(s); err != nil {
		_ = m.Remove()
		return 0, err
	}
	if f.detach {
		log, err := m.OpenLog()
		if err != nil {
			_ = m.Remove()
			return 0, err
		}
		con.Out = log
	}
	var status int
	for begun := time.Now(); ; begun = time.Now() {
		status, err = f.once(ctx, m, svc, s, boot, initrd, con)
		code := named.Status(status, err)
		s.ExitCode, s.Error, s.QEMU, s.Finished = code, "", 0, time.Now()
		if err != nil {
			s.Error = err.Error()
		}
		if svc.Stopped() || ctx.Err() != nil || reporting != nil || !f.again.due(code, s.Restarts) {
			break
		}
		s.Status = named.Restarting
		_ = m.Save(s)
		if !svc.Pause(ctx, pause(s.Restarts, time.Since(begun))) {
			break
		}
		s.Restarts++
	}
	if reporting != nil && err == nil {
		err = fault.With(max(s.ExitCode, 1), "the machine ended before its program ran: %s", m.LastLine())
	}
	s.Status = named.Exited
	_ = m.Save(s) // without it the machine counts as killed
	svc.End(s.ExitCode)
	if s.AutoRemove || reporting != nil {
		_ = m.Remove()
	}
	return status, err
}

// pause is how long a machine that ended waits before it starts again: longer each time,
// from the beginning once it has run for a while.
func pause(restarts int, ran time.Duration) time.Duration {
	if ran > 10*time.Second {
		return 100 * time.Millisecond
	}
	return min(100*time.Millisecond<<min(restarts, 10), time.Minute)
}

// claim takes the machine's name. A machine that nobody named, and that does not leave the
// terminal, does without one where it cannot be had.
func (f *runFlags) claim(ctx context.Context) (*named.Machine, *named.Service, error) {
	name := first(f.name, named.NewName())
	m, err := named.Create(name)
	var svc *named.Service
	if err == nil {
		if svc, err = m.Serve(ctx); err == nil {
			err = f.watched(ctx, svc.Source())
		}
		if err != nil {
			_ = m.Remove()
		}
	}
	if err != nil && f.name == "" && !f.detach && f.metrics == "" && f.ui == "" {
		return nil, nil, nil
	}
	return m, svc, err
}

// watched serves the machine's metrics and its page.
func (f *runFlags) watched(ctx context.Context, s *watch.Source) error {
	if f.metrics != "" {
		if _, err := watch.Serve(ctx, s, f.metrics, false); err != nil {
			return fault.With(fault.Status(err), "--metrics %v", err)
		}
	}
	if f.ui == "" {
		return nil
	}
	at, err := watch.Serve(ctx, s, f.ui, true)
	if err != nil {
		return fault.With(fault.Status(err), "--ui %v", err)
	}
	f.page = "http://" + at + "/"
	if !f.detach {
		fmt.Fprintln(os.Stderr, f.page)
	}
	return nil
}

func (f *runFlags) state(name, root string, boot *rootfs.Boot) *named.State {
	s := &named.State{Name: name, Status: named.Created, PID: os.Getpid(), Created: time.Now(),
		Root: first(root, f.root), Image: f.image, Args: boot.Args, Env: boot.Env, Cwd: boot.Cwd, UID: boot.UID, GID: boot.GID,
		Groups: boot.Groups, Hostname: boot.Hostname, CPUs: f.cfg.CPUs, Memory: f.cfg.Memory, Accel: f.cfg.Accel,
		Ports: f.publish, Page: f.page, Restart: first(f.restart, "no"), Detached: f.detach, AutoRemove: f.remove || !f.detach}
	return s
}

// once runs the machine until its end.
func (f *runFlags) once(ctx context.Context, m *named.Machine, svc *named.Service, s *named.State, boot *rootfs.Boot, initrd *os.File, con machine.Console) (int, error) {
	if f.detach {
		null, err := os.Open(os.DevNull)
		if err != nil {
			return 0, err
		}
		defer null.Close()
		con.In = io.Reader(null)
	}
	saved := make(chan struct{})
	f.cfg.Watch = func(r *machine.Running) {
		svc.Started(&named.Guest{PID: r.PID, Ready: r.Ready, Done: r.Done, Link: r.Live, Signal: r.Signal,
			Save: func(ctx context.Context, dir string) (time.Duration, error) {
				snap, err := r.Save(ctx, dir, newGuest(s, boot.Terminal))
				if err != nil {
					return 0, err
				}
				return snap.Paused, nil
			}})
		go func() {
			defer close(saved)
			select {
			case <-r.Ready:
			case <-r.Done:
				return
			}
			s.Status, s.QEMU, s.Started = named.Up, r.PID, time.Now()
			_ = m.Save(s) // ps shows it as created then
			tell(report{Name: m.Name})
		}()
	}
	status, err := f.cfg.Run(ctx, initrd, con)
	if f.cfg.Watch = nil; svc.Ended() {
		<-saved
	}
	return status, err
}
