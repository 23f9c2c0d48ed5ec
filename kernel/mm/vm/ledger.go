package vm

import (
	"math/rand/v2"
	"strings"

	"hardtack/kernel/base/ledger"
	"hardtack/kernel/base/mem"
	"hardtack/kernel/fs/vfs"
)

// held is the file of a mapping, with a reference, and of how many in a row.
type held struct {
	f *vfs.File
	n int64
}

// Holds adds the space with its page tables and pages, and its part of what it maps. A
// page that a fork shares counts in full in each space.
func (s *Space) Holds(sum *ledger.Sum) {
	s.holdsItself(sum)
	for at, more := uint64(0), true; more; {
		at, more = s.holdsFrom(at, sum)
		if more {
			ledger.Pause()
		}
	}
}

// HoldsAbout is Holds in short time: of many mappings it looks at about so many at most, chosen at
// random.
func (s *Space) HoldsAbout(sum *ledger.Sum, most int) {
	n := s.holdsItself(sum)
	own := ledger.Scratch()
	step, looked := max(n/max(most, 1), 1), 0
	for i := rand.IntN(step); i < n && s.holdsAt(i, own); i += step {
		looked++
	}
	sum.AddScaled(own, int64(n), int64(looked))
	own.Done()
}

// holdsItself adds the space with its page tables and pages, and returns how many mappings it has.
func (s *Space) holdsItself(sum *ledger.Sum) (mappings int) {
	sum.Add(ledger.Tables, (s.tables.Load()+1)*pageSize)
	sum.Add(ledger.Pages, max(s.anon.Load(), 0)*pageSize)
	s.mu.RLock()
	defer s.mu.RUnlock()
	sum.Add(ledger.Mappings, ledger.Of[Space]()+ledger.Array[vma](len(s.vmas.a)))
	return s.vmas.len()
}

// holdsAt adds what mapping i refers to, and reports whether there is one.
func (s *Space) holdsAt(i int, sum *ledger.Sum) bool {
	s.mu.RLock()
	if i >= s.vmas.len() {
		s.mu.RUnlock()
		return false
	}
	v := s.vmas.at(i)
	f := v.file
	if f != nil {
		f.Get()
	} else {
		v.holds(sum)
	}
	s.mu.RUnlock()
	if f != nil {
		held{f, 1}.add(sum)
	}
	return true
}

// holdsFrom adds what some mappings from an address on refer to, and returns where to go
// on. Files are looked at without locks.
func (s *Space) holdsFrom(at uint64, sum *ledger.Sum) (next uint64, more bool) {
	var files [64]held
	n := 0
	s.mu.RLock()
	i := s.vmas.find(at)
	for ; i < s.vmas.len(); i++ {
		v := s.vmas.at(i)
		if v.file == nil {
			v.holds(sum)
			continue
		}
		if n > 0 && files[n-1].f == v.file {
			files[n-1].n++
			continue
		}
		if n == len(files) {
			break
		}
		v.file.Get()
		files[n] = held{v.file, 1}
		n++
	}
	if more = i < s.vmas.len(); more {
		next = s.vmas.at(i).start
	}
	s.mu.RUnlock()
	for _, x := range files[:n] {
		x.add(sum)
	}
	return next, more
}

// add adds the file's part, and gives the reference back.
func (x held) add(sum *ledger.Sum) {
	own := ledger.Scratch()
	x.f.Holds(own)
	sum.AddPartDone(own, x.n, x.f.Refs()-1)
	x.f.Put()
}

// holds adds the name of a mapping without a file, and its part of shared memory; called
// with the space's mu held.
func (v *vma) holds(sum *ledger.Sum) {
	if strings.HasPrefix(v.name, "[anon") {
		sum.Add(ledger.Mappings, ledger.Size(int64(len(v.name))))
	}
	if o, ok := v.obj.(*Shared); ok {
		own := ledger.Scratch()
		o.Holds(own, ledger.Pages)
		sum.AddPartDone(own, 1, o.refs.Load())
	}
}

// Holds adds the object, its pages as a kind of the caller's.
func (o *Shared) Holds(s *ledger.Sum, pages ledger.Kind) {
	o.mu.Lock()
	n := ledger.Of[Shared]() + ledger.Map[uint64, *chunk](len(o.chunks)) + int64(len(o.chunks))*ledger.Of[chunk]()
	o.mu.Unlock()
	s.Add(ledger.Mappings, n+o.maps.Bytes())
	s.Add(pages, o.n.Load()*mem.PageSize)
}
