package names

import (
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// model is the store as slowly and plainly as can be.
type model struct {
	entries map[string]modelEntry
	free    map[string]uint32 // the user of a name without entry
}

type modelEntry struct {
	value string
	uid   uint32
	owner int
}

func (m *model) mayTake(uid uint32, name string) bool {
	if e, ok := m.entries[name]; ok {
		return e.uid == uid || uid == 0
	}
	of, ok := m.free[name]
	return !ok || of == uid || uid == 0
}

// The store does what the model does, and tells a watcher all of it.
func TestStoreAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newStore()
		m := model{map[string]modelEntry{}, map[string]uint32{}}
		watchOut := newOutbox()
		watcher, _ := s.join(9, 9, watchOut)
		if err := s.watch(watcher, 1, "a"); err != nil {
			t.Fatal(err)
		}
		told := map[string]string{}
		var owners [6]*owner
		outs := [6]*outbox{}
		uid := func(i int) uint32 { return uint32(i % 3) }
		ownerAt := func(i int) *owner {
			if owners[i] == nil {
				outs[i] = newOutbox()
				owners[i], _ = s.join(uid(i), uint32(i), outs[i])
			}
			return owners[i]
		}
		name := rapid.SampledFrom([]string{"a.1", "a.2", "a", "b.1", "b.2", "ab"})
		who := rapid.IntRange(0, len(owners)-1)
		t.Repeat(map[string]func(*rapid.T){
			"set": func(t *rapid.T) {
				i, n, flags := who.Draw(t, "who"), name.Draw(t, "name"), Flags(rapid.IntRange(0, 1).Draw(t, "flags"))
				value := rapid.StringN(0, 3, -1).Draw(t, "value")
				_, err := s.set(ownerAt(i), n, []byte(value), flags)
				var want error
				if _, exists := m.entries[n]; !m.mayTake(uid(i), n) {
					want = ErrDenied
				} else if exists && flags&Replace == 0 {
					want = ErrExists
				} else {
					m.entries[n] = modelEntry{value, uid(i), i}
					delete(m.free, n)
				}
				if !errors.Is(err, want) {
					t.Fatalf("set: %v, want %v", err, want)
				}
			},
			"delete": func(t *rapid.T) {
				i, n := who.Draw(t, "who"), name.Draw(t, "name")
				err := s.delete(ownerAt(i), n)
				var want error
				_, exists := m.entries[n]
				_, kept := m.free[n]
				switch {
				case !m.mayTake(uid(i), n):
					want = ErrDenied
				case !exists && !kept:
					want = ErrNotFound
				}
				if want == nil {
					delete(m.entries, n)
					delete(m.free, n)
				}
				if !errors.Is(err, want) {
					t.Fatalf("delete: %v, want %v", err, want)
				}
			},
			"leave": func(t *rapid.T) {
				i := who.Draw(t, "who")
				s.leave(ownerAt(i))
				owners[i] = nil
				for n, e := range m.entries {
					if e.owner == i {
						delete(m.entries, n)
						m.free[n] = e.uid
					}
				}
			},
			"": func(t *rapid.T) {
				classes := map[string]int{}
				var sorted []string
				for n, e := range m.entries {
					got, err := s.get(n)
					if err != nil || string(got.Value) != e.value || got.UID != e.uid {
						t.Fatalf("get %s: %+v, %v; want %+v", n, got, err, e)
					}
					classes[Class(n)]++
					sorted = append(sorted, n)
				}
				for _, class := range []string{"a", "b", "ab"} {
					if n, _ := s.count(class); n != classes[class] {
						t.Fatalf("count %s = %d, want %d", class, n, classes[class])
					}
				}
				sort.Strings(sorted)
				list, _ := s.list("", "")
				var listed []string
				for _, e := range list {
					listed = append(listed, e.Name)
				}
				if !slices.Equal(listed, sorted) {
					t.Fatalf("list %v, want %v", listed, sorted)
				}
				if len(s.reserved) != len(m.free) {
					t.Fatalf("%d names are reserved, want %d", len(s.reserved), len(m.free))
				}
				watchOut.put(packet{}) // so that take does not wait
				for _, p := range watchOut.take(nil) {
					switch p.op {
					case opEntry:
						told[p.entry.Name] = string(p.entry.Value)
					case opGone:
						delete(told, p.entry.Name)
					}
				}
				for n, e := range m.entries {
					if v, ok := told[n]; strings.HasPrefix(n, "a") && (!ok || v != e.value) {
						t.Fatalf("the watcher knows %q of %s, which is %q", v, n, e.value)
					}
				}
				for n := range told {
					if _, ok := m.entries[n]; !ok {
						t.Fatalf("the watcher was not told that %s is gone", n)
					}
				}
			},
		})
	})
}

// A listing in batches is the whole, whatever the number of entries.
func TestListBatches(t *testing.T) {
	for _, n := range []int{0, 1, listBatch - 1, listBatch, listBatch + 1, 3*listBatch + 5} {
		s := newStore()
		o, _ := s.join(1, 1, newOutbox())
		for i := range n {
			if _, err := s.set(o, fmt.Sprintf("x/%05d", i), nil, 0); err != nil {
				t.Fatal(err)
			}
		}
		s.set(o, "w", nil, 0)
		s.set(o, "y", nil, 0)
		got := 0
		for from, more := "x/", true; more; more = from != "" {
			var batch []Entry
			batch, from = s.list("x/", from)
			for _, e := range batch {
				if e.Name != fmt.Sprintf("x/%05d", got) {
					t.Fatalf("entry %d is %s", got, e.Name)
				}
				got++
			}
		}
		if got != n {
			t.Errorf("%d of %d entries listed", got, n)
		}
	}
}

// Whatever arrives, decode refuses it or gives what append turns back into it,
// and a store fed with it stays whole.
func FuzzRequest(f *testing.F) {
	for _, p := range []packet{
		{id: 1, op: opHello, entry: Entry{Revision: wireVersion}},
		{id: 2, op: opSet, arg: uint8(Replace | Sequence), entry: Entry{Name: "worker", Value: []byte("v")}},
		{id: 3, op: opGet, entry: Entry{Name: "worker.1"}},
		{id: 4, op: opWait, entry: Entry{Name: "late"}},
		{id: 5, op: opCount, entry: Entry{Name: "worker"}},
		{id: 6, op: opList, entry: Entry{Name: "w"}},
		{id: 7, op: opWatch},
		{id: 8, op: opDelete, entry: Entry{Name: "worker.1"}},
		{id: 9, op: opCancel, entry: Entry{Revision: 7}},
		{id: 10, op: opEntry, entry: Entry{Name: "x", UID: 1, PID: 2}},
	} {
		// Each seed is two packets, the length of the first in front.
		b := p.append(nil)
		f.Add(append(append([]byte{byte(len(b))}, b...), b...))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		server := &Server{store: newStore()}
		out := newOutbox()
		o, err := server.store.join(1000, 1, out)
		if err != nil {
			t.Fatal(err)
		}
		for len(data) > 0 {
			n := min(int(data[0]), len(data)-1)
			b := data[1 : 1+n]
			data = data[1+n:]
			p, err := decode(b)
			if err != nil {
				continue
			}
			if string(p.append(nil)) != string(b) {
				t.Fatalf("%x is decoded as %+v", b, p)
			}
			if p.checkRequest() != nil || p.op == opYield {
				continue
			}
			if p.op == opList && server.store.entries.Len() >= maxConnAnswers {
				continue // it would wait for a reader, who is not here
			}
			if err := server.do(o, &p); err != nil {
				out.put(failure(p.id, err))
			}
			out.put(packet{})
			for _, a := range out.take(nil) {
				if back, err := decode(a.append(nil)); err != nil || back.id != a.id || back.op != a.op {
					t.Fatalf("the answer %+v is %+v, %v", a, back, err)
				}
			}
		}
		server.store.leave(o)
		if s := server.store; s.entries.Len()+len(s.waits)+len(s.watches)+len(s.classes) != 0 {
			t.Fatal("something is left of a connection that has ended")
		}
	})
}
