package proc

import (
	"math/rand"
	"slices"
	"testing"
)

// The oldest is on top, whatever came and went.
func TestZombies(t *testing.T) {
	r := rand.New(rand.NewSource(1))
	var z zombies
	var in []*Process
	oldest := func(a, b *Process) int { return int(a.born) - int(b.born) }
	for born := range uint64(5000) {
		if c := (&Process{kinship: kinship{born: born ^ 0x2a5}}); r.Intn(5) < 3 {
			z.push(c)
			in = append(in, c)
		} else {
			z.remove(c) // it is not there
		}
		if len(in) > 0 && r.Intn(2) == 0 {
			i := r.Intn(len(in))
			z.remove(in[i])
			in = slices.Delete(in, i, i+1)
		}
		if len(z) != len(in) || len(in) > 0 && z[0] != slices.MinFunc(in, oldest) {
			t.Fatalf("after %d: %d of %d", born, len(z), len(in))
		}
	}
	for len(in) > 0 {
		c := slices.MinFunc(in, oldest)
		if z[0] != c {
			t.Fatal("not the oldest on top")
		}
		z.remove(c)
		in = slices.DeleteFunc(in, func(p *Process) bool { return p == c })
	}
}
