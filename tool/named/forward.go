package named

import (
	"context"
	"sync"
	"time"

	"hardtack/idl/live"
)

// forward passes one client's calls on to the kernel. The sessions that a client leaves
// behind are ended.
type forward struct {
	s *Service

	mu   sync.Mutex
	gone bool                    // guarded by mu
	own  map[uint32]*live.Client // guarded by mu
}

// pass makes a call of the kernel.
func pass[In, Out any](ctx context.Context, s *Service, in In, call func(*live.Client, context.Context, In) (Out, error)) (out Out, err error) {
	c, err := s.Live(ctx)
	if err != nil {
		return out, err
	}
	return call(c, ctx, in)
}

// mine is the kernel that one of the client's own sessions is in.
func (f *forward) mine(session uint32) (*live.Client, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if c := f.own[session]; c != nil {
		return c, nil
	}
	return nil, live.ErrNoSession
}

// Start notes the session. A client that gave up meanwhile leaves none behind.
func (f *forward) Start(ctx context.Context, in live.StartCall) (live.StartReply, error) {
	c, err := f.s.Live(ctx)
	if err != nil {
		return live.StartReply{}, err
	}
	// Not with the client's ctx: a call that is given up might have made a session.
	limit, cancel := context.WithTimeout(context.Background(), startTime)
	defer cancel()
	out, err := c.Start(limit, in)
	if err != nil || out.Errno != 0 {
		return out, err
	}
	f.mu.Lock()
	gone := f.gone
	if !gone {
		f.own[out.Session] = c
	}
	f.mu.Unlock()
	if gone {
		closeSession(c, out.Session)
	}
	return out, nil
}

// startTime is how long the kernel may take to load a program.
const startTime = 10 * time.Minute

func closeSession(c *live.Client, session uint32) {
	ctx, cancel := context.WithTimeout(context.Background(), joinTime)
	defer cancel()
	_, _ = c.Close(ctx, live.CloseCall{Session: session}) // a machine that is gone has none
}

// leave ends what the client has left.
func (f *forward) leave() {
	f.mu.Lock()
	f.gone = true
	own := f.own
	f.own = nil
	f.mu.Unlock()
	for n, c := range own {
		closeSession(c, n)
	}
}

func (f *forward) Close(ctx context.Context, in live.CloseCall) (out live.CloseReply, err error) {
	c, err := f.mine(in.Session)
	if err != nil {
		return out, err
	}
	f.mu.Lock()
	delete(f.own, in.Session)
	f.mu.Unlock()
	closeSession(c, in.Session)
	return out, nil
}

func (f *forward) Next(ctx context.Context, in live.NextCall) (out live.NextReply, err error) {
	c, err := f.mine(in.Session)
	if err != nil {
		return out, err
	}
	return c.Next(ctx, in)
}

func (f *forward) Input(ctx context.Context, in live.InputCall) (out live.InputReply, err error) {
	c, err := f.mine(in.Session)
	if err != nil {
		return out, err
	}
	return c.Input(ctx, in)
}

func (f *forward) Resize(ctx context.Context, in live.ResizeCall) (out live.ResizeReply, err error) {
	c, err := f.mine(in.Session)
	if err != nil {
		return out, err
	}
	return c.Resize(ctx, in)
}

func (f *forward) Signal(ctx context.Context, in live.SignalCall) (out live.SignalReply, err error) {
	c, err := f.mine(in.Session)
	if err != nil {
		return out, err
	}
	return c.Signal(ctx, in)
}

func (f *forward) Stat(ctx context.Context, in live.StatCall) (live.StatReply, error) {
	return pass(ctx, f.s, in, (*live.Client).Stat)
}

func (f *forward) List(ctx context.Context, in live.ListCall) (live.ListReply, error) {
	return pass(ctx, f.s, in, (*live.Client).List)
}

func (f *forward) Read(ctx context.Context, in live.ReadCall) (live.ReadReply, error) {
	return pass(ctx, f.s, in, (*live.Client).Read)
}

func (f *forward) Write(ctx context.Context, in live.WriteCall) (live.WriteReply, error) {
	return pass(ctx, f.s, in, (*live.Client).Write)
}

func (f *forward) Make(ctx context.Context, in live.MakeCall) (live.MakeReply, error) {
	return pass(ctx, f.s, in, (*live.Client).Make)
}

func (f *forward) Health(ctx context.Context, in live.HealthCall) (live.HealthReply, error) {
	return pass(ctx, f.s, in, (*live.Client).Health)
}
