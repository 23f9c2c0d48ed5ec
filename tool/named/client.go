package named

import (
	"context"
	"errors"
	"fmt"
	"io"
	"syscall"
	"time"

	"hardtack/idl/live"
	proto "hardtack/idl/machine"
	"hardtack/msg"
	_ "hardtack/msg/ump" // the sockets' driver
	"hardtack/tool/fault"
	"hardtack/tool/watch"
)

// Control connects to the process of a machine.
func (m *Machine) Control(ctx context.Context) (*proto.Client, func(), error) {
	c, err := proto.Connect(ctx, controlName, m.options())
	if err != nil {
		return nil, nil, m.unreachable(err)
	}
	return proto.NewClient(c, nil), func() { c.Close() }, nil
}

// Look connects to the kernel of a machine.
func (m *Machine) Look(ctx context.Context) (*live.Client, func(), error) {
	c, err := live.Connect(ctx, liveName, m.options())
	if err != nil {
		return nil, nil, m.unreachable(err)
	}
	return live.NewClient(c, nil), func() { c.Close() }, nil
}

// Watch connects to a machine that runs, for who watches it from another process than its own.
func (m *Machine) Watch(ctx context.Context) (*watch.Source, func(), error) {
	control, leave, err := m.Control(ctx)
	if err != nil {
		return nil, nil, err
	}
	c, done, err := m.Look(ctx)
	if err != nil {
		leave()
		return nil, nil, err
	}
	s := &watch.Source{Name: m.Name, Live: func(context.Context) (*live.Client, error) { return c, nil },
		Host: func(ctx context.Context) (uint64, uint64, error) {
			u, err := control.Usage(ctx, proto.UsageCall{})
			return u.Processor, u.Resident, err
		}}
	return s, func() { done(); leave() }, nil
}

func (m *Machine) options() *msg.Options {
	return &msg.Options{Resolver: msg.Directory(m.Dir), Wait: -1}
}

func (m *Machine) unreachable(err error) error {
	if !m.Alive() {
		return fault.With(fault.Host, "the machine %q does not run", m.Name)
	}
	return fmt.Errorf("the machine %q: %w", m.Name, err)
}

// Wait waits for the machine's end and returns its exit status.
func (m *Machine) Wait(ctx context.Context) (int, error) {
	if m.Alive() {
		c, done, err := m.Control(ctx)
		if err == nil {
			var out proto.AwaitReply
			out, err = c.Await(ctx, proto.AwaitCall{})
			done()
			if err == nil {
				return int(out.Status), nil
			}
		}
		if ctx.Err() != nil {
			return 0, ctx.Err()
		}
		if !m.ends() { // if its process was killed it may hold the lock still
			return 0, err
		}
	}
	s, err := m.State()
	if err != nil {
		return 0, err
	}
	if s.Runs() {
		return 0, fault.With(fault.Host, "the machine %q does not say how it ended", m.Name)
	}
	return s.ExitCode, nil
}

// Stop asks process 1 to end with a signal, and ends the machine after patience
// milliseconds. It returns when the machine has ended.
func (m *Machine) Stop(ctx context.Context, signal int, patience uint32) error {
	if !m.Alive() {
		return nil
	}
	c, done, err := m.Control(ctx)
	if err != nil {
		if ctx.Err() == nil && m.ends() {
			return nil
		}
		return err
	}
	defer done()
	_, err = c.Stop(ctx, proto.StopCall{Number: uint8(signal), Patience: patience})
	if ended(err) {
		return nil
	}
	return err
}

// Snapshot saves a machine that runs into a new folder, and returns how long it stood still.
func (m *Machine) Snapshot(ctx context.Context, dir string) (time.Duration, error) {
	c, done, err := m.Control(ctx)
	if err != nil {
		return 0, err
	}
	defer done()
	out, err := c.Snapshot(ctx, proto.SnapshotCall{Dir: dir})
	switch {
	case ended(err):
		return 0, fault.With(fault.Host, "the machine %q does not run", m.Name)
	case err != nil:
		return 0, err
	case out.Problem != "":
		return 0, fault.With(int(out.Status), "the machine %q: %s", m.Name, out.Problem)
	}
	return time.Duration(out.Paused), nil
}

// Kill sends process 1 a signal; 9 ends the machine.
func (m *Machine) Kill(ctx context.Context, signal int) error {
	c, done, err := m.Control(ctx)
	if err != nil {
		return err
	}
	defer done()
	_, err = c.Signal(ctx, proto.SignalCall{Number: uint8(signal)})
	if ended(err) {
		return fault.With(fault.Host, "the machine %q does not run", m.Name)
	}
	return err
}

// ended reports whether a call failed because the machine is gone.
func ended(err error) bool {
	return errors.Is(err, proto.ErrOver) || errors.Is(err, msg.ErrPeerGone) || errors.Is(err, msg.ErrPeerClosed) || errors.Is(err, io.EOF)
}

// guestError is an errno of the guest as an error of this system: the numbers are the same.
func guestError(op, path string, errno uint32) error {
	if errno == 0 {
		return nil
	}
	return fmt.Errorf("%s %s in the machine: %w", op, path, syscall.Errno(errno))
}
