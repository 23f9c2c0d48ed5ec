package msg

import (
	"encoding/binary"
	"testing"
)

// What sending and receiving cost apart from moving cache lines: both ends on
// one goroutine.
func BenchmarkSlot(b *testing.B) {
	x, y := pairFor(b, inprocOnly)
	ctx := b.Context()
	b.ReportAllocs()
	var sum uint64
	for i := 0; i < b.N; i += 10 {
		for k := range 10 {
			slot, err := x.Begin(ctx)
			if err != nil {
				b.Fatal(err)
			}
			binary.LittleEndian.PutUint64(slot[:], uint64(k))
			x.Commit(numShort, 8)
		}
		for range 10 {
			_, body, err := y.Next(ctx)
			if err != nil {
				b.Fatal(err)
			}
			sum += binary.LittleEndian.Uint64(body)
		}
	}
	sink = sum
}

var sink uint64
