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
