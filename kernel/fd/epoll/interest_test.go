package epoll

import (
	"math/rand"
	"testing"

	"hardtack/kernel/fs/vfs"
)

// An interest set is compared with a map under random changes: few descriptors, on
// both sides of smallFDs, and several files, so that keys share a descriptor.
func TestInterestIsAMap(t *testing.T) {
	rnd := rand.New(rand.NewSource(3))
	files := make([]*vfs.File, 4)
	for i := range files {
		files[i] = vfs.NewFile(&lamp{}, 0)
	}
	var s interest
	model := map[key]*item{}
	for step := range 20000 {
		k := key{files[rnd.Intn(len(files))], int32(smallFDs - 6 + rnd.Intn(12))}
		if rnd.Intn(4) == 0 {
			k.fd = int32(rnd.Intn(3))
		}
		it := model[k]
		if got := s.get(k.file, k.fd); got != it {
			t.Fatalf("step %d: %v is %p, not %p", step, k, got, it)
		}
		if it == nil {
			it = &item{key: k}
			model[k] = it
			s.add(it)
		} else {
			delete(model, k)
			s.remove(it)
		}
		if s.count != len(model) {
			t.Fatalf("step %d: %d items, not %d", step, s.count, len(model))
		}
	}
	seen := 0
	for it := range s.all() {
		if model[it.key] != it {
			t.Fatalf("%v is not in the set", it.key)
		}
		seen++
		s.remove(it)
	}
	if seen != len(model) || s.count != 0 {
		t.Fatalf("%d items of %d, %d left", seen, len(model), s.count)
	}
}
