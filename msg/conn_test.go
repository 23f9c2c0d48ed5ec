package msg

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"time"
)

// For the tests of package msg_test.
const (
	NumShort  = numShort
	NumLong   = numLong
	NumPass   = numPass
	NumAsk    = numAsk
	NumAnswer = numAnswer
)

// TestIface has one short message and one of any length, each with or without
// caps.
var TestIface = &Interface{
	Name:        "test",
	Fingerprint: Fingerprint{1, 2, 3},
	Messages: []Message{
		{Name: "short", Min: 8, Max: 8},
		{Name: "long", Min: 0, Max: MaxBody},
		{Name: "pass", Min: 1, Max: 1, Caps: 1},
		{Name: "ask", Kind: Call, Min: 4, Max: 4096},
		{Name: "answer", Kind: Reply, Min: 4, Max: 4096},
	},
}

const (
	numShort = 1 + iota
	numLong
	numPass
	numAsk
	numAnswer
)

func ctxFor(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func pairFor(t testing.TB, o *Options) (a, b *Conn) {
	t.Helper()
	a, b, err := Pair(ctxFor(t), TestIface, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close(); b.Close() })
	return a, b
}

var inprocOnly = &Options{Schemes: []string{"inproc"}}

// SendShort sends a message of 8 bytes.
func SendShort(ctx context.Context, c *Conn, v uint64) error { return sendShort(ctx, c, v) }

func sendShort(ctx context.Context, c *Conn, v uint64) error {
	slot, err := c.Begin(ctx)
	if err != nil {
		return err
	}
	binary.LittleEndian.PutUint64(slot[:], v)
	c.Commit(numShort, 8)
	return nil
}

// RecvShort receives one.
func RecvShort(ctx context.Context, c *Conn) (uint64, error) { return recvShort(ctx, c) }

func recvShort(ctx context.Context, c *Conn) (uint64, error) {
	num, body, err := c.Next(ctx)
	if err != nil {
		return 0, err
	}
	if num != numShort {
		return 0, fmt.Errorf("message %d", num)
	}
	return binary.LittleEndian.Uint64(body), nil
}

func sendLong(ctx context.Context, c *Conn, n int, seed byte) error {
	b, err := c.BeginLong(ctx, n)
	if err != nil {
		return err
	}
	fill(b, seed)
	return c.CommitLong(ctx, numLong)
}

func fill(b []byte, seed byte) {
	for i := range b {
		b[i] = seed + byte(i) + byte(i>>8)
	}
}

func checkFill(b []byte, seed byte) error {
	for i := range b {
		if b[i] != seed+byte(i)+byte(i>>8) {
			return fmt.Errorf("byte %d of %d is %d", i, len(b), b[i])
		}
	}
	return nil
}

func testShort(t *testing.T, a, b *Conn) {
	ctx := ctxFor(t)
	const n = 20000
	errs := make(chan error, 1)
	go func() {
		for i := range uint64(n) {
			if err := sendShort(ctx, a, i); err != nil {
				errs <- err
				return
			}
		}
		errs <- nil
	}()
	for i := range uint64(n) {
		v, err := recvShort(ctx, b)
		if err != nil || v != i {
			t.Fatalf("message %d: %d, %v", i, v, err)
		}
	}
	if err := <-errs; err != nil {
		t.Fatal(err)
	}
	for i := range uint64(2000) { // and back and forth
		go func() { errs <- sendShort(ctx, a, i) }()
		if v, err := recvShort(ctx, b); err != nil || v != i {
			t.Fatal(v, err)
		}
		if err := <-errs; err != nil {
			t.Fatal(err)
		}
		if err := sendShort(ctx, b, i); err != nil {
			t.Fatal(err)
		}
		if v, err := recvShort(ctx, a); err != nil || v != i {
			t.Fatal(v, err)
		}
	}
}

func testLong(t *testing.T, a, b *Conn) {
	ctx := ctxFor(t)
	sizes := []int{0, 1, 55, 56, 57, 112, 113, 400, 511, 512, 513, 1024, 65536, 65536, 65536, 65536, 65536, 300000, 70, 1 << 20, 3, 512, MaxBody}
	errs := make(chan error, 1)
	go func() {
		for r := range 3 {
			for i, n := range sizes {
				if err := sendLong(ctx, a, n, byte(i+r)); err != nil {
					errs <- fmt.Errorf("%d bytes: %w", n, err)
					return
				}
			}
		}
		errs <- nil
	}()
	for r := range 3 {
		for i, n := range sizes {
			num, body, err := b.Next(ctx)
			if err != nil || num != numLong || len(body) != n {
				t.Fatalf("%d bytes: message %d of %d bytes, %v", n, num, len(body), err)
			}
			if err := checkFill(body, byte(i+r)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := <-errs; err != nil {
		t.Fatal(err)
	}
	if _, err := a.BeginLong(ctx, MaxBody+1); !errors.Is(err, ErrTooLarge) {
		t.Fatal(err)
	}
}

func testClose(t *testing.T, a, b *Conn) {
	ctx := ctxFor(t)
	for i := range uint64(30) {
		if err := sendShort(ctx, a, i); err != nil {
			t.Fatal(err)
		}
	}
	a.Close()
	for i := range uint64(30) {
		if v, err := recvShort(ctx, b); err != nil || v != i {
			t.Fatalf("message %d: %d, %v", i, v, err)
		}
	}
	if _, err := recvShort(ctx, b); !errors.Is(err, ErrPeerClosed) {
		t.Fatal(err)
	}
	if err := sendShort(ctx, b, 1); !errors.Is(err, ErrPeerClosed) {
		t.Fatal(err)
	}
	if err := sendShort(ctx, a, 1); !errors.Is(err, ErrClosed) {
		t.Fatal(err)
	}
}

// Suite is what every transport must pass; make makes a connection.
var Suite = map[string]func(*testing.T, *Conn, *Conn){"short": testShort, "long": testLong, "close": testClose}

func TestInProcess(t *testing.T) {
	for name, f := range Suite {
		t.Run(name, func(t *testing.T) {
			a, b := pairFor(t, inprocOnly)
			f(t, a, b)
		})
	}
}

// MaxBacklog is how many connections wait for Accept.
const MaxBacklog = maxBacklog

// Collect has the collector return the memory of connections that nobody uses.
func Collect() { runtime.GC() }
