package conn

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"hardtack/msg"
	_ "hardtack/msg/ump"
	"hardtack/task"
)

var iface = &msg.Interface{
	Name:        "taskconn",
	Fingerprint: msg.Fingerprint{4, 2},
	Messages:    []msg.Message{{Name: "n", Min: 8, Max: 8}, {Name: "bytes", Min: 0, Max: 4096}},
}

const (
	numN = 1 + iota
	numBytes
)

// ends makes a connection that can be bound again: it has an address.
func ends(t testing.TB) (client, server *msg.Conn) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	o := &msg.Options{Resolver: msg.Directory(t.TempDir())}
	s, err := msg.Export(ctx, "echo", iface, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	type got struct {
		c   *msg.Conn
		err error
	}
	accepted := make(chan got)
	go func() {
		c, err := s.Accept(ctx)
		accepted <- got{c, err}
	}()
	client, err = msg.Connect(ctx, "echo", iface, o)
	if err != nil {
		t.Fatal(err)
	}
	a := <-accepted
	if a.err != nil {
		t.Fatal(a.err)
	}
	t.Cleanup(func() { client.Close(); a.c.Close() })
	return client, a.c
}

func newRuntime(t testing.TB, n int) *task.Runtime {
	rt, err := task.New(task.WithWorkers(n))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rt.Close() })
	return rt
}

func fib(c task.Ctx, n int) int {
	if n < 2 {
		return n
	}
	x := task.Spawn(c, fib, n-1)
	y := fib(c, n-2)
	return x.Sync(c) + y
}

// Numbers go from tasks to a peer without tasks and back while cores come and go
// at random: all arrive once and in order, and the connection moves with the cores.
func TestCoreStorms(t *testing.T)           { storms(t, 1000) }
func TestCoreStormsWithRebind(t *testing.T) { storms(t, 1000, Rebind()) }

func storms(t *testing.T, count int, options ...Option) {
	switch {
	case os.Getenv("HARDTACK_STRESS") != "":
		count *= 100
	case testing.Short():
		count /= 10
	}
	near, far := ends(t)
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	const last = ^uint64(0)
	peer := make(chan error, 1)
	go func() { peer <- echoUntil(ctx, far, last) }()
	rt := newRuntime(t, 3)
	var over atomic.Bool
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %#x", seed)
	go func() {
		rng := rand.New(rand.NewPCG(seed, 0))
		for range count { // a storm: some changes in quick succession
			for range 1 + rng.IntN(4) {
				rt.SetWorkers(1 + rng.IntN(5))
			}
			time.Sleep(time.Duration(rng.IntN(400)) * time.Microsecond)
		}
		over.Store(true)
	}()
	var sent uint64
	_, err := task.RunOn(rt, ctx, func(c task.Ctx) int {
		x := New(c, near, options...)
		send := task.Spawn(c, func(c task.Ctx, x *Conn) error {
			var b [8]byte
			for ; ; sent++ {
				v := sent
				if over.Load() {
					v = last
				}
				binary.LittleEndian.PutUint64(b[:], v)
				if err := x.Send(c, ctx, numN, b[:]); err != nil {
					return fmt.Errorf("send %d: %w", sent, err)
				}
				if v == last {
					return nil
				}
				fib(c, 6)
			}
		}, x)
		recv := task.Spawn(c, func(c task.Ctx, x *Conn) error {
			var buf []byte
			for i := uint64(0); ; i++ {
				num, body, err := x.Receive(c, ctx, buf)
				if err != nil {
					cancel() // the sender waits for us
					return fmt.Errorf("receive %d: %w", i, err)
				}
				v := binary.LittleEndian.Uint64(body)
				if v == last {
					return nil
				}
				if num != numN || v != i {
					cancel()
					return fmt.Errorf("message %d is %d", i, v)
				}
				fib(c, 6)
			}
		}, x)
		// The two wait for each other: neither may run in the other's join.
		task.Block(c, func() {})
		if err := send.Sync(c); err != nil {
			t.Error(err)
		}
		if err := recv.Sync(c); err != nil {
			t.Error(err)
		}
		for x.wanted.Load() > 0 { // a bind that is under way
			task.Block(c, func() { time.Sleep(time.Millisecond) })
		}
		moves, failed := x.Moves()
		t.Logf("%d messages, %d moves of the connection, %d binds failed", sent, moves, failed)
		if moves == 0 && !testing.Short() {
			t.Error("the connection has not moved")
		}
		return 0
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := <-peer; err != nil {
		t.Error(err)
	}
}

// echoUntil sends back what it gets, up to and with the number last.
func echoUntil(ctx context.Context, c *msg.Conn, last uint64) error {
	for {
		_, body, err := c.Next(ctx)
		if err != nil {
			return err
		}
		v := binary.LittleEndian.Uint64(body)
		slot, err := c.Begin(ctx)
		if err != nil {
			return err
		}
		binary.LittleEndian.PutUint64(slot[:], v)
		c.Commit(numN, 8)
		if v == last {
			return nil
		}
	}
}

// A connection is bound again when its core goes, between two messages.
func TestRebind(t *testing.T) {
	near, far := ends(t)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	rt := newRuntime(t, 2)
	_, err := task.RunOn(rt, ctx, func(c task.Ctx) int {
		x := New(c, near, Rebind())
		for i := range 20 {
			before, _ := x.Moves()
			if err := rt.SetWorkers(1 + i%2); err != nil {
				t.Error(err)
			}
			fib(c, 10)
			if after, _ := x.Moves(); after > before {
				for x.wanted.Load() > 0 {
					time.Sleep(time.Millisecond)
				}
			}
			var b [8]byte
			binary.LittleEndian.PutUint64(b[:], uint64(i))
			if err := x.Send(c, ctx, numN, b[:]); err != nil {
				t.Error(err)
				return 0
			}
			task.Block(c, func() {
				_, body, err := far.Next(ctx)
				if err != nil || binary.LittleEndian.Uint64(body) != uint64(i) {
					t.Errorf("message %d: %v %v", i, body, err)
				}
			})
		}
		moves, failed := x.Moves()
		t.Logf("%d moves, %d binds failed", moves, failed)
		return 0
	})
	if err != nil {
		t.Error(err)
	}
}

// Several tasks send and receive on one connection.
func TestShared(t *testing.T) {
	near, far := ends(t)
	a, b := newRuntime(t, 3), newRuntime(t, 2)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	const tasks, each = 5, 200
	var sum, count atomic.Int64
	done := make(chan error)
	go func() {
		_, err := task.RunOn(b, ctx, func(c task.Ctx) int {
			x := New(c, far)
			g := task.NewGroup[int](c, nil)
			for range tasks {
				task.SpawnIn(c, g, func(c task.Ctx, _ int) int {
					for range each {
						num, body, err := x.Receive(c, ctx, nil)
						if err != nil {
							t.Error(err)
							return 0
						}
						if num == numBytes && len(body) != 300 {
							t.Errorf("%d bytes", len(body))
						}
						sum.Add(int64(binary.LittleEndian.Uint64(body)))
						count.Add(1)
					}
					return 0
				}, 0)
			}
			g.Sync(c)
			return 0
		})
		done <- err
	}()
	_, err := task.RunOn(a, ctx, func(c task.Ctx) int {
		x := New(c, near)
		g := task.NewGroup[int](c, nil)
		for k := range tasks {
			task.SpawnIn(c, g, func(c task.Ctx, k int) int {
				for i := range each {
					num, b := uint16(numN), make([]byte, 8)
					if i%10 == 3 {
						num, b = numBytes, make([]byte, 300)
					}
					binary.LittleEndian.PutUint64(b, uint64(k*each+i))
					if err := x.Send(c, ctx, num, b); err != nil {
						t.Error(err)
						return 0
					}
				}
				return 0
			}, k)
		}
		g.Sync(c)
		return 0
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	const n = tasks * each
	if count.Load() != n || sum.Load() != n*(n-1)/2 {
		t.Errorf("%d messages, sum %d", count.Load(), sum.Load())
	}
}

// What is wrong with a connection comes out of Receive and Send.
func TestClosed(t *testing.T) {
	near, far := ends(t)
	rt := newRuntime(t, 2)
	_, err := task.RunOn(rt, context.Background(), func(c task.Ctx) int {
		x := New(c, near)
		short, cancel := context.WithTimeout(context.Background(), 5*time.Millisecond)
		defer cancel()
		if _, _, err := x.Receive(c, short, nil); err == nil {
			t.Error("a message from nowhere")
		}
		far.Close()
		if _, _, err := x.Receive(c, context.Background(), nil); err == nil {
			t.Error("a message from a closed peer")
		}
		x.Close()
		if err := x.Send(c, context.Background(), numN, make([]byte, 8)); err == nil {
			t.Error("sent on a closed connection")
		}
		return 0
	})
	if err != nil {
		t.Fatal(err)
	}
}
