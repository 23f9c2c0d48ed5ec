package main

import (
	"bytes"
	"context"
	"fmt"
	"math/bits"
	"runtime/metrics"
	"strings"
	"sync"

	"hardtack/abi/linux"
	proto "hardtack/idl/live"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/creds"
	"hardtack/kernel/base/mem"
	"hardtack/kernel/base/uio"
	"hardtack/kernel/base/wait"
	"hardtack/kernel/fd/pipe"
	"hardtack/kernel/fs/vfs"
	"hardtack/kernel/process/proc"
	"hardtack/kernel/tty"
	"hardtack/live"
	"hardtack/nucleus"
)

// visitors serves idl/live.if to the host: programs beside process 1, and files. What the
// host says is checked by the stubs for its form, and here as what a system call says.
type visitors struct {
	root *vfs.FSContext

	mu   sync.Mutex
	last uint32              // guarded by mu
	all  map[uint32]*visitor // guarded by mu; nil: a session that is being made
}

// visitor is one program that the host started.
type visitor struct {
	pid     int32
	process *proc.Spawned
	pair    *tty.Pair    // of its terminal; nil where it has pipes
	out     [2]*vfs.File // our ends; the second is nil with a terminal
	in      *vfs.File    // nil if it has none
	ended   wait.Queue   // its program's end
	traces  bool         // it has no program, but the output of a file of the kernel's

	inMu sync.Mutex // one Input at a time

	mu     sync.Mutex
	done   bool  // the program has ended; guarded by mu
	status int32 // guarded by mu
	closed bool  // guarded by mu
	users  int   // calls that use the files; guarded by mu
}

const (
	flagTerminal = 1 << iota
	flagInput
	flagTrace
	flagReport
)

// serveHost lets the host look in, from when process 1 runs.
func (k *kernel) serveHost(root *vfs.FSContext) {
	if k.live == nil {
		return
	}
	k.lives++
	d := live.NewDriver(fmt.Sprintf("%s-%d", live.Scheme, k.lives), k.live) // a copy of the machine has two
	s, err := proto.Export(context.Background(), "live", d.Options())
	if err != nil {
		warn("the host cannot look in: %v", err)
		return
	}
	v := &visitors{root: root.Clone(), all: map[uint32]*visitor{}}
	k.visitors = v
	go s.Serve(context.Background(), func(*proto.Conn) proto.Handler { return v })
}

// hangUp ends all sessions.
func (v *visitors) hangUp() {
	v.mu.Lock()
	all := v.all
	v.all = map[uint32]*visitor{}
	v.mu.Unlock()
	for _, s := range all {
		if s != nil {
			s.hangUp()
		}
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

// number makes room for a session.
func (v *visitors) number() (uint32, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.all) >= live.Sessions {
		return 0, proto.ErrMany
	}
	for {
		v.last++
		if _, used := v.all[v.last]; !used && v.last != 0 {
			v.all[v.last] = nil
			return v.last, nil
		}
	}
}

func (v *visitors) Start(_ context.Context, in proto.StartCall) (out proto.StartReply, err error) {
	argv := words(in.Args)
	begin := v.start
	if in.Flags&flagTrace != 0 {
		begin = v.startTrace
	} else if in.Flags&flagReport != 0 {
		begin = v.startReport
	} else if len(argv) == 0 || argv[0] == "" {
		return proto.StartReply{Errno: uint32(linux.ENOENT)}, nil
	}
	n, err := v.number()
	if err != nil {
		return out, err
	}
	s, e := begin(&in)
	v.mu.Lock()
	defer v.mu.Unlock()
	if e != 0 {
		delete(v.all, n)
		return proto.StartReply{Errno: uint32(e)}, nil
	}
	v.all[n] = s
	return proto.StartReply{Session: n, PID: uint32(s.pid)}, nil
}

func (v *visitors) start(in *proto.StartCall) (*visitor, linux.Errno) {
	argv := words(in.Args)
	cred := creds.RootCred
	if in.UID != 0 {
		cred = creds.Cred{Bounding: creds.AllCaps}
	}
	cred.UID, cred.EUID, cred.SUID, cred.FSUID = in.UID, in.UID, in.UID, in.UID
	cred.GID, cred.EGID, cred.SGID, cred.FSGID = in.GID, in.GID, in.GID, in.GID
	cred.Groups = in.Groups
	c := caller.NewKernelCtx()
	c.SetCred(&cred)
	s := new(visitor)
	files, e := s.open(c, v.root, in)
	if e != 0 {
		return nil, e
	}
	if s.pair != nil && (in.Rows != 0 || in.Cols != 0) {
		s.pair.SetSize(in.Rows, in.Cols)
	}
	env := words(in.Env)
	own := cred
	p, e := proc.Spawn(&proc.StartArgs{Argv: argv, Env: env, Dir: in.Dir, Cred: &own, FS: v.root.Clone()},
		paths(argv[0], env), files, func(pid int32) {
			s.pid = pid
			if s.pair != nil {
				s.pair.Adopt(pid, pid)
			}
		})
	if p == nil {
		s.hangUp()
		return nil, e
	}
	s.process = p
	go s.collect(p)
	if e != 0 {
		s.hangUp()
		return nil, e
	}
	return s, 0
}

// open makes the program's descriptors 0, 1 and 2, and our ends of them.
func (s *visitor) open(c *caller.Ctx, root *vfs.FSContext, in *proto.StartCall) (files []*vfs.File, e linux.Errno) {
	defer func() {
		if e != 0 {
			for _, f := range files {
				f.Put()
			}
			files = nil
			s.hangUp()
		}
	}()
	if in.Flags&flagTerminal != 0 {
		if s.pair, e = tty.OpenPair(c); e != 0 {
			return nil, e
		}
		s.out[0] = s.pair.Master
		if in.Flags&flagInput != 0 {
			s.in = s.pair.Master
		}
		slave, e := vfs.Open(c, root, nil, s.pair.Path(), linux.O_RDWR|linux.O_NOCTTY, 0)
		if e != 0 {
			return nil, e
		}
		slave.Get()
		slave.Get()
		return []*vfs.File{slave, slave, slave}, 0
	}
	if in.Flags&flagInput != 0 {
		r, w, e := pipe.Pair(c, 0)
		if e != 0 {
			return files, e
		}
		w.UpdateFlags(linux.O_NONBLOCK, linux.O_NONBLOCK)
		s.in, files = w, append(files, r)
	} else {
		null, e := vfs.Open(c, root, nil, "/dev/null", linux.O_RDONLY, 0)
		if e != 0 {
			return files, e
		}
		files = append(files, null)
	}
	for i := range s.out {
		r, w, e := pipe.Pair(c, 0)
		if e != 0 {
			return files, e
		}
		r.UpdateFlags(linux.O_NONBLOCK, linux.O_NONBLOCK)
		s.out[i], files = r, append(files, w)
	}
	return files, 0
}

// collect waits for the program's end.
func (s *visitor) collect(p *proc.Spawned) {
	c := caller.NewKernelCtx()
	status := p.Collect(&c.Sleeper, &c.Entry)
	s.mu.Lock()
	s.done, s.status = true, status
	s.mu.Unlock()
	s.ended.Notify(wait.In)
}

// enter keeps the session's files open until leave. It reports whether they still are.
func (s *visitor) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.users++
	return true
}

func (s *visitor) leave() {
	s.mu.Lock()
	s.users--
	last := s.closed && s.users == 0
	s.mu.Unlock()
	if last {
		s.put()
	}
}

// put closes our ends: a terminal hangs up.
func (s *visitor) put() {
	for _, f := range s.out {
		if f != nil {
			f.Put()
		}
	}
	if s.in != nil && s.pair == nil {
		s.in.Put()
	}
}

// hangUp ends the session: a program that still runs gets SIGHUP.
func (s *visitor) hangUp() {
	s.mu.Lock()
	again, done, idle := s.closed, s.done, s.users == 0
	s.closed = true
	s.mu.Unlock()
	if again {
		return
	}
	if !done && s.process != nil {
		s.process.SignalGroup(linux.SIGHUP)
		s.process.SignalGroup(linux.SIGCONT)
	}
	s.ended.Notify(wait.In) // whoever waits looks again
	if idle {
		s.put()
	}
}

// find is the session of a number, entered.
func (v *visitors) find(n uint32) (*visitor, error) {
	v.mu.Lock()
	s := v.all[n]
	v.mu.Unlock()
	if s == nil || !s.enter() {
		return nil, proto.ErrNoSession
	}
	return s, nil
}

const (
	whatOut = 1 + iota
	whatErr
	whatEnd
)

// chunk is the most that one answer carries.
const chunk = 16000

func (v *visitors) Next(ctx context.Context, in proto.NextCall) (out proto.NextReply, err error) {
	s, err := v.find(in.Session)
	if err != nil {
		return out, err
	}
	defer s.leave()
	c := caller.NewKernelCtx()
	var entries [3]wait.Entry
	stop := context.AfterFunc(ctx, c.Wake)
	defer stop()
	buf := make([]byte, chunk)
	for {
		c.Arm()
		s.ended.Add(&entries[2], &c.Sleeper, wait.In)
		for i, f := range s.out {
			if f != nil {
				f.Ops.Queue(f).Add(&entries[i], &c.Sleeper, wait.In|wait.RdNorm|wait.Hup|wait.Err)
			}
		}
		s.mu.Lock()
		done, status, closed := s.done, s.status, s.closed
		s.mu.Unlock()
		what, n := s.poll(c, buf)
		if what == 0 && !done && !closed && ctx.Err() == nil {
			c.SleepUninterruptible(wait.NoDeadline)
		}
		s.ended.Remove(&entries[2])
		for i, f := range s.out {
			if f != nil {
				f.Ops.Queue(f).Remove(&entries[i])
			}
		}
		switch {
		case what != 0:
			return proto.NextReply{What: what, Data: buf[:n]}, nil
		case closed:
			return out, proto.ErrNoSession
		case done: // all that it wrote has been read
			return proto.NextReply{What: whatEnd, Status: uint32(status)}, nil
		case ctx.Err() != nil:
			return out, ctx.Err()
		}
	}
}

// poll reads what there is.
func (s *visitor) poll(c *caller.Ctx, buf []byte) (what uint8, n int) {
	for i, f := range s.out {
		if f == nil {
			continue
		}
		n, e := f.Ops.Read(c, f, uio.Bytes(buf), 0)
		switch {
		case e == 0 && n > 0:
			return uint8(whatOut + i), n
		case e == 0 && s.traces: // the last traced process has ended, or the report has
			return whatEnd, 0
		}
	}
	return 0, 0
}

func (v *visitors) Input(ctx context.Context, in proto.InputCall) (out proto.InputReply, err error) {
	s, err := v.find(in.Session)
	if err != nil {
		return out, err
	}
	defer s.leave()
	s.inMu.Lock()
	defer s.inMu.Unlock()
	if s.in == nil {
		return proto.InputReply{Errno: uint32(linux.EPIPE)}, nil
	}
	c := caller.NewKernelCtx()
	stop := context.AfterFunc(ctx, c.Wake)
	defer stop()
	if e := s.write(ctx, c, in.Data); e != 0 {
		return proto.InputReply{Errno: uint32(e)}, nil
	}
	if in.End {
		if s.pair != nil {
			s.pair.EndInput()
		} else {
			s.in.Put()
		}
		s.in = nil
	}
	return out, nil
}

// write waits until the program's input has taken all, or the program has ended.
func (s *visitor) write(ctx context.Context, c *caller.Ctx, b []byte) linux.Errno {
	var entry wait.Entry
	for len(b) > 0 {
		c.Arm()
		q := s.in.Ops.Queue(s.in)
		q.Add(&c.Entry, &c.Sleeper, wait.Out|wait.WrNorm|wait.Hup|wait.Err)
		s.ended.Add(&entry, &c.Sleeper, wait.In)
		n, e := s.in.Ops.Write(c, s.in, uio.Bytes(b), 0)
		b = b[max(n, 0):]
		s.mu.Lock()
		over := s.done || s.closed || ctx.Err() != nil
		s.mu.Unlock()
		if len(b) > 0 && (e == 0 || e == linux.EAGAIN) && !over {
			c.SleepUninterruptible(wait.NoDeadline)
		}
		q.Remove(&c.Entry)
		s.ended.Remove(&entry)
		switch {
		case e != 0 && e != linux.EAGAIN:
			return e
		case over && len(b) > 0:
			return linux.EPIPE
		}
	}
	return 0
}

func (v *visitors) Resize(_ context.Context, in proto.ResizeCall) (out proto.ResizeReply, err error) {
	s, err := v.find(in.Session)
	if err != nil {
		return out, err
	}
	defer s.leave()
	if s.pair != nil {
		s.pair.SetSize(in.Rows, in.Cols)
	}
	return out, nil
}

func (v *visitors) Signal(_ context.Context, in proto.SignalCall) (out proto.SignalReply, err error) {
	s, err := v.find(in.Session)
	if err != nil {
		return out, err
	}
	defer s.leave()
	s.mu.Lock()
	done := s.done
	s.mu.Unlock()
	if sig := linux.Signal(in.Number); !done && s.process != nil && sig.Valid() {
		s.process.SendSignal(sig)
	}
	return out, nil
}

func (v *visitors) Close(_ context.Context, in proto.CloseCall) (out proto.CloseReply, err error) {
	v.mu.Lock()
	s := v.all[in.Session]
	if s != nil {
		delete(v.all, in.Session)
	}
	v.mu.Unlock()
	if s == nil {
		return out, proto.ErrNoSession
	}
	s.hangUp()
	return out, nil
}

func (v *visitors) Health(context.Context, proto.HealthCall) (out proto.HealthReply, err error) {
	m := nucleus.MemoryInfo()
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	out = proto.HealthReply{Processors: uint32(bits.OnesCount64(proc.OnlineCPUs())), Memory: uint64(m.Total) * mem.PageSize,
		Unused: uint64(m.Free) * mem.PageSize, Heap: sample[0].Value.Uint64()}
	proc.Each(func(*proc.Process) bool {
		out.Processes++
		return true
	})
	return out, nil
}
