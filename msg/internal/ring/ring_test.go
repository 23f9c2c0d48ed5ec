package ring

import (
	"encoding/binary"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// pair makes the two ends of one connection in ordinary memory.
func pair(t testing.TB, pages int) (at, bt *Tx, ar, br *Rx) {
	t.Helper()
	x, y := Memory(pages*PageBytes), Memory(pages*PageBytes)
	at, ar, err := Open(x, y)
	if err != nil {
		t.Fatal(err)
	}
	bt, br, err = Open(y, x)
	if err != nil {
		t.Fatal(err)
	}
	return at, bt, ar, br
}

// put publishes message number seq in so many slots, if there is room.
func put(tx *Tx, seq uint64, slots int) bool {
	if tx.Refill(); tx.Room < slots {
		return false
	}
	for i := range slots {
		binary.LittleEndian.PutUint64(tx.Body()[:], seq)
		tx.Body()[8] = byte(i)
		var f uint8
		if i > 0 {
			f |= Cont
		}
		if i < slots-1 {
			f |= More
		}
		tx.Publish(1, f, 9)
	}
	return true
}

// take consumes a message and returns its number.
func take(rx *Rx) (seq uint64, err error) {
	for i := 0; ; i++ {
		h, ok := rx.Peek()
		if !ok {
			return 0, fmt.Errorf("nothing at slot %d of a message", i)
		}
		seq = binary.LittleEndian.Uint64(rx.Body()[:])
		if d, _ := Split(h); (i > 0) != (d.Flags&Cont != 0) || rx.Body()[8] != byte(i) {
			return 0, fmt.Errorf("slot %d of message %d: flags %x", i, seq, d.Flags)
		}
		if rx.Consume(h); Flags(h)&More == 0 {
			return seq, nil
		}
	}
}

// TestUnread takes the unread messages out of a ring whose owner publishes one
// message more meanwhile, over what the receiver has acknowledged: all that the
// receiver has not had, and none but whole messages, come out in order.
func TestUnread(t *testing.T) {
	defer func() { looked = nil }()
	rapid.Check(t, func(t *rapid.T) {
		tx, _, _, rx := pair(&testing.T{}, rapid.IntRange(1, 8).Draw(t, "pages"))
		first := rapid.Uint64Range(0, 1<<40).Draw(t, "first")
		tx.SetSeq(first)
		rx.Start(first)
		sent, had := first, first
		most := rapid.IntRange(1, 10).Draw(t, "slots a message")
		count := rapid.IntRange(0, 1000).Draw(t, "messages")
		lag := rapid.IntRange(0, 200).Draw(t, "lag")
		for i := range count {
			if put(tx, sent, 1+i%most) {
				sent++
			}
			for sent > had+uint64(lag) || tx.Room < 10 && had < sent {
				seq, err := take(rx)
				if err != nil || seq != had {
					t.Fatal(seq, had, err)
				}
				had++
				rx.Flush(true)
				tx.Refill()
			}
		}
		stale := min(had-first, rapid.Uint64Range(0, 300).Draw(t, "stale"))
		// While the slots are copied the receiver takes more, and the owner
		// publishes slots of one message, of which it may not reach the last.
		when := 1 + tx.at + rapid.IntRange(-3, 12).Draw(t, "when")
		more := rapid.IntRange(1, 10).Draw(t, "slots of one more")
		eat := rapid.IntRange(0, 10).Draw(t, "received meanwhile")
		speed := rapid.IntRange(1, 10).Draw(t, "slots published while one is copied")
		at, published := 0, 0
		begun := false
		looked = func() {
			if at++; at == when {
				for range eat {
					if had < sent {
						take(rx)
						had++
					}
				}
				rx.Flush(true)
				tx.Refill()
				begun = tx.Room >= more
			}
			for k := 0; k < speed && begun && at >= when && published < more; k++ {
				binary.LittleEndian.PutUint64(tx.Body()[:], sent)
				tx.Body()[8] = byte(published)
				var f uint8
				if published > 0 {
					f |= Cont
				}
				if published < more-1 {
					f |= More
				}
				published++
				tx.Publish(1, f, 9)
			}
		}
		asked := had - stale
		want, started := asked, false
		part := 0
		next := tx.Unread(asked, func(seq uint64, h Head, body *[BodyBytes]byte) {
			switch {
			case h.Flags&Cont == 0 && !started && seq >= want && seq <= had: // what lies before was acknowledged
				want, started = seq, true
			case seq != want:
				t.Fatalf("message %d instead of %d; the receiver has had %d of %d", seq, want, had, sent)
			}
			// A body may be torn only if the receiver has had its message.
			if got := binary.LittleEndian.Uint64(body[:]); seq >= had && (got != seq || int(body[8]) != part) {
				t.Fatalf("slot %d of message %d instead of %d of %d", body[8], got, part, seq)
			}
			if part++; h.Flags&More == 0 {
				want, part = want+1, 0
			}
		})
		looked = nil
		all := sent
		if begun && published == more {
			all++ // it may be seen or not
		}
		if want < sent && had < sent || next < sent || next > all || want > all {
			t.Fatalf("messages up to %d and next %d; sent %d, had %d, one more in %d of %d slots", want, next, sent, had, published, more)
		}
	})
}

// TestLaps: messages of many slots, round and round.
func TestLaps(t *testing.T) {
	tx, _, _, rx := pair(t, 1)
	for i := range uint64(1 << 17) { // laps wrap round at 2^16 in less than 2^22 slots
		if !put(tx, i, 1+int(i%10)) {
			t.Fatal("no room", i)
		}
		if seq, err := take(rx); err != nil || seq != i {
			t.Fatal(seq, i, err)
		}
		rx.Flush(true)
	}
	if tx.Seq() != 1<<17 || rx.Seq != 1<<17 {
		t.Fatal(tx.Seq(), rx.Seq)
	}
}

// Whoever naps at a notification is woken by whoever publishes, sleeps on over a wake that was
// left from before, and not for ever.
func TestHandNap(t *testing.T) {
	tx, _, _, rx := pair(t, 1)
	awake := func() bool { return rx.Ready() }
	slept := 0
	if !rx.HandNap(0, awake, func(time.Duration) {
		if slept++; slept == 1 {
			return // an old wake
		}
		put(tx, 1, 1)
		if s := tx.TakeParked(); s != Handed {
			t.Errorf("parked as %d", s)
		}
		if s := tx.TakeParked(); s != Awake {
			t.Errorf("woken twice: %d", s)
		}
	}) || slept != 2 {
		t.Fatal("slept", slept)
	}
	if rx.Parked() {
		t.Error("still parked")
	}
	if rx.HandNap(0, awake, func(time.Duration) { slept++ }); slept != 2 {
		t.Error("slept although a message was there")
	}
	if _, err := take(rx); err != nil {
		t.Fatal(err)
	}
	if rx.HandNap(0, awake, func(time.Duration) { slept++ }) || slept != 4 {
		t.Error("nobody came, and it slept", slept-2, "times")
	}
}
