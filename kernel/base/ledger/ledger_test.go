package ledger

import (
	"runtime"
	"testing"
)

// TestSize compares with what append gets from the allocator.
func TestSize(t *testing.T) {
	for n := tiny; n < 100_000; n += 1 + n/997 {
		if got, want := Size(int64(n)), int64(cap(append([]byte(nil), make([]byte, n)...))); got != want {
			t.Fatalf("%d bytes take %d, want %d", n, got, want)
		}
	}
	for n := 1; n < 20_000; n += 1 + n/997 {
		want := int64(cap(append([]*int(nil), make([]*int, n)...))) * 8
		if want > headerFrom && want <= largest {
			want += header
		}
		if got := Array[*int](n); got != want {
			t.Fatalf("%d pointers take %d, want %d", n, got, want)
		}
	}
	if Size(1) != tiny || Of[*int]() != 8 {
		t.Error("a tiny object takes something else")
	}
	if Size(0) != 0 || Array[byte](0) != 0 {
		t.Error("nothing takes something")
	}
}

func TestPointers(t *testing.T) {
	type plain struct{ _ [100]int64 }
	type mixed struct {
		_ [100]int64
		_ string
	}
	if got := Of[plain](); got != 896 {
		t.Errorf("800 bytes without pointers take %d", got)
	}
	if got := Of[[64]mixed](); got != Size(64*816) {
		t.Errorf("a large array takes %d", got)
	}
	if got := Of[[112]*int](); got != 1024 { // 896 and a header
		t.Errorf("896 bytes of pointers take %d", got)
	}
	if got := OfPointer(&mixed{}); got != 896 {
		t.Errorf("a pointer's object takes %d", got)
	}
	if OfPointer(nil) != 0 || OfPointer(7) != 0 {
		t.Error("no pointer takes something")
	}
}

var sink []map[key]*int

type key struct {
	p *int
	n int32
}

// TestMap measures maps. Those with several tables are full to various degrees, so
// their bytes are compared on average.
func TestMap(t *testing.T) {
	for _, n := range []int{1, 8, 9, 14, 15, 28, 29, 100, 448, 449, 896, 5000, 20_000} {
		many := max(100_000/n, 16)
		sink = make([]map[key]*int, many)
		before := live()
		for i := range sink {
			sink[i] = map[key]*int{}
			for k := range n {
				sink[i][key{nil, int32(k)}] = nil
			}
		}
		got, want := Map[key, *int](n), (live()-before)/int64(many)
		slack := want / 100
		if n > 7*tableMax/8 {
			slack = want / 5
		}
		if got < want-slack || got > want+slack {
			t.Errorf("a map of %d takes %d, want %d", n, got, want)
		}
	}
	sink = nil
}

func live() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func TestSum(t *testing.T) {
	var a, b Sum
	a.Add(Files, 112)
	a.Add(Stacks, 8192)
	a.Add(Pages, 4096)
	b.AddPart(&a, 1, 4)
	b.AddSum(&a)
	b.AddPart(&a, 3, 0) // fewer references than are counted: not more than there is
	if b[Files] != 28+112+112 || a.Heap() != 112 || a.Frames() != 4096 || a.All() != 112+8192+4096 || a.Kernel() != 112+8192 {
		t.Errorf("wrong sums: %v %v", a, b)
	}
	if got := string(a.Append(nil)); got != "total 12400 files 112 stacks 8192 pages 4096" {
		t.Error(got)
	}
}

func TestKept(t *testing.T) {
	defer SetKeepers()
	SetKeepers(
		func(c Charge) { c(0, 0, Names, 10); c(0, 1000, Names, 20); c(7, 1000, Flight, 5) },
		func(c Charge) {
			var s Sum
			s.Add(Names, 1)
			s.Add(SysV, 7)
			c.All(8, 1000, &s) // gone
		})
	got := Kept(func(a Account) bool { return a == Account{7, 1000} })
	user := got[Account{0, 1000}]
	if len(got) != 3 || got[Account{0, 0}][Names] != 10 || user[Names] != 21 || user[SysV] != 7 || got[Account{7, 1000}][Flight] != 5 {
		t.Errorf("%v", got)
	}
}

// A sum of Scratch is empty each time, and costs nothing when it was used before.
func TestScratch(t *testing.T) {
	var whole Sum
	n := testing.AllocsPerRun(100, func() {
		part := Scratch()
		if part.All() != 0 {
			t.Fatal("not empty")
		}
		part.Add(Files, 64)
		whole.AddPartDone(part, 1, 2)
	})
	if n >= 1 {
		t.Errorf("%v allocations", n)
	}
	if got := whole.All(); got != 101*32 {
		t.Errorf("%d bytes", got)
	}
}

func TestPeak(t *testing.T) {
	var p Peak
	p.Note(8)
	if p.Empty(0) || p.Max(3) != 8 {
		t.Error("a small map is replaced")
	}
	p.Note(100)
	p.Note(99)
	if p.Max(5) != 100 || p.Empty(1) || !p.Empty(0) || p.Max(5) != 5 {
		t.Errorf("peak %d", p)
	}
}
