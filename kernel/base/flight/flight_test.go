package flight

import (
	"sync"
	"testing"
)

// What was noted last is there, and nothing else.
func TestNote(t *testing.T) {
	Start(2)
	for i := range int64(3 * length) {
		Note(Call, 7, 4, i, uint64(i)*2)
	}
	Note(Interrupt, 3, 0, 99, 0)
	list := Records()
	var calls, interrupts int
	for _, r := range list {
		switch {
		case r.Kind == Interrupt:
			interrupts++
			if r.Code != 3 || r.When != 99 {
				t.Errorf("the interrupt is %+v", r)
			}
		case r.Kind != Call || r.Code != 7 || r.ID != 4 || r.Value != uint64(r.When)*2 || r.When < 2*length:
			t.Errorf("a call is %+v", r)
		default:
			calls++
		}
	}
	// The interrupt is in the same ring.
	if calls != length-1 || interrupts != 1 {
		t.Errorf("%d calls and %d interrupts are there, not %d and 1", calls, interrupts, length-1)
	}
	words := 0
	LastWords(func(kind byte, lane int, a, b, c uint64) {
		if kind == 'c' {
			words++
		}
	})
	if want := lastWords / (rings + 2); words != want {
		t.Errorf("a panic prints %d records, not %d", words, want)
	}
}

// All calls are recorded between All(true) and All(false), by threads that do not wait for
// each other, while somebody reads.
func TestAll(t *testing.T) {
	Start(0)
	NoteCall(1, 1, 1, 1)
	before := len(Records())
	All(true)
	defer All(false)
	const each = 3 * allLength / 4
	var work sync.WaitGroup
	for id := range int32(2) {
		work.Go(func() {
			for i := range int64(each) {
				NoteCall(uint32(id), id, i, uint64(i))
			}
		})
	}
	for range 10 {
		for _, r := range Records()[before:] {
			if r.Kind != 0 && r.Value != uint64(r.When) {
				t.Errorf("a record is %+v", r)
			}
		}
	}
	work.Wait()
	if n := len(Records()) - before; n != allLength {
		t.Errorf("%d calls are there, not %d", n, allLength)
	}
}
