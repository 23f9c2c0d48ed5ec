package service

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync"

	"hardtack/abi/linux"
	"hardtack/idl/process"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/ledger"
	"hardtack/kernel/base/uio"
	"hardtack/kernel/base/wait"
	"hardtack/kernel/fd/pipe"
	"hardtack/kernel/fs/vfs"
	"hardtack/kernel/process/proc"
)

// maxPrograms is how many programs a connection may have that nobody has waited for.
const maxPrograms = 32

// programs serves idl/process.if to one client.
type programs struct {
	x   *Client
	fds *vfs.FSContext // to open /dev/null, which the client's root may lack

	mu   sync.Mutex
	all  map[uint32]*started // guarded by mu
	over bool                // the connection has ended; guarded by mu
}

// started is a program that a client has started.
type started struct {
	out    *vfs.File     // a reference for being in programs.all
	done   chan struct{} // closed at the program's end
	status int32         // immutable after done
}

// ServePrograms makes the service. root is where /dev/null is.
func ServePrograms(root *vfs.FSContext) error {
	s, err := process.Export(context.Background(), "process", Options())
	if err != nil {
		return err
	}
	return Serve("process", s.Accept, func(ctx context.Context, x *Client, c *process.Conn) {
		h := &programs{x: x, fds: root, all: map[uint32]*started{}}
		x.Hold(h.held)
		c.Serve(ctx, h)
		h.end()
	})
}

// end forgets the programs, which live on.
func (h *programs) end() {
	h.mu.Lock()
	h.over = true
	all := h.all
	h.all = nil
	h.mu.Unlock()
	for _, s := range all {
		s.out.Put()
	}
}

// held adds the programs' records and pipes to the ledger.
func (h *programs) held(sum *ledger.Sum) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, s := range h.all {
		sum.Add(ledger.Sockets, ledger.Of[started]())
		s.out.Holds(sum)
	}
}

// words splits what ends with zero bytes.
func words(b []byte) []string {
	if len(b) == 0 {
		return nil
	}
	return strings.Split(string(bytes.TrimSuffix(b, []byte{0})), "\x00")
}

// paths are where a program may be.
func paths(name string, env []string) (out []string) {
	if strings.Contains(name, "/") {
		return []string{name}
	}
	for _, v := range env {
		if list, ok := strings.CutPrefix(v, "PATH="); ok {
			for dir := range strings.SplitSeq(list, ":") {
				if dir == "" {
					dir = "."
				}
				out = append(out, dir+"/"+name)
			}
		}
	}
	return out
}

// context is a kernel context with the client's rights, that ctx wakes at its end. stop ends that.
func (x *Client) context(ctx context.Context) (c *caller.Ctx, stop func() bool) {
	c = caller.NewKernelCtx()
	c.SetCred(x.Cred)
	return c, context.AfterFunc(ctx, c.Wake)
}

func (h *programs) Start(ctx context.Context, in process.StartCall) (out process.StartReply, err error) {
	argv, env := words(in.Arguments), words(in.Environment)
	if len(argv) == 0 || argv[0] == "" {
		return out, fmt.Errorf("%w: it has no name", process.ErrNoProgram)
	}
	c, stop := h.x.context(ctx)
	defer stop()
	null, e := vfs.Open(caller.NewKernelCtx(), h.fds, nil, "/dev/null", linux.O_RDONLY, 0)
	if e != 0 {
		return out, fmt.Errorf("%w: /dev/null: %s", process.ErrNoProgram, e.Error())
	}
	r, w, e := pipe.Pair(c, 0)
	if e != 0 {
		null.Put()
		return out, process.ErrMany
	}
	r.UpdateFlags(linux.O_NONBLOCK, linux.O_NONBLOCK)
	w.Get()
	s := &started{out: r, done: make(chan struct{})}
	if !h.reserve(s) {
		null.Put()
		w.Put()
		w.Put()
		r.Put()
		return out, process.ErrMany
	}
	p, e := h.x.Origin.Start(proc.StartArgs{Argv: argv, Env: env, Dir: in.Directory}, paths(argv[0], env), []*vfs.File{null, w, w})
	if p != nil {
		go s.collect(p)
	}
	h.mu.Lock()
	delete(h.all, reserved)
	if e == 0 && !h.over {
		h.all[uint32(p.PID)] = s
		h.mu.Unlock()
		return process.StartReply{Process: uint32(p.PID)}, nil
	}
	h.mu.Unlock()
	r.Put()
	if e == linux.EAGAIN || e == linux.ENOMEM {
		return out, process.ErrMany
	}
	return out, fmt.Errorf("%w: %s: %s", process.ErrNoProgram, argv[0], e.Error())
}

// reserved is the number of a program that is being started: no process has it.
const reserved = 0

// reserve makes room for one program; one is started at a time.
func (h *programs) reserve(s *started) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.over || h.all[reserved] != nil || len(h.all) >= maxPrograms {
		return false
	}
	h.all[reserved] = s
	return true
}

// collect waits for the program's end.
func (s *started) collect(p *proc.Spawned) {
	c := caller.NewKernelCtx()
	s.status = p.Collect(&c.Sleeper, &c.Entry)
	close(s.done)
}

// find returns a program, with a reference to its output.
func (h *programs) find(pid uint32) *started {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.all[pid]
	if s == nil || pid == reserved {
		return nil
	}
	s.out.Get()
	return s
}

func (h *programs) Output(ctx context.Context, in process.OutputCall) (out process.OutputReply, err error) {
	s := h.find(in.Process)
	if s == nil {
		return out, process.ErrNoProcess
	}
	defer s.out.Put()
	c, stop := h.x.context(ctx)
	defer stop()
	buf := make([]byte, 8000)
	q := s.out.Ops.Queue(s.out)
	for {
		c.Arm()
		q.Add(&c.Entry, &c.Sleeper, wait.In|wait.RdNorm|wait.Hup|wait.Err)
		n, e := s.out.Ops.Read(c, s.out, uio.Bytes(buf), 0)
		if e == linux.EAGAIN && ctx.Err() == nil {
			c.SleepUninterruptible(wait.NoDeadline)
		}
		q.Remove(&c.Entry)
		switch {
		case ctx.Err() != nil:
			return out, ctx.Err()
		case e == 0:
			return process.OutputReply{Bytes: buf[:n]}, nil
		case e != linux.EAGAIN:
			return out, fmt.Errorf("output: %s", e.Error())
		}
	}
}

func (h *programs) Signal(_ context.Context, in process.SignalCall) (out process.SignalReply, err error) {
	sig := linux.Signal(in.Number)
	if sig != 0 && !sig.Valid() {
		return out, process.ErrInvalid
	}
	var p *proc.Process
	if in.Process > 0 && in.Process < 1<<31 {
		p = proc.Lookup(int32(in.Process))
	}
	if p == nil {
		return out, process.ErrNoProcess
	}
	if !proc.MaySignal(h.x.Cred, p, nil, sig, false) {
		return out, process.ErrRefused
	}
	if sig == 0 {
		return out, nil
	}
	info := linux.Siginfo{Signo: int32(sig), Code: linux.SI_USER}
	info.SetSender(h.x.PID, h.x.Cred.UID)
	if p.Signal(&info) != 0 { // too many real-time signals wait
		return out, process.ErrMany
	}
	return out, nil
}

func (h *programs) Wait(ctx context.Context, in process.WaitCall) (out process.WaitReply, err error) {
	s := h.find(in.Process)
	if s == nil {
		return out, process.ErrNoProcess
	}
	defer s.out.Put()
	select {
	case <-s.done:
	case <-ctx.Done():
		return out, ctx.Err()
	}
	h.mu.Lock()
	if h.all[in.Process] != s { // somebody else has waited for it
		h.mu.Unlock()
		return out, process.ErrNoProcess
	}
	delete(h.all, in.Process)
	h.mu.Unlock()
	s.out.Put()
	return process.WaitReply{Status: uint8(s.status >> 8), Signal: uint8(s.status & 0x7f)}, nil
}
