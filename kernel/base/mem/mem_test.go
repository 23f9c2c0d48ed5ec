package mem

import (
	"sync"
	"testing"
)

func TestFramesAreDistinctAndComeBack(t *testing.T) {
	InitHost(4096)
	before := Available()
	var mu sync.Mutex
	seen := map[Frame]bool{}
	var wg sync.WaitGroup
	for w := 0; w < 4; w++ {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for i := 0; i < 300; i++ {
				f, ok := AllocZeroed()
				if !ok {
					t.Error("exhausted")
					return
				}
				f.Bytes()[7] = 1
				mu.Lock()
				if seen[f] {
					t.Error("handed out twice", f)
				}
				seen[f] = true
				mu.Unlock()
			}
		}()
	}
	wg.Wait()
	for f := range seen {
		f.Get()
		f.Put()
		if f.Refs() != 1 {
			t.Fatal(f.Refs())
		}
		f.Put()
	}
	if n := Available(); n != before {
		t.Fatalf("%d frames before, %d after", before, n)
	}
	f, _ := AllocZeroed()
	if f.Bytes()[7] != 0 {
		t.Fatal("not zeroed")
	}
	f.Put()
}

func TestBatchesZeroedAndFloor(t *testing.T) {
	InitHost(4096)
	before := Available()
	var batch [700]Frame
	if n := AllocBatch(batch[:]); n != len(batch) {
		t.Fatal(n)
	}
	seen := map[Frame]bool{}
	for _, f := range batch {
		if seen[f] || f.Refs() != 1 {
			t.Fatal(f, f.Refs())
		}
		seen[f] = true
		f.Bytes()[9] = 1
	}
	batch[0].Get()
	PutBatch(batch[:])
	if n := Available(); n != before-1 || batch[0].Refs() != 1 {
		t.Fatal(n, batch[0].Refs())
	}
	batch[0].Zero()
	PutZeroed(batch[:1])
	for range 300 { // the one that is known to be zero, and others
		f, ok := AllocZeroed()
		if !ok || *f.Words() != [PageSize / 8]uint64{} {
			t.Fatal("not zero", f)
		}
		f.Bytes()[100] = 7
		defer f.Put()
	}
	// The last frames are the kernel's.
	SetFloor(Spare()-100, Spare()-100)
	defer SetFloor(0, 0)
	got := AllocBatch(batch[:])
	if got == len(batch) && Spare() > 0 {
		got += AllocBatch(batch[got:])
	}
	if Spare() != 0 || got > 100+2*magazineSize {
		t.Fatal("took", got, "with", Spare(), "to spare")
	}
	PutBatch(batch[:got])
}

func TestPutZeroedIsChecked(t *testing.T) {
	InitHost(4096)
	f, _ := AllocZeroed()
	f.Bytes()[4095] = 1
	defer func() {
		if recover() == nil {
			t.Fatal("a lie was believed")
		}
		f.Put()
	}()
	PutZeroed([]Frame{f})
}

// space notes what it was told to unmap.
type space struct{ zaps int }

func (s *space) Zap(Object, uint64, uint64, bool) { s.zaps++ }
func (s *space) Protect(Object, uint64, uint64)   { s.zaps++ }

func TestMappingsOfManySpaces(t *testing.T) {
	var m Mappings
	spaces := make([]*space, 3*maxFew)
	for i := range spaces {
		spaces[i] = &space{}
		m.Add(spaces[i], 2)
	}
	m.Remove(spaces[0], 1)
	m.Remove(spaces[1], 2)
	m.Zap(nil, 0, 1)
	for i, s := range spaces {
		if want := 1; s.zaps != want && i != 1 || i == 1 && s.zaps != 0 {
			t.Fatal(i, s.zaps)
		}
	}
	m.Remove(spaces[0], 1)
	for _, s := range spaces[2:] {
		m.Remove(s, 2)
	}
	if m.Mapped() {
		t.Fatal("still mapped")
	}
	m.Add(spaces[0], 1)
	if id := m.ID(); !m.Mapped() || id == 0 || m.ID() != id {
		t.Fatal("lost")
	}
}

// Below the floor only those get frames who are favoured, and not the last ones.
func TestFavour(t *testing.T) {
	InitHost(4096)
	spare := Spare()
	SetFloor(spare-10, spare-110)
	defer SetFloor(0, 0)
	var batch [1024]Frame
	n := AllocBatch(batch[:])
	for f, ok := Alloc(); ok; f, ok = Alloc() {
		batch[n] = f
		n++
	}
	defer func() { PutBatch(batch[:n]) }()
	if SpareForLittle() != 100 || Spare() != 0 {
		t.Fatalf("%d and %d are left", SpareForLittle(), Spare())
	}
	if !Favour(60) || SpareForLittle() != 40 || !Favour(60) {
		t.Fatalf("%d are left after 60", SpareForLittle())
	}
	for range 60 {
		f, ok := Alloc()
		if !ok {
			t.Fatal("a favoured frame is not there")
		}
		batch[n] = f
		n++
	}
	if Favour(60) || SpareForLittle() != 40 {
		t.Fatalf("more than there is, with %d left", SpareForLittle())
	}
}
