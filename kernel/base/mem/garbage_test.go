package mem

import "testing"

func TestLeastGarbage(t *testing.T) {
	for _, x := range []struct{ total, live, want int64 }{
		{1 << 20, 0, 8 << 10},
		{1 << 20, 256 << 10, 8 << 10},
		{1 << 20, 512 << 10, 64 << 10},
	} {
		if got := leastGarbage(x.total, x.live); got != x.want {
			t.Errorf("of %d with %d alive: %d, want %d", x.total, x.live, got, x.want)
		}
	}
}

// Garbage is what was allocated since the last collection, or what is missing from the
// ledger since then.
func TestGarbage(t *testing.T) {
	for _, x := range []struct{ objects, live, ledger, other, want int64 }{
		{100, 90, 60, 30, 10},  // allocated since
		{100, 100, 20, 30, 50}, // a process that held 50 has ended
		{100, 90, 80, 30, 10},  // the ledger has more than is there
	} {
		if got := garbage(x.objects, x.live, x.ledger, x.other); got != x.want {
			t.Errorf("of %d, %d of them alive, %d in the ledger and %d beside it: %d, want %d", x.objects, x.live, x.ledger, x.other, got, x.want)
		}
	}
}
