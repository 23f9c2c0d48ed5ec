package vm

import (
	"testing"

	"pgregory.net/rapid"

	"hardtack/abi/linux"
	"hardtack/kernel/base/mem"
	"hardtack/kernel/base/uio"
	"hardtack/nucleus"
)

// The model: an array of pages, each mapped or not, with a protection and what
// its first byte should be. Operations are carried out on both.

const (
	modelBase  = 0x7000_0000_0000 - 8*pageSize // crosses a leaf and a mid table
	modelPages = 40
)

type modelPage struct {
	mapped bool
	prot   uint32
	value  byte
}

type model [modelPages]modelPage

func modelAddr(i int) uint64 { return modelBase + uint64(i)*pageSize }

// check compares every page, through the CPU's eyes and through copies.
func (m *model) check(t *rapid.T, s *Space) {
	for i := range m {
		p := &m[i]
		b, r := fetch(s, modelAddr(i))
		want := FaultOK
		switch {
		case !p.mapped:
			want = FaultMapErr
		case p.prot == 0:
			want = FaultAccErr
		}
		if r != want || r == FaultOK && b != p.value {
			t.Fatalf("page %d: value %d result %v, want %d %v (prot %d)", i, b, r, p.value, want, p.prot)
		}
		canWrite := s.Fault(modelAddr(i), nucleus.FaultUser|nucleus.FaultWrite) == FaultOK
		if want := p.mapped && p.prot&linux.PROT_WRITE != 0; canWrite != want {
			t.Fatalf("page %d: writable %v, want %v", i, canWrite, want)
		}
	}
	// The list is sorted, disjoint and joined where it can be.
	size := uint64(0)
	for i := range s.vmas.len() {
		v := s.vmas.at(i)
		if v.start >= v.end || v.start&pageMask != 0 {
			t.Fatal("bad mapping", i)
		}
		if i > 0 && s.vmas.at(i-1).end > v.start {
			t.Fatal("mappings overlap at", i)
		}
		if i > 0 && s.vmas.at(i-1).joins(v) {
			t.Fatal("mappings not joined at", i)
		}
		size += v.end - v.start
	}
	if size != s.size {
		t.Fatal("size", s.size, "mappings", size)
	}
	n := int64(0)
	for va, stop := uint64(0), uint64(0); ; va = stop {
		var tab *table
		if tab, va, stop = s.next(va, userTop); tab == nil {
			break
		}
		for ; va < stop; va += pageSize {
			if tab[index(va)]&pteAnon != 0 {
				n++
			}
		}
	}
	if n != s.anon.Load() {
		t.Fatal("resident", s.anon.Load(), "entries", n)
	}
}

func TestAgainstAnArrayOfPages(t *testing.T) {
	before := mem.Available()
	rapid.Check(t, func(t *rapid.T) {
		s, e := New()
		if e != 0 {
			t.Fatal(e)
		}
		spaces, models := []*Space{s}, []*model{{}}
		defer func() {
			for _, s := range spaces {
				s.Release()
			}
			if n := mem.Available(); n != before {
				t.Fatalf("%d frames before, %d after", before, n)
			}
		}()
		cur := 0
		rng := func(t *rapid.T) (int, int) {
			i := rapid.IntRange(0, modelPages-1).Draw(t, "first")
			return i, rapid.IntRange(1, min(12, modelPages-i)).Draw(t, "pages")
		}
		prots := rapid.SampledFrom([]uint32{0, linux.PROT_READ, rw, rw, rw, linux.PROT_READ | linux.PROT_EXEC})
		t.Repeat(map[string]func(*rapid.T){
			"": func(t *rapid.T) {
				for i := range spaces {
					models[i].check(t, spaces[i])
				}
			},
			"mmap": func(t *rapid.T) {
				i, n := rng(t)
				prot := prots.Draw(t, "prot")
				s, m := spaces[cur], models[cur]
				flags := uint32(linux.MAP_PRIVATE | linux.MAP_ANONYMOUS | linux.MAP_FIXED)
				if rapid.Bool().Draw(t, "populate") {
					flags |= linux.MAP_POPULATE
				}
				if rapid.IntRange(0, 4).Draw(t, "noreserve") == 0 {
					flags |= linux.MAP_NORESERVE
				}
				if a, e := s.Mmap(nil, &MapArgs{Addr: modelAddr(i), Length: uint64(n) * pageSize, Prot: prot, Flags: flags}); e != 0 || a != modelAddr(i) {
					t.Fatal(a, e)
				}
				for k := i; k < i+n; k++ {
					m[k] = modelPage{mapped: true, prot: prot}
				}
			},
			"munmap": func(t *rapid.T) {
				i, n := rng(t)
				if e := spaces[cur].Munmap(nil, modelAddr(i), uint64(n)*pageSize); e != 0 {
					t.Fatal(e)
				}
				for k := i; k < i+n; k++ {
					models[cur][k] = modelPage{}
				}
			},
			"mprotect": func(t *rapid.T) {
				i, n := rng(t)
				prot := prots.Draw(t, "prot")
				e := spaces[cur].Mprotect(nil, modelAddr(i), uint64(n)*pageSize, prot)
				for k := i; k < i+n; k++ {
					if !models[cur][k].mapped {
						if e != linux.ENOMEM {
							t.Fatal("hole not seen", e)
						}
						return
					}
					models[cur][k].prot = prot
				}
				if e != 0 {
					t.Fatal(e)
				}
			},
			"discard": func(t *rapid.T) {
				i, n := rng(t)
				e := spaces[cur].Madvise(nil, modelAddr(i), uint64(n)*pageSize, linux.MADV_DONTNEED)
				for k := i; k < i+n; k++ {
					if !models[cur][k].mapped && e != linux.ENOMEM {
						t.Fatal("hole not seen", e)
					}
					models[cur][k].value = 0
				}
			},
			"store": func(t *rapid.T) {
				i := rapid.IntRange(0, modelPages-1).Draw(t, "page")
				v := byte(rapid.IntRange(1, 255).Draw(t, "value"))
				p := &models[cur][i]
				var ok bool
				if rapid.Bool().Draw(t, "by copy") {
					_, e := spaces[cur].CopyOut(uio.Addr(modelAddr(i)), []byte{v})
					ok = e == 0
				} else {
					ok = store(spaces[cur], modelAddr(i), v) == FaultOK
				}
				if want := p.mapped && p.prot&linux.PROT_WRITE != 0; ok != want {
					t.Fatalf("page %d: stored %v, want %v", i, ok, want)
				}
				if ok {
					p.value = v
				}
			},
			"mremap": func(t *rapid.T) {
				s, m := spaces[cur], models[cur]
				i, n := rng(t)
				to, n2 := rng(t)
				flags := uint32(linux.MREMAP_MAYMOVE | linux.MREMAP_FIXED)
				at := modelAddr(to)
				if rapid.Bool().Draw(t, "in place") {
					flags, at, to = 0, 0, i
				}
				oneMapping := true
				if v := s.at(modelAddr(i)); v == nil || v.end < modelAddr(i+n) {
					oneMapping = false
				}
				overlap := flags != 0 && to < i+n && i < to+n2
				_, e := s.Mremap(nil, modelAddr(i), uint64(n)*pageSize, uint64(n2)*pageSize, flags, at)
				switch {
				case flags != 0 && !m[i].mapped:
					if e != linux.EFAULT {
						t.Fatal(e)
					}
				case overlap:
					if e != linux.EINVAL {
						t.Fatal(e)
					}
				case flags == 0 && n2 <= n && m[i].mapped: // shrinks, even over holes
					if e != 0 {
						t.Fatal(e)
					}
					for k := i + n2; k < i+n; k++ {
						m[k] = modelPage{}
					}
				case !oneMapping:
					if e != linux.EFAULT {
						t.Fatal(e)
					}
				case flags == 0:
					room := i+n2 <= modelPages
					for k := i + n; k < i+n2 && k < modelPages; k++ {
						room = room && !m[k].mapped
					}
					if !room && i+n2 > modelPages { // grew out of the array
						if e == 0 {
							s.Munmap(nil, modelAddr(modelPages), uint64(n2)*pageSize)
							room = true
						}
					}
					if room != (e == 0) {
						t.Fatal(room, e)
					}
					if e == 0 {
						for k := i + n; k < min(i+n2, modelPages); k++ {
							m[k] = modelPage{mapped: true, prot: m[i].prot}
						}
					}
				default:
					if e != 0 {
						t.Fatal(e)
					}
					var old [modelPages]modelPage
					copy(old[:], m[i:i+n])
					prot := m[i].prot
					for k := i; k < i+n; k++ {
						m[k] = modelPage{}
					}
					for k := range n2 {
						m[to+k] = modelPage{mapped: true, prot: prot}
						if k < n {
							m[to+k] = old[k]
						}
					}
				}
			},
			"fork": func(t *rapid.T) {
				if len(spaces) == 4 {
					t.Skip("enough")
				}
				n, e := spaces[cur].Fork(nil)
				if e != 0 {
					t.Fatal(e)
				}
				c := *models[cur]
				spaces, models = append(spaces, n), append(models, &c)
			},
			"exit": func(t *rapid.T) {
				if len(spaces) == 1 {
					t.Skip("the last")
				}
				spaces[cur].Release()
				spaces[cur], models[cur] = spaces[len(spaces)-1], models[len(models)-1]
				spaces, models = spaces[:len(spaces)-1], models[:len(models)-1]
				cur = 0
			},
			"switch": func(t *rapid.T) {
				cur = rapid.IntRange(0, len(spaces)-1).Draw(t, "space")
			},
		})
	})
}
