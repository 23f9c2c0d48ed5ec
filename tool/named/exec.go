package named

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"syscall"

	"hardtack/idl/live"
	"hardtack/tool/fault"
	"hardtack/tool/rootfs"
)

// Statuses of exec, which are docker's.
const (
	StatusFailed  = 125 // hardtack itself could not
	StatusNoStart = 126 // the program is there and cannot be run
	StatusMissing = 127 // it is not there
)

// Program is a program to run in a machine beside process 1.
type Program struct {
	Args       []string
	Env        []string
	Dir        string
	UID, GID   uint32
	Groups     []uint32
	Terminal   bool
	Rows, Cols uint16

	In       io.Reader // nil: none
	Out, Err io.Writer
	Signals  <-chan int       // to pass on; may be nil
	Sizes    <-chan [2]uint16 // of the terminal: rows and columns; may be nil
	Started  func()           // called when the program runs; may be nil
}

const (
	flagTerminal = 1
	flagInput    = 2
	flagTrace    = 4

	textMost = 24000 // bytes of arguments, and of environment
	chunk    = 16000
)

func joined(list []string) []byte {
	var b []byte
	for _, s := range list {
		b = append(append(b, s...), 0)
	}
	return b
}

// Run runs the program and returns its exit status.
func (p *Program) Run(ctx context.Context, c *live.Client) (int, error) {
	in := live.StartCall{Rows: p.Rows, Cols: p.Cols, UID: p.UID, GID: p.GID, Groups: p.Groups, Dir: p.Dir,
		Args: joined(p.Args), Env: joined(p.Env)}
	for _, s := range append(p.Args, p.Env...) {
		if strings.IndexByte(s, 0) >= 0 {
			return 0, fault.With(StatusFailed, "an argument contains a zero byte")
		}
	}
	if len(in.Args) > textMost || len(in.Env) > textMost || len(in.Groups) > 64 {
		return 0, fault.With(StatusFailed, "the arguments, or the environment, are longer than %d bytes", textMost)
	}
	if p.Terminal {
		in.Flags |= flagTerminal
	}
	if p.In != nil {
		in.Flags |= flagInput
	}
	out, err := c.Start(ctx, in)
	if err != nil {
		return 0, fault.With(StatusFailed, "%w", err)
	}
	switch e := syscall.Errno(out.Errno); e {
	case 0:
	case syscall.ENOENT, syscall.ENOTDIR:
		return 0, fault.With(StatusMissing, "%s: %w", p.Args[0], e)
	default:
		return 0, fault.With(StatusNoStart, "%s: %w", p.Args[0], e)
	}
	if p.Started != nil {
		p.Started()
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if p.In != nil {
		go p.input(ctx, c, out.Session) // may stay in a read of standard input
	}
	go p.events(ctx, c, out.Session)
	return p.output(ctx, c, out.Session)
}

// output writes what the program does until it has ended.
func (p *Program) output(ctx context.Context, c *live.Client, session uint32) (int, error) {
	defer closeSession(c, session)
	var failed error
	for {
		n, err := c.Next(ctx, live.NextCall{Session: session})
		if err != nil {
			return 0, fault.With(StatusFailed, "the machine ended, or its connection did: %w", err)
		}
		switch n.What {
		case 1, 2:
			w := p.Out
			if n.What == 2 {
				w = p.Err
			}
			if _, err := w.Write(n.Data); err != nil && failed == nil {
				failed = err
				return 0, fault.With(StatusFailed, "standard output: %w", err)
			}
		case 3:
			status := syscall.WaitStatus(n.Status)
			if status.Signaled() {
				return 128 + int(status.Signal()), nil
			}
			return status.ExitStatus(), nil
		default:
			return 0, fault.With(StatusFailed, "the machine's kernel says what nobody understands (%d)", n.What)
		}
	}
}

// input gives the program what is read.
func (p *Program) input(ctx context.Context, c *live.Client, session uint32) {
	buf := make([]byte, chunk)
	for {
		n, err := p.In.Read(buf)
		if n > 0 || err != nil {
			out, cerr := c.Input(ctx, live.InputCall{Session: session, Data: buf[:n], End: err != nil})
			if cerr != nil || out.Errno != 0 || err != nil {
				return // the program does not read any more, or has all
			}
		}
	}
}

// events passes signals and sizes on.
func (p *Program) events(ctx context.Context, c *live.Client, session uint32) {
	for {
		select {
		case n := <-p.Signals:
			_, _ = c.Signal(ctx, live.SignalCall{Session: session, Number: uint8(n)}) // it may have ended
		case s := <-p.Sizes:
			_, _ = c.Resize(ctx, live.ResizeCall{Session: session, Rows: s[0], Cols: s[1]})
		case <-ctx.Done():
			return
		}
	}
}

// accountsMost bounds what is read of a guest's /etc/passwd and /etc/group.
const accountsMost = 1 << 20

// User finds a user in the machine's own files, as docker's -u does.
func User(ctx context.Context, c *live.Client, spec string) (*rootfs.User, error) {
	tree := rootfs.New(rootfs.BudgetFor(64 << 20))
	for _, name := range []string{"etc/passwd", "etc/group"} {
		b, err := ReadFile(ctx, c, "/"+name, accountsMost)
		if errors.Is(err, syscall.ENOENT) {
			continue
		}
		if err == nil {
			err = tree.Put(name, &rootfs.Inode{Mode: rootfs.Regular | 0o644, Data: rootfs.Bytes(b)})
		}
		if err != nil {
			return nil, err
		}
	}
	return tree.ResolveUser(spec)
}

// ReadFile reads a file of the machine, of at most so many bytes.
func ReadFile(ctx context.Context, c *live.Client, path string, most int) ([]byte, error) {
	var b bytes.Buffer
	for {
		out, err := c.Read(ctx, live.ReadCall{At: uint64(b.Len()), Path: path})
		if err == nil {
			err = guestError("reading", path, out.Errno)
		}
		if err != nil {
			return nil, err
		}
		if len(out.Data) == 0 {
			return b.Bytes(), nil
		}
		if b.Write(out.Data); b.Len() > most {
			return nil, fault.With(fault.Host, "%s in the machine is longer than %d bytes", path, most)
		}
	}
}
