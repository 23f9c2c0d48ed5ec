package named

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"hardtack/idl/live"
	proto "hardtack/idl/machine"
	link "hardtack/live"
	"hardtack/msg"
	"hardtack/tool/fault"
	"hardtack/tool/watch"
)

// Names of the sockets.
const (
	controlName = "machine"
	liveName    = "live"
)

// Guest is a machine that runs, as its process has it.
type Guest struct {
	PID    int
	Ready  <-chan struct{}
	Done   <-chan struct{}
	Link   *link.Link
	Signal func(n int)
	Save   func(ctx context.Context, dir string) (paused time.Duration, err error)
}

// Service is what a machine's process does for the commands that name it.
type Service struct {
	m      *Machine
	cancel context.CancelFunc
	over   chan struct{}
	status uint32 // once over is closed
	once   sync.Once
	work   sync.WaitGroup

	mu    sync.Mutex
	guest *Guest       // guarded by mu
	live  *live.Client // guarded by mu
	stop  bool         // somebody asked for the end; guarded by mu
}

// Serve begins to serve a machine of this process.
func (m *Machine) Serve(ctx context.Context) (*Service, error) {
	ctx, cancel := context.WithCancel(ctx)
	s := &Service{m: m, cancel: cancel, over: make(chan struct{})}
	o := &msg.Options{Resolver: msg.Directory(m.Dir)}
	control, err := proto.Export(ctx, controlName, o)
	if err != nil {
		cancel()
		return nil, fmt.Errorf("the machine's socket: %w", err)
	}
	looks, err := live.Export(ctx, liveName, o)
	if err != nil {
		cancel()
		return nil, fmt.Errorf("the machine's socket: %w", err)
	}
	s.work.Go(func() { control.Serve(ctx, func(*proto.Conn) proto.Handler { return s }) })
	s.work.Go(func() {
		looks.ServeConns(ctx, func(ctx context.Context, c *msg.Conn) {
			f := &forward{s: s, own: map[uint32]*live.Client{}}
			live.New(c).Serve(ctx, f)
			f.leave()
		})
	})
	return s, nil
}

// Started says which machine runs now.
func (s *Service) Started(g *Guest) {
	s.mu.Lock()
	stop := s.stop
	s.guest, s.live = g, nil
	s.mu.Unlock()
	if stop {
		g.Signal(9)
	}
}

// Ended says that it does not any more, and reports whether one did.
func (s *Service) Ended() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	was := s.guest != nil
	s.guest, s.live = nil, nil
	return was
}

// Pause waits before a machine starts again. It reports whether it should: nobody has
// asked for the end meanwhile.
func (s *Service) Pause(ctx context.Context, d time.Duration) bool {
	for end := time.Now().Add(d); time.Now().Before(end); {
		if s.Stopped() || ctx.Err() != nil {
			return false
		}
		time.Sleep(min(50*time.Millisecond, time.Until(end)))
	}
	return !s.Stopped()
}

// Stopped reports whether somebody asked the machine to end.
func (s *Service) Stopped() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stop
}

// End tells those who wait how the machine ended, and ends the service. The state must
// have been saved.
func (s *Service) End(status int) {
	s.once.Do(func() {
		s.status = uint32(status)
		close(s.over)
	})
	time.Sleep(lastWords)
	s.cancel()
	s.work.Wait()
}

// lastWords is for the answers that tell of the end.
const lastWords = 20 * time.Millisecond

func (s *Service) running() (*Guest, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.guest == nil {
		return nil, proto.ErrOver
	}
	return s.guest, nil
}

// Signal is the rpc signal.
func (s *Service) Signal(_ context.Context, in proto.SignalCall) (out proto.SignalReply, err error) {
	if in.Number < 1 || in.Number > 64 {
		return out, errors.New("there is no such signal")
	}
	if in.Number == 9 {
		s.mu.Lock()
		s.stop = true
		s.mu.Unlock()
	}
	g, err := s.running()
	if err == nil {
		g.Signal(int(in.Number))
	}
	return out, err
}

// Stop is the rpc stop.
func (s *Service) Stop(ctx context.Context, in proto.StopCall) (out proto.StopReply, err error) {
	s.mu.Lock()
	s.stop = true
	s.mu.Unlock()
	if _, err := s.Signal(ctx, proto.SignalCall{Number: in.Number}); err != nil && !errors.Is(err, proto.ErrOver) {
		return out, err
	}
	patience := time.NewTimer(time.Duration(in.Patience) * time.Millisecond)
	defer patience.Stop()
	for {
		select {
		case <-s.over:
			return out, nil
		case <-ctx.Done():
			return out, ctx.Err()
		case <-patience.C:
			if g, err := s.running(); err == nil {
				g.Signal(9)
			}
		}
	}
}

// Await is the rpc await.
func (s *Service) Await(ctx context.Context, _ proto.AwaitCall) (out proto.AwaitReply, err error) {
	select {
	case <-s.over:
		return proto.AwaitReply{Status: s.status}, nil
	case <-ctx.Done():
		return out, ctx.Err()
	}
}

// Snapshot is the rpc snapshot.
func (s *Service) Snapshot(ctx context.Context, in proto.SnapshotCall) (out proto.SnapshotReply, err error) {
	g, err := s.running()
	if err != nil {
		return out, err
	}
	if !filepath.IsAbs(in.Dir) {
		return out, errors.New("the folder's path is not absolute")
	}
	paused, err := g.Save(ctx, in.Dir)
	if err != nil {
		text := err.Error()
		return proto.SnapshotReply{Status: uint32(fault.Status(err)), Problem: text[:min(len(text), 1000)]}, nil
	}
	return proto.SnapshotReply{Paused: uint64(paused)}, nil
}

// Usage is the rpc usage.
func (s *Service) Usage(context.Context, proto.UsageCall) (out proto.UsageReply, err error) {
	g, err := s.running()
	if err != nil {
		return out, err
	}
	out.PID = uint32(g.PID)
	out.Processor, out.Resident = hostUsage(g.PID)
	if st, err := os.Stat(filepath.Join(s.m.Dir, logFile)); err == nil {
		out.Logged = uint64(st.Size())
	}
	return out, nil
}

// Source is the machine, whichever runs now, for who watches it.
func (s *Service) Source() *watch.Source {
	return &watch.Source{Name: s.m.Name, Live: s.Live, Host: func(ctx context.Context) (uint64, uint64, error) {
		u, err := s.Usage(ctx, proto.UsageCall{})
		return u.Processor, u.Resident, err
	}}
}

// hostUsage is a process's time on processors in nanoseconds, and its memory in bytes.
func hostUsage(pid int) (processor, resident uint64) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, 0
	}
	f := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	if len(f) < 22 {
		return 0, 0
	}
	const tick = 10_000_000 // USER_HZ is 100 on every machine that Go runs on
	user, _ := strconv.ParseUint(string(f[11]), 10, 64)
	system, _ := strconv.ParseUint(string(f[12]), 10, 64)
	pages, _ := strconv.ParseUint(string(f[21]), 10, 64)
	return (user + system) * tick, pages * uint64(os.Getpagesize())
}

// Live is the kernel of the machine that runs. The first call joins it.
func (s *Service) Live(ctx context.Context) (*live.Client, error) {
	g, err := s.running()
	if err != nil {
		return nil, err
	}
	select {
	case <-g.Ready:
	case <-g.Done:
		return nil, proto.ErrOver
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.guest != g {
		return nil, proto.ErrOver
	}
	if s.live != nil {
		return s.live, nil
	}
	// Each machine of this process has a driver of its own.
	d := link.NewDriver(fmt.Sprintf("%s-%d", link.Scheme, g.PID), g.Link)
	ctx, cancel := context.WithTimeout(ctx, joinTime)
	defer cancel()
	c, err := msg.Dial(ctx, d.Addr(), live.Interface, d.Options())
	if err != nil {
		return nil, fmt.Errorf("the machine's kernel does not let look in: %w", err)
	}
	s.live = live.NewClient(live.New(c), nil)
	return s.live, nil
}

// joinTime is how long the kernel may take to answer the first call.
const joinTime = 30 * time.Second

// Status of a machine's end that docker would give.
func Status(code int, err error) int {
	if err != nil {
		return fault.Status(err)
	}
	return code
}
