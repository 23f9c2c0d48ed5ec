package msg

import (
	"context"
	"encoding/binary"
	"errors"
	"strings"
	"testing"
	"time"
)

// answerAll is what serves TestIface: each call fails.
func answerAll(_ context.Context, num uint16, _ []byte) (func(context.Context) error, error) {
	if num != numAsk {
		return nil, nil
	}
	return func(context.Context) error { return errors.New("no answer") }, nil
}

// ask makes a call and returns what Wait does.
func ask(ctx context.Context, k *Caller) error {
	p := k.Start(numAnswer)
	defer p.Done()
	b, err := k.c.BeginLong(ctx, CallBytes)
	if err != nil {
		return err
	}
	binary.LittleEndian.PutUint32(b, p.ID())
	if err := k.c.CommitLong(ctx, numAsk); err != nil {
		return err
	}
	_, err = p.Wait(ctx)
	return err
}

// Towards a peer that was built before calls could fail: nothing is sent that it
// does not know, and its caller is not left waiting.
func TestOldPeer(t *testing.T) {
	ctx := ctxFor(t)
	a, b := pairFor(t, inprocOnly)
	a.calls, b.calls = false, false
	done := make(chan error, 1)
	go func() { done <- b.ServeCalls(ctx, answerAll) }()
	if err := ask(ctx, NewCaller(a, nil)); !errors.Is(err, ErrPeerClosed) && !errors.Is(err, ErrPeerGone) {
		t.Errorf("the caller gets %v", err)
	}
	if err := <-done; !errors.Is(err, ErrOldPeer) || !strings.Contains(err.Error(), "no answer") {
		t.Errorf("the server gets %v", err)
	}
	// A call that is given up is not told of.
	a, b = pairFor(t, inprocOnly)
	a.calls, b.calls = false, false
	short, cancel := context.WithTimeout(ctx, time.Millisecond)
	defer cancel()
	if err := ask(short, NewCaller(a, nil)); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	if err := sendShort(ctx, a, 7); err != nil {
		t.Fatal(err)
	}
	for _, want := range []uint16{numAsk, numShort} {
		if num, _, err := b.Next(ctx); num != want || err != nil {
			t.Errorf("message %d, not %d; %v", num, want, err)
		}
	}
}

// A peer that greets in another version is told which one this is; and what a server
// of another version answers is an error that says both.
func TestVersions(t *testing.T) {
	ctx := ctxFor(t)
	s, err := Export(ctx, "versions", TestIface, &Options{Schemes: []string{"inproc"}, Resolver: Directory(t.TempDir())})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	d, err := driver("inproc")
	if err != nil {
		t.Fatal(err)
	}
	link, err := d.Dial(ctx, s.Addrs()[0])
	if err != nil {
		t.Fatal(err)
	}
	defer link.Close()
	hello := newGreeting(frameHello, TestIface, token{}, link)
	frame := hello.frame()
	frame[1] = 9
	if err := link.Send(ctx, frame, nil); err != nil {
		t.Fatal(err)
	}
	answer, _, err := link.Recv(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if answer[0] != frameRefuse || answer[1] != 9 || answer[3] != refuseVersion || answer[20] != ProtocolVersion {
		t.Errorf("the server answers % x", answer)
	}
	var other *VersionError
	if _, err := parseGreeting(frame); !errors.As(err, &other) || *other != (VersionError{ProtocolVersion, 9}) {
		t.Errorf("parsed: %v", err)
	}
	// The client's side: it takes what this version understands of the refusal.
	x, y := inprocPair("", 1)
	defer x.Close()
	defer y.Close()
	go func() {
		y.Recv(ctx)
		refusal := newGreeting(frameRefuse, TestIface, token{9}, y)
		refusal.reason = refuseVersion
		y.Send(ctx, refusal.frame(), nil)
	}()
	if _, err := greet(ctx, x, &hello); !errors.As(err, &other) || *other != (VersionError{ProtocolVersion, 9}) {
		t.Errorf("the client gets %v", err)
	}
}

// Error replies and calls given up that are none close the connection.
func TestWrongErrorReplies(t *testing.T) {
	for name, body := range map[string][]byte{
		"short":          make([]byte, failedBytes-1),
		"long":           make([]byte, failedBytes+MaxErrorText+1),
		"another length": append(make([]byte, failedBytes), "text"...),
	} {
		ctx := ctxFor(t)
		a, b := pairFor(t, inprocOnly)
		buf, err := a.BeginLong(ctx, len(body))
		if err != nil {
			t.Fatal(err)
		}
		copy(buf, body)
		if err := a.CommitLong(ctx, numFailed); err != nil {
			t.Fatal(err)
		}
		var wrong *PeerError
		if _, _, err := b.Next(ctx); !errors.As(err, &wrong) || b.Err() == nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	ctx := ctxFor(t)
	a, b := pairFor(t, inprocOnly)
	done := make(chan error, 1)
	go func() {
		done <- b.ServeCalls(ctx, func(context.Context, uint16, []byte) (func(context.Context) error, error) {
			return func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }, nil
		})
	}()
	for range 2 { // the same number twice
		buf, err := a.BeginLong(ctx, CallBytes)
		if err != nil {
			t.Fatal(err)
		}
		binary.LittleEndian.PutUint32(buf, 5)
		if err := a.CommitLong(ctx, numAsk); err != nil {
			t.Fatal(err)
		}
	}
	var wrong *PeerError
	if err := <-done; !errors.As(err, &wrong) {
		t.Errorf("a number twice: %v", err)
	}
}

// A moved end still knows what its peer does.
func TestMovedCalls(t *testing.T) {
	for _, calls := range []bool{false, true} {
		e := &End{name: "test", scheme: "unix", state: endState{calls: calls}}
		got, err := unmarshalEnd(e.marshal(), nil)
		if err != nil || got.state.calls != calls {
			t.Errorf("%v becomes %v, %v", calls, got, err)
		}
	}
}

// A handler that returns a nil *CallError as its error by mistake fails its call, not
// its program.
func TestNilCallError(t *testing.T) {
	ctx := ctxFor(t)
	a, b := pairFor(t, inprocOnly)
	var mistake *CallError
	if err := b.ReplyError(ctx, 7, mistake); err != nil {
		t.Fatal(err)
	}
	var got *CallError
	if _, _, err := a.Next(ctx); !errors.As(err, &got) || got.Code != CodeFailed || got.ID != 7 || errors.Is(mistake, ErrTooLarge) {
		t.Fatal(err)
	}
}
