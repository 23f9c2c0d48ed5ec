package interop

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"hardtack/idl/bank"
	"hardtack/msg"
)

// Calls fail, between Go and C either way and between two programs in C, and are
// given up.
func TestErrors(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	peer := program(t, "bank_peer", "bank")

	server := start(t, nil, peer, "serve", "bank-c")
	server.line(t, "ready")
	if got := start(t, nil, peer, "calls", "bank-c").ended(t); got != "checked" {
		t.Error("C and C:", got)
	}
	server.line(t, "ended closed by the peer")

	server = start(t, nil, peer, "serve", "bank-c2")
	server.line(t, "ready")
	c, err := bank.Connect(ctx, "bank-c2", nil)
	if err != nil {
		t.Fatal(err)
	}
	clientOfC(ctx, t, c)
	c.Close()
	server.line(t, "ended closed by the peer")

	s, err := bank.Export(ctx, "bank-go", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	done := make(chan error, 1)
	run, stop := context.WithCancel(ctx)
	var watched atomic.Int32
	begun := make(chan struct{})
	go func() {
		done <- s.Serve(run, func(*bank.Conn) bank.Handler { return goBank{begun: begun, watched: &watched} })
	}()
	tooLarge := "msg: message too large: a length in statement is over its limit"
	if got := start(t, nil, peer, "calls", "bank-go", bank.ErrNoAccount.Text, tooLarge).ended(t); got != "checked" {
		t.Error("C and Go:", got)
	}
	stop()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if n := watched.Load(); n != 50 {
		t.Errorf("the handler saw %d of 50 calls given up", n)
	}
}

// A C client's calls end in time when the server takes none of them in, which hears of
// all that were given up when it does. A call of which it hears that before it has begun
// with it never begins, so clients come until one has begun.
func TestLateCalls(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	s, err := bank.Export(ctx, "bank-late", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	file := program(t, "bank_peer", "bank")
	for begun := int32(0); begun == 0; {
		h := &waitingBank{}
		lateCalls(ctx, t, s, start(t, nil, file, "late", "bank-late"), h)
		begun = h.begun.Load()
		if given := h.given.Load(); begun != given {
			t.Fatalf("%d calls were begun, and %d of them given up", begun, given)
		}
	}
}

// lateCalls serves one client when the time for its calls is over.
func lateCalls(ctx context.Context, t *testing.T, s bank.Server, peer *process, h bank.Handler) {
	t.Helper()
	c, err := s.Accept(ctx)
	if err != nil {
		t.Fatal(err)
	}
	var sent int32
	if _, err := fmt.Fscanf(peer.out, "late %d\n", &sent); err != nil || sent < 10 {
		t.Fatalf("%d calls: %v", sent, err)
	}
	if err := c.Serve(ctx, h); err != nil {
		t.Fatal(err)
	}
	peer.line(t, "answered")
}

// waitingBank answers no Watch.
type waitingBank struct {
	goBank
	begun, given atomic.Int32
}

func (b *waitingBank) Watch(ctx context.Context, in bank.WatchCall) (out bank.WatchReply, err error) {
	b.begun.Add(1)
	<-ctx.Done()
	if errors.Is(context.Cause(ctx), msg.ErrGivenUp) {
		b.given.Add(1)
	}
	return out, ctx.Err()
}

// clientOfC has the C server's calls fail.
func clientOfC(ctx context.Context, t *testing.T, c *bank.Conn) {
	changed := make(chan bank.Changed, 64)
	k := bank.NewClient(c, func(m bank.Msg) { changed <- *m.(*bank.Changed) })
	go k.Run(ctx)
	for range 100 {
		if _, err := k.Withdraw(ctx, bank.WithdrawCall{}); !errors.Is(err, bank.ErrNoAccount) {
			t.Fatal(err)
		}
		var e *msg.CallError
		if _, err := k.Withdraw(ctx, bank.WithdrawCall{Account: 1, Cents: 101}); !errors.Is(err, bank.ErrNotEnough) || !errors.As(err, &e) || e.Text != strings.Repeat("x", msg.MaxErrorText) {
			t.Fatal(err)
		}
		if _, err := k.Open(ctx, bank.OpenCall{}); !errors.As(err, &e) || e.Code != msg.CodeFailed || e.Text != "an account wants an owner" {
			t.Fatal(err)
		}
		if _, err := k.Statement(ctx, bank.StatementCall{Account: 2001}); !errors.Is(err, msg.ErrTooLarge) {
			t.Fatal(err)
		}
		if _, err := k.Receipt(ctx, bank.ReceiptCall{}); !errors.As(err, &e) || e.Code != msg.CodeFailed {
			t.Fatal(err)
		}
		if r, err := k.Withdraw(ctx, bank.WithdrawCall{Account: 1, Cents: 1}); err != nil || r.Left != 99 {
			t.Fatal(r, err)
		}
	}
	for i := range uint64(20) {
		short, cancel := context.WithTimeout(ctx, time.Millisecond)
		_, err := k.Watch(short, bank.WatchCall{Account: 1000 + i})
		cancel()
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		if first, then := <-changed, <-changed; first.Cents != 1000+i || then.Cents != 1 || first.Account != then.Account {
			t.Fatalf("the server has had %v, and given up %v", first, then)
		}
	}
}

type goBank struct {
	bank.Handler
	begun   chan struct{} // for each call to Watch of account 2
	watched *atomic.Int32 // those that were given up
}

func (goBank) Open(_ context.Context, in bank.OpenCall) (out bank.OpenReply, err error) {
	if in.Owner == "" {
		return out, errors.New("an account wants an owner")
	}
	return out, nil
}

func (b goBank) Withdraw(_ context.Context, in bank.WithdrawCall) (out bank.WithdrawReply, err error) {
	if in.Account == 8 {
		<-b.begun
	}
	if in.Account == 0 {
		return out, bank.ErrNoAccount
	}
	return out, nil
}

func (goBank) Statement(_ context.Context, in bank.StatementCall) (out bank.StatementReply, err error) {
	out.Text = strings.Repeat("x", int(in.Account))
	return out, nil
}

func (b goBank) Watch(ctx context.Context, in bank.WatchCall) (out bank.WatchReply, err error) {
	if in.Account == 2 {
		b.begun <- struct{}{}
	}
	<-ctx.Done()
	if in.Account == 2 && errors.Is(context.Cause(ctx), msg.ErrGivenUp) {
		b.watched.Add(1)
	}
	return out, ctx.Err()
}
