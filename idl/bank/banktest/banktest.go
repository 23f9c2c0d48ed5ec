// Package banktest has what calls, messages sent unasked and streams must do on
// every transport. The interface is idl/bank.if.
package banktest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"hardtack/idl/bank"
	"hardtack/msg"
)

// Scenarios are run with the two ends of a new connection each. Those in Files pass
// descriptors, which not every transport can.
var (
	Scenarios = map[string]func(t *testing.T, client, server *bank.Conn){
		"errors": testErrors, "too large": testTooLarge, "given up": testGivenUp, "closing": testClosing,
		"backlog": testBacklog, "unasked": testUnasked, "calling back": testCallingBack, "flooded": testFlooded,
		"all": testAll, "all of a client": testClientAll,
		"stream": testStream, "wrong way": testWrongWay, "direct": testDirect, "channels": testChannels,
	}
	Files   = map[string]func(t *testing.T, client, server *bank.Conn){"files": testFiles}
	NoFiles = map[string]func(t *testing.T, client, server *bank.Conn){"no files": testNoFiles}
)

// patience bounds what takes milliseconds on a machine that is not busy.
const patience = 2 * time.Minute

func contextFor(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// teller is a handler; what a test wants otherwise it sets.
type teller struct {
	conn    *bank.Conn
	watch   func(ctx context.Context, account uint64) error
	receipt func() (*os.File, error)
	cheers  chan uint32
	pages   chan int
	letters chan bank.Letter
}

func newTeller(c *bank.Conn) *teller {
	return &teller{conn: c, cheers: make(chan uint32, 4096), pages: make(chan int, 4096), letters: make(chan bank.Letter, 16),
		watch: func(context.Context, uint64) error { return nil }}
}

func (h *teller) Open(_ context.Context, in bank.OpenCall) (out bank.OpenReply, err error) {
	if in.Owner == "" {
		return out, errors.New("an account wants an owner")
	}
	return bank.OpenReply{Account: uint64(len(in.Owner))}, nil
}

func (h *teller) Withdraw(_ context.Context, in bank.WithdrawCall) (out bank.WithdrawReply, err error) {
	switch {
	case in.Account == 0:
		return out, bank.ErrNoAccount
	case in.Cents > 100:
		return out, fmt.Errorf("account %d: %w", in.Account, bank.ErrNotEnough)
	}
	out.Left = 100 - in.Cents
	return out, nil
}

// Statement answers with a text as long as the number of the account.
func (h *teller) Statement(_ context.Context, in bank.StatementCall) (bank.StatementReply, error) {
	return bank.StatementReply{Text: strings.Repeat("x", int(in.Account))}, nil
}

func (h *teller) Receipt(context.Context, bank.ReceiptCall) (out bank.ReceiptReply, err error) {
	out.Paper.File, err = h.receipt()
	return out, err
}

func (h *teller) Watch(ctx context.Context, in bank.WatchCall) (out bank.WatchReply, err error) {
	return out, h.watch(ctx, in.Account)
}

func (h *teller) Cheer(_ context.Context, m bank.Cheer) { h.cheers <- m.Times }

func (h *teller) Ledger(_ context.Context, m bank.Ledger) { h.pages <- len(m.Page) }

func (h *teller) Letter(_ context.Context, m bank.Letter) { h.letters <- m }

// serve has the server's end served until the client closes its.
func serve(t *testing.T, c *bank.Conn, h bank.Handler) {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- c.Serve(context.Background(), h) }()
	t.Cleanup(func() {
		select {
		case err := <-done:
			if err != nil {
				t.Errorf("Serve: %v", err)
			}
		case <-time.After(patience):
			t.Error("Serve does not end")
		}
	})
}

// client makes a client that is closed before serve's check.
func client(t *testing.T, c *bank.Conn, other func(bank.Msg)) *bank.Client {
	t.Cleanup(func() { c.Close() })
	return bank.NewClient(c, other)
}

// A handler's error is the caller's, with code and text; the connection goes on.
func testErrors(t *testing.T, c, s *bank.Conn) {
	ctx := contextFor(t)
	serve(t, s, newTeller(s))
	k := client(t, c, nil)
	for range 3 {
		_, err := k.Withdraw(ctx, bank.WithdrawCall{Account: 0})
		if !errors.Is(err, bank.ErrNoAccount) || errors.Is(err, bank.ErrNotEnough) {
			t.Fatalf("of no account: %v", err)
		}
		if want := "bank.withdraw: there is no such account"; err.Error() != want {
			t.Errorf("got %q, want %q", err, want)
		}
		_, err = k.Withdraw(ctx, bank.WithdrawCall{Account: 7, Cents: 101})
		var e *msg.CallError
		if !errors.Is(err, bank.ErrNotEnough) || !errors.As(err, &e) {
			t.Fatalf("too much: %v", err)
		}
		if want := "account 7: the account holds less than that"; e.Text != want || e.Code != 2 || e.Name != "not_enough" || e.Interface != "bank" || e.Call != "bank.withdraw" {
			t.Errorf("got %+v", *e)
		}
		if _, err = k.Open(ctx, bank.OpenCall{}); !errors.As(err, &e) || e.Code != msg.CodeFailed || e.Text != "an account wants an owner" || e.Interface != "" {
			t.Errorf("an error of its own: %v", err)
		}
		if r, err := k.Withdraw(ctx, bank.WithdrawCall{Account: 7, Cents: 30}); err != nil || r.Left != 70 {
			t.Fatalf("%v, %v", r, err)
		}
	}
	// Many at a time, each its own answer.
	var work sync.WaitGroup
	for i := range 200 {
		work.Go(func() {
			r, err := k.Withdraw(ctx, bank.WithdrawCall{Account: uint64(i % 2), Cents: uint64(i % 101)})
			if i%2 == 0 && !errors.Is(err, bank.ErrNoAccount) || i%2 == 1 && (err != nil || r.Left != 100-uint64(i%101)) {
				t.Errorf("call %d: %v, %v", i, r, err)
			}
		})
	}
	work.Wait()
}

// A reply over the interface's limit is an error for the caller, and for nobody else.
func testTooLarge(t *testing.T, c, s *bank.Conn) {
	ctx := contextFor(t)
	h := newTeller(s)
	h.watch = func(context.Context, uint64) error { return errors.New("x" + strings.Repeat("é", msg.MaxErrorText)) }
	serve(t, s, h)
	k := client(t, c, nil)
	if r, err := k.Statement(ctx, bank.StatementCall{Account: 2000}); err != nil || len(r.Text) != 2000 {
		t.Fatalf("%d bytes, %v", len(r.Text), err)
	}
	_, err := k.Statement(ctx, bank.StatementCall{Account: 2001})
	var e *msg.CallError
	if !errors.Is(err, msg.ErrTooLarge) || !errors.As(err, &e) || e.Code != msg.CodeTooLarge {
		t.Fatalf("a reply over its limit: %v", err)
	}
	if r, err := k.Statement(ctx, bank.StatementCall{Account: 9}); err != nil || len(r.Text) != 9 {
		t.Fatalf("after it: %d bytes, %v", len(r.Text), err)
	}
	e = nil
	if _, err = k.Open(ctx, bank.OpenCall{Owner: strings.Repeat("o", 65)}); !errors.Is(err, msg.ErrTooLarge) || errors.As(err, &e) {
		t.Errorf("a call over its limit, which is not sent: %v", err)
	}
	// A text of any length travels, cut off at whole characters.
	if _, err = k.Watch(ctx, bank.WatchCall{}); !errors.As(err, &e) || e.Text != "x"+strings.Repeat("é", msg.MaxErrorText/2-1) {
		t.Errorf("of a long text: %v", err)
	}
}

// Whose caller gives up, by a deadline or otherwise, has its context ended; later
// calls go on as if nothing had been.
func testGivenUp(t *testing.T, c, s *bank.Conn) {
	ctx := contextFor(t)
	h := newTeller(s)
	started, ended := make(chan uint64, 64), make(chan error, 64)
	h.watch = func(ctx context.Context, account uint64) error {
		started <- account
		if account == 0 {
			return nil
		}
		<-ctx.Done()
		ended <- context.Cause(ctx)
		return ctx.Err()
	}
	serve(t, s, h)
	k := client(t, c, nil)
	wait := func(what string) error {
		t.Helper()
		select {
		case err := <-ended:
			return err
		case <-ctx.Done():
			t.Fatalf("%s: the handler's context does not end", what)
			return nil
		}
	}
	one, cancel := context.WithCancel(ctx)
	go func() { <-started; cancel() }()
	if _, err := k.Watch(one, bank.WatchCall{Account: 1}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if err := wait("cancelled"); !errors.Is(err, msg.ErrGivenUp) {
		t.Errorf("the handler's context ends by %v", err)
	}
	short, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
	defer cancel()
	if _, err := k.Watch(short, bank.WatchCall{Account: 2}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("by a deadline: %v", err)
	}
	if err := wait("by a deadline"); !errors.Is(err, msg.ErrGivenUp) {
		t.Errorf("the handler's context ends by %v", err)
	}
	<-started
	many, cancel := context.WithCancel(ctx)
	var work sync.WaitGroup
	for range 50 {
		work.Go(func() {
			if _, err := k.Watch(many, bank.WatchCall{Account: 3}); !errors.Is(err, context.Canceled) {
				t.Errorf("one of many: %v", err)
			}
		})
	}
	for range 50 {
		<-started
	}
	cancel()
	work.Wait()
	for range 50 {
		wait("one of many")
	}
	if _, err := k.Watch(ctx, bank.WatchCall{Account: 0}); err != nil {
		t.Errorf("after all: %v", err)
	}
}

// When the client closes, the contexts of its calls end, and Serve with them.
func testClosing(t *testing.T, c, s *bank.Conn) {
	ctx := contextFor(t)
	h := newTeller(s)
	started, ended := make(chan struct{}), make(chan struct{})
	h.watch = func(ctx context.Context, _ uint64) error {
		close(started)
		<-ctx.Done()
		close(ended)
		return ctx.Err()
	}
	serve(t, s, h)
	k := client(t, c, nil)
	go k.Watch(ctx, bank.WatchCall{})
	<-started
	for i := range 10 {
		if err := c.SendCheer(ctx, &bank.Cheer{Times: uint32(i)}); err != nil {
			t.Fatal(err)
		}
	}
	c.Close()
	select {
	case <-ended:
	case <-ctx.Done():
		t.Fatal("a handler's context outlives the connection")
	}
	for i := range 10 { // what was sent before is still handled
		if got := <-h.cheers; got != uint32(i) {
			t.Fatalf("message %d is %d", i, got)
		}
	}
}

// Many more calls than may run at a time are all answered; and where all that run
// are given up, those that wait behind them run.
func testBacklog(t *testing.T, c, s *bank.Conn) {
	ctx := contextFor(t)
	h := newTeller(s)
	running := make(chan struct{}, 8192)
	h.watch = func(ctx context.Context, account uint64) error {
		if account == 0 {
			return nil
		}
		running <- struct{}{}
		<-ctx.Done()
		return ctx.Err()
	}
	serve(t, s, h)
	k := client(t, c, nil)
	hang, cancel := context.WithCancel(ctx)
	var work sync.WaitGroup
	for range 300 {
		work.Go(func() { k.Watch(hang, bank.WatchCall{Account: 1}) })
	}
	for range 256 {
		<-running
	}
	for range 300 {
		work.Go(func() {
			if _, err := k.Watch(ctx, bank.WatchCall{}); err != nil {
				t.Error(err)
			}
		})
	}
	cancel()
	work.Wait()
}

// What the server sends unasked is delivered while no call waits, in order, beside
// the replies to calls.
func testUnasked(t *testing.T, c, s *bank.Conn) {
	ctx := contextFor(t)
	serve(t, s, newTeller(s))
	got := make(chan uint64, 1024)
	k := client(t, c, func(m bank.Msg) {
		if m, ok := m.(*bank.Changed); ok {
			got <- m.Cents
		}
	})
	ran := make(chan error, 1)
	go func() { ran <- k.Run(ctx) }()
	send := func(from, to uint64) {
		for i := from; i < to; i++ {
			if err := s.SendChanged(ctx, &bank.Changed{Account: 1, Cents: i}); err != nil {
				t.Error(err)
			}
		}
	}
	take := func(from, to uint64) {
		t.Helper()
		for i := from; i < to; i++ {
			select {
			case v := <-got:
				if v != i {
					t.Fatalf("message %d is %d", i, v)
				}
			case <-ctx.Done():
				t.Fatalf("message %d does not come", i)
			}
		}
	}
	if _, err := k.Open(ctx, bank.OpenCall{Owner: "me"}); err != nil { // then the server's end is shared
		t.Fatal(err)
	}
	send(0, 500)
	take(0, 500)
	var work sync.WaitGroup
	work.Go(func() { send(500, 1000) })
	for range 500 {
		if r, err := k.Withdraw(ctx, bank.WithdrawCall{Account: 1, Cents: 1}); err != nil || r.Left != 99 {
			t.Fatalf("%v, %v", r, err)
		}
	}
	work.Wait()
	take(500, 1000)
	c.Close()
	if err := <-ran; err != nil {
		t.Errorf("Run: %v", err)
	}
}

// What is delivered may make calls, with and without Run.
func testCallingBack(t *testing.T, c, s *bank.Conn) {
	ctx := contextFor(t)
	h := newTeller(s)
	h.watch = func(ctx context.Context, account uint64) error {
		return h.conn.SendChanged(ctx, &bank.Changed{Account: account})
	}
	serve(t, s, h)
	left := make(chan uint64, 64)
	var k *bank.Client
	k = client(t, c, func(m bank.Msg) {
		r, err := k.Withdraw(ctx, bank.WithdrawCall{Account: 1, Cents: m.(*bank.Changed).Account})
		if err != nil {
			t.Error(err)
		}
		left <- r.Left
	})
	for i := range uint64(40) {
		if i == 20 {
			go k.Run(ctx)
		}
		if _, err := k.Watch(ctx, bank.WatchCall{Account: i}); err != nil {
			t.Fatal(err)
		}
		select {
		case got := <-left:
			if got != 100-i {
				t.Errorf("left %d after %d", got, i)
			}
		case <-ctx.Done():
			t.Fatal("the message was not delivered")
		}
	}
}

// flood has the server's handler send so many messages before it answers a Watch.
func flood(t *testing.T, s *bank.Conn, n uint64) {
	h := newTeller(s)
	h.watch = func(ctx context.Context, account uint64) error {
		for i := range n {
			if err := s.SendChanged(ctx, &bank.Changed{Account: account, Cents: i}); err != nil {
				return err
			}
		}
		return nil
	}
	serve(t, s, h)
}

// Whoever delivers messages may make calls although many more come before the answer.
func testFlooded(t *testing.T, c, s *bank.Conn) {
	const many = 3000
	ctx := contextFor(t)
	flood(t, s, many)
	var k *bank.Client
	var got []bank.Changed
	begun, all := make(chan struct{}), make(chan struct{})
	k = client(t, c, func(m bank.Msg) {
		got = append(got, *m.(*bank.Changed))
		switch len(got) {
		case 1:
			close(begun)
			if _, err := k.Watch(ctx, bank.WatchCall{Account: 1}); err != nil {
				t.Error(err)
			}
		case 2 * many:
			close(all)
		}
	})
	for _, run := range []bool{false, true} {
		if run {
			got, begun, all = nil, make(chan struct{}), make(chan struct{})
			go k.Run(ctx)
		}
		if _, err := k.Watch(ctx, bank.WatchCall{}); err != nil {
			t.Fatal(err)
		}
		for _, c := range []chan struct{}{begun, all} {
			select {
			case <-c:
			case <-ctx.Done():
				t.Fatal("the messages do not come")
			}
		}
		var next [2]uint64 // of each of the two calls
		for _, m := range got {
			if m.Cents != next[m.Account] {
				t.Fatalf("message %d of call %d is %d", next[m.Account], m.Account, m.Cents)
			}
			next[m.Account]++
		}
	}
}

// All of a client is what comes unasked, beside calls of others and its own.
func testClientAll(t *testing.T, c, s *bank.Conn) {
	const many = 1000
	ctx := contextFor(t)
	flood(t, s, many)
	k := client(t, c, nil)
	if _, err := k.Open(ctx, bank.OpenCall{Owner: "me"}); err != nil { // then the server's end is shared
		t.Fatal(err)
	}
	stop := make(chan struct{})
	var work sync.WaitGroup
	for range 2 {
		work.Go(func() {
			for {
				if r, err := k.Withdraw(ctx, bank.WithdrawCall{Account: 1, Cents: 1}); err != nil || r.Left != 99 {
					t.Errorf("%v, %v", r, err)
					return
				}
				select {
				case <-stop:
					return
				default:
				}
			}
		})
	}
	work.Go(func() {
		for n := 0; ; n++ {
			select {
			case <-stop:
				return
			default:
			}
			if err := s.SendChanged(ctx, &bank.Changed{Account: 1}); err != nil {
				t.Error(err)
				return
			}
			time.Sleep(time.Millisecond)
		}
	})
	messages := k.All(ctx)
	for m, err := range messages {
		if err != nil || m.(*bank.Changed).Account != 1 {
			t.Fatalf("%v, %v", m, err)
		}
		break
	}
	n, called := uint64(0), false
	for m, err := range messages {
		if err != nil {
			t.Fatal(err)
		}
		if !called {
			called = true
			if _, err := k.Watch(ctx, bank.WatchCall{Account: 2}); err != nil { // all of its messages come first
				t.Fatal(err)
			}
		}
		if m := m.(*bank.Changed); m.Account == 2 {
			if m.Cents != n {
				t.Fatalf("message %d is %d", n, m.Cents)
			}
			if n++; n == many {
				break
			}
		}
	}
	close(stop)
	work.Wait()
	short, cancel := context.WithTimeout(ctx, 10*time.Millisecond)
	defer cancel()
	last := error(nil)
	for _, last = range k.All(short) {
	}
	if !errors.Is(last, context.DeadlineExceeded) {
		t.Errorf("after its context's end: %v", last)
	}
	c.Close()
	for m, err := range k.All(ctx) {
		if err != nil {
			t.Errorf("after Close: %v, %v", m, err)
		}
	}
}

// All is the messages until the other end closes, or an error.
func testAll(t *testing.T, c, s *bank.Conn) {
	ctx := contextFor(t)
	go func() {
		for i := range uint32(1000) {
			if err := c.SendCheer(ctx, &bank.Cheer{Times: i}); err != nil {
				t.Error(err)
			}
		}
		c.Close()
	}()
	n := uint32(0)
	for m, err := range s.All(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		if got := m.(*bank.Cheer).Times; got != n {
			t.Fatalf("message %d is %d", n, got)
		}
		n++
	}
	if n != 1000 {
		t.Errorf("%d messages", n)
	}
}

// A stream of bytes is what was written, whatever the pieces.
func testStream(t *testing.T, c, s *bank.Conn) {
	ctx := contextFor(t)
	want := make([]byte, 300_001)
	for i := range want {
		want[i] = byte(i * i >> 3)
	}
	go func() {
		w := c.LedgerWriter(ctx)
		for b, n := want, 1; len(b) > 0; n = 3*n + 1 {
			k := min(n, len(b))
			if got, err := w.Write(b[:k]); got != k || err != nil {
				t.Errorf("%d of %d, %v", got, k, err)
			}
			b = b[k:]
			if k == 13 {
				c.SendCheer(ctx, &bank.Cheer{})
			}
		}
		if err := errors.Join(w.Close(), w.Close()); err != nil {
			t.Error(err)
		}
		if _, err := w.Write(want); err != io.ErrClosedPipe {
			t.Errorf("after Close: %v", err)
		}
		c.LedgerWriter(ctx).Write([]byte("half"))
		c.Close()
	}()
	cheers := 0
	got, err := io.ReadAll(s.LedgerReader(ctx, func(bank.Msg) { cheers++ }))
	if err != nil || !bytes.Equal(got, want) || cheers != 1 {
		t.Errorf("%d bytes, %d cheers, %v", len(got), cheers, err)
	}
	got, err = io.ReadAll(s.LedgerReader(ctx, nil))
	if string(got) != "half" || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("of a stream without an end: %q, %v", got, err)
	}
}

// A message that only servers send closes the connection of a client that does.
func testWrongWay(t *testing.T, c, s *bank.Conn) {
	ctx := contextFor(t)
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, newTeller(s)) }()
	if err := c.SendChanged(ctx, &bank.Changed{}); err != nil {
		t.Fatal(err)
	}
	var wrong *msg.PeerError
	if err := <-done; !errors.As(err, &wrong) {
		t.Errorf("Serve: %v", err)
	}
	if _, err := c.Recv(ctx); err == nil {
		t.Error("the connection is open")
	}
}

// Programs that send calls and replies by themselves have errors too.
func testDirect(t *testing.T, c, s *bank.Conn) {
	ctx := contextFor(t)
	reply := make(chan error, 1)
	go func() {
		for {
			m, err := s.Recv(ctx)
			if err != nil {
				reply <- nil
				return
			}
			switch m := m.(type) {
			case *bank.WithdrawCall:
				err = s.FailWithdraw(ctx, m, fmt.Errorf("no: %w", bank.ErrClosed))
			case *bank.StatementCall:
				if err = s.ReplyStatement(ctx, m, &bank.StatementReply{Text: strings.Repeat("x", 3000)}); errors.Is(err, msg.ErrTooLarge) {
					err = nil
				}
			default:
				err = fmt.Errorf("message %d", m.Num())
			}
			if err != nil {
				reply <- err
				return
			}
		}
	}()
	if err := c.SendWithdrawCall(ctx, &bank.WithdrawCall{}); err != nil {
		t.Fatal(err)
	}
	if m, err := c.Recv(ctx); !errors.Is(err, bank.ErrClosed) || err.Error() != "bank: no: closed" {
		t.Errorf("%v, %v", m, err)
	}
	if err := c.SendStatementCall(ctx, &bank.StatementCall{}); err != nil {
		t.Fatal(err)
	}
	if m, err := c.Recv(ctx); !errors.Is(err, msg.ErrTooLarge) || c.Err() != nil {
		t.Errorf("%v, %v", m, err)
	}
	c.Close()
	if err := <-reply; err != nil {
		t.Error(err)
	}
}

// The channel form tells of calls that failed, and goes on.
func testChannels(t *testing.T, c, s *bank.Conn) {
	serve(t, s, newTeller(s))
	t.Cleanup(func() { c.Close() })
	ch := c.Channels()
	ch.Send <- &bank.WithdrawCall{}
	if err := <-ch.Errs; !errors.Is(err, bank.ErrNoAccount) {
		t.Errorf("got %v", err)
	}
	ch.Send <- &bank.WithdrawCall{Account: 1, Cents: 1}
	if m, ok := (<-ch.Recv).(*bank.WithdrawReply); !ok || m.Left != 99 {
		t.Errorf("got %v", m)
	}
}

// A file that arrives is called by its field. One that is the reply's is closed by
// who sent it.
func testFiles(t *testing.T, c, s *bank.Conn) {
	ctx := contextFor(t)
	h := newTeller(s)
	files := make(chan *os.File, 1)
	h.receipt = func() (*os.File, error) {
		r, w, err := os.Pipe()
		if err != nil {
			return nil, err
		}
		if _, err := w.WriteString("paid"); err != nil {
			return nil, err
		}
		files <- r
		return r, w.Close()
	}
	serve(t, s, h)
	k := client(t, c, nil)
	r, err := k.Receipt(ctx, bank.ReceiptCall{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Paper.Close()
	if got := r.Paper.File.Name(); got != "paper" {
		t.Errorf("the file is called %q", got)
	}
	if b, err := io.ReadAll(r.Paper.File); string(b) != "paid" {
		t.Errorf("in it: %q, %v", b, err)
	}
	sent := <-files
	for end := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		if _, err := sent.Stat(); errors.Is(err, os.ErrClosed) {
			break
		}
		if time.Now().After(end) {
			t.Fatal("the server's file stays open")
		}
	}
	a, b, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	defer b.Close()
	m := bank.Letter{Envelope: msg.Cap{File: a}}
	m.Stamps[1].File = b
	if err := c.SendLetter(ctx, &m); err != nil {
		t.Fatal(err)
	}
	got := <-h.letters
	defer got.Envelope.Close()
	defer got.Stamps[1].Close()
	if got.Envelope.File.Name() != "envelope" || got.Stamps[1].File.Name() != "stamps[1]" || got.Stamps[0].Kind() != msg.CapNone {
		t.Errorf("got %q and %q", got.Envelope.File.Name(), got.Stamps[1].File.Name())
	}
}

// Where no descriptor can pass, a reply with one is an error for the caller.
func testNoFiles(t *testing.T, c, s *bank.Conn) {
	h := newTeller(s)
	h.receipt = func() (*os.File, error) { return os.Open(os.DevNull) }
	serve(t, s, h)
	k := client(t, c, nil)
	if _, err := k.Receipt(contextFor(t), bank.ReceiptCall{}); !errors.Is(err, msg.ErrNoCaps) {
		t.Errorf("got %v", err)
	}
}
