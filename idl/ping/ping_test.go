package ping

import (
	"context"
	"encoding/binary"
	"testing"

	"hardtack/msg"
)

func pair(t testing.TB) (a, b *Conn) {
	t.Helper()
	a, b, err := Pair(context.Background(), &msg.Options{Schemes: []string{"inproc"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close(); b.Close() })
	return a, b
}

// The direct form of the paper's ping and pong allocates nothing.
func TestDirectAllocs(t *testing.T) {
	ctx := context.Background()
	a, b := pair(t)
	n := testing.AllocsPerRun(2000, func() {
		if err := a.Send(ctx, &Ping{ClientID: 1, MsgID: 2}); err != nil {
			t.Fatal(err)
		}
		m, err := b.Recv(ctx)
		if err != nil {
			t.Fatal(err)
		}
		switch m := m.(type) {
		case *Ping:
			if m.ClientID != 1 || m.MsgID != 2 {
				t.Fatal(*m)
			}
		case *Pong:
			t.Fatal(*m)
		}
	})
	if n != 0 {
		t.Errorf("%v allocations a message", n)
	}
}

// One goroutine sends and receives, so that what is measured is the code, not
// how cores wait for each other: first what a program would write by hand on
// package msg, then what is generated.
func BenchmarkByHand(b *testing.B) {
	ctx := context.Background()
	x, y := pair(b)
	var sum uint32
	b.ReportAllocs()
	for b.Loop() {
		slot, err := x.Begin(ctx)
		if err != nil {
			b.Fatal(err)
		}
		binary.LittleEndian.PutUint32(slot[0:], 1)
		binary.LittleEndian.PutUint32(slot[4:], 2)
		x.Commit(1, 8)
		num, body, err := y.Next(ctx)
		if err != nil || num != 1 {
			b.Fatal(err)
		}
		sum += binary.LittleEndian.Uint32(body) + binary.LittleEndian.Uint32(body[4:])
	}
	_ = sum
}

func BenchmarkDirect(b *testing.B) {
	ctx := context.Background()
	x, y := pair(b)
	var sum uint32
	b.ReportAllocs()
	for b.Loop() {
		if err := x.Send(ctx, &Ping{ClientID: 1, MsgID: 2}); err != nil {
			b.Fatal(err)
		}
		m, err := y.Recv(ctx)
		if err != nil {
			b.Fatal(err)
		}
		switch m := m.(type) {
		case *Ping:
			sum += m.ClientID + m.MsgID
		case *Pong:
			b.Fatal(*m)
		}
	}
	_ = sum
}
