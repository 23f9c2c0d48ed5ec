package msg

import (
	"context"
	"errors"
	"testing"

	"hardtack/msg/internal/ring"
)

// A peer that closes while it binds again, and before it has left its old link,
// says so there: all that it sent is in the old ring, whether the receiving owner
// has moved to the new one or not.
func TestCloseInBind(t *testing.T) {
	for _, moved := range []bool{false, true} {
		for _, first := range []string{"bye", "end"} {
			t.Run(map[bool]string{false: "not moved, ", true: "moved, "}[moved]+first, func(t *testing.T) {
				testCloseInBind(t, moved, first == "end")
			})
		}
	}
}

// testCloseInBind has the end of the new link seen before the goodbye on the
// old one, or after.
func testCloseInBind(t *testing.T, moved, endFirst bool) {
	ctx := ctxFor(t)
	a, b := pairFor(t, inprocOnly)
	b.mu.Lock()
	b.dialled = false
	b.mu.Unlock()
	for v := range uint64(2) {
		if err := sendShort(ctx, a, v); err != nil {
			t.Fatal(err)
		}
	}
	if v, err := recvShort(ctx, b); err != nil || v != 0 {
		t.Fatal(v, err)
	}
	want := make([]byte, 2*SlotBytes)
	fill(want, 3)
	tx, half := a.send.tx, func(i int, f uint8) {
		copy(a.send.tx.Body()[:], want[i*SlotBytes:])
		a.send.tx.Publish(numLong, f, SlotBytes)
	}
	old := a.cur.link
	half(0, ring.More)
	if moved {
		if v, err := recvShort(ctx, b); err != nil || v != 1 {
			t.Fatal(v, err)
		}
		if _, _, err := b.Next(noTime); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
	}
	here, there := inprocPair("inproc:again", 1)
	next, err := bind(there, &greeting{}) // the peer does not say whether a bind is made
	if err == nil {
		err = b.rebind(next, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	if moved { // takes up the new ring
		if _, _, err := b.Next(noTime); !errors.Is(err, context.Canceled) || b.recv.rx != next.rx {
			t.Fatal(err)
		}
	}
	half(1, ring.Cont)
	tx.Publish(numShort, 0, 8)
	if endFirst {
		here.Close()
	}
	if err := old.Send(ctx, []byte{frameBye}, nil); err != nil {
		t.Fatal(err)
	}
	old.Close()
	here.Close()
	<-b.Done()
	if !moved {
		if v, err := recvShort(ctx, b); err != nil || v != 1 {
			t.Fatal(v, err)
		}
	}
	if _, body, err := b.Next(ctx); err != nil || string(body) != string(want) {
		t.Fatal(len(body), err)
	}
	if _, err := recvShort(ctx, b); err != nil {
		t.Fatal(err)
	}
	if _, _, err := b.Next(ctx); !errors.Is(err, ErrPeerClosed) {
		t.Fatal(err)
	}
}
