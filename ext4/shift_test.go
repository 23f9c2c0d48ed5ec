package ext4

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"

	"hardtack/abi/linux"
)

// A file of single blocks, whose tree has several levels, is right after ranges were
// taken out of it and put into it, each in as many handles as it takes, and after a
// mount again.
func TestShiftDeep(t *testing.T) {
	const bs = 1024
	m := newMemDisk(48 << 20)
	must(t, Mkfs(m, MkfsOptions{BlockSize: bs, Zeroed: true, JournalBlocks: 1024}))
	fs := mount(t, m)
	in := newFile(t, fs, "/f")
	rng := rand.New(rand.NewPCG(7, 7))
	model := make([]uint32, 16000) // the number in each block; 0: a hole
	block := make([]byte, bs)
	write := func(at int) {
		model[at] = rng.Uint32() | 1
		binary.LittleEndian.PutUint32(block, model[at])
		_, err := fs.WriteAt(in, block, int64(at)*bs)
		must(t, err)
	}
	for i := len(model) - 1; i >= 0; i -= 2 {
		write(i)
	}
	check := func() {
		t.Helper()
		if in.Size() != int64(len(model))*bs {
			t.Fatalf("%d bytes, want %d", in.Size(), len(model)*bs)
		}
		all := make([]byte, in.Size())
		_, err := fs.ReadAt(in, all, 0)
		must(t, err)
		for i, n := range model {
			if got := binary.LittleEndian.Uint32(all[i*bs:]); got != n {
				t.Fatalf("block %d has %d, want %d", i, got, n)
			}
		}
	}
	for round := range 60 {
		at, n := rng.IntN(len(model)-200), 1+rng.IntN(1<<rng.IntN(8))
		if round%2 == 0 {
			must(t, fs.Fallocate(in, linux.FALLOC_FL_COLLAPSE_RANGE, int64(at)*bs, int64(n)*bs))
			model = slices.Delete(model, at, at+n)
		} else {
			must(t, fs.Fallocate(in, linux.FALLOC_FL_INSERT_RANGE, int64(at)*bs, int64(n)*bs))
			model = slices.Insert(model, at, make([]uint32, n)...)
		}
		write(rng.IntN(len(model)))
		if round%10 == 9 {
			check()
		}
	}
	must(t, fs.Put(in))
	must(t, fs.Unmount())
	wantClean(t, m)
	fs = mount(t, m)
	in, err := fs.resolve("/f")
	must(t, err)
	check()
	// What lies beyond the end moves too.
	must(t, fs.Fallocate(in, linux.FALLOC_FL_KEEP_SIZE, in.Size()+8*bs, 4*bs))
	must(t, fs.Fallocate(in, linux.FALLOC_FL_COLLAPSE_RANGE, 0, 16*bs))
	model = model[16:]
	check()
	if m, err := fs.MapBlock(in, uint32(len(model)+8)); err != nil || m.N != 4 || !m.Unwritten {
		t.Errorf("beyond the end: %+v, %v", m, err)
	}
	must(t, fs.Put(in))
	must(t, fs.Unmount())
	wantClean(t, m)
}

// On a full disk ranges come and go as long as the tree has room, and are refused before
// anything changes where it has not.
func TestShiftFull(t *testing.T) {
	const bs = 1024
	m := newMemDisk(8 << 20)
	must(t, Mkfs(m, MkfsOptions{BlockSize: bs, Zeroed: true, JournalBlocks: 1024}))
	fs := mount(t, m)
	in := newFile(t, fs, "/f")
	must(t, fs.Fallocate(in, 0, 0, 1000*bs))
	big := newFile(t, fs, "/big")
	if err := fs.Fallocate(big, 0, 0, 64<<20); Errno(err) != linux.ENOSPC {
		t.Fatal(err)
	}
	for { // the margin too
		n, err := fs.WriteAt(big, make([]byte, bs), big.Size())
		if n == 0 || err != nil {
			break
		}
	}
	refused := false
	for i := range 450 {
		at, n := int64(i)*2*bs, int64(bs)
		size := in.Size()
		err := fs.Fallocate(in, linux.FALLOC_FL_INSERT_RANGE, at+bs, n)
		switch {
		case Errno(err) == linux.ENOSPC && in.Size() == size:
			refused = true
		case err != nil || in.Size() != size+n:
			t.Fatalf("insert %d: %v, %d bytes", i, err, in.Size())
		}
	}
	if !refused {
		t.Error("the tree grew on a full disk")
	}
	must(t, fs.Fallocate(in, linux.FALLOC_FL_COLLAPSE_RANGE, 0, 4*bs))
	must(t, fs.Put(in))
	must(t, fs.Put(big))
	must(t, fs.Unmount())
	wantClean(t, m)
}
