package epoll

import (
	"iter"

	"hardtack/kernel/base/ledger"
	"hardtack/kernel/fs/vfs"
)

// interest is an instance's items by key. The first item of each small descriptor
// is in an array: most servers need no map, which costs several times as much.
// The instance's mu guards it.
type interest struct {
	small []*item       // by descriptor; grows to smallFDs
	rest  map[key]*item // all others: made at first use
	peak  ledger.Peak   // of rest
	count int
}

// smallFDs bounds the array: nobody is charged for it.
const smallFDs = 64

// get returns the item of a key, or nil.
func (s *interest) get(f *vfs.File, fd int32) *item {
	if uint(fd) < uint(len(s.small)) {
		if it := s.small[fd]; it != nil && it.file == f {
			return it
		}
	}
	if len(s.rest) == 0 {
		return nil
	}
	return s.rest[key{f, fd}]
}

// add puts in an item whose key is not there.
func (s *interest) add(it *item) {
	s.count++
	if fd := it.fd; uint(fd) < smallFDs {
		if int(fd) >= len(s.small) {
			small := make([]*item, min((int(fd)+16)&^15, smallFDs))
			copy(small, s.small)
			s.small = small
		}
		if s.small[fd] == nil {
			s.small[fd] = it
			return
		}
	}
	if s.rest == nil {
		s.rest = make(map[key]*item)
	}
	s.rest[it.key] = it
	s.peak.Note(len(s.rest))
}

// remove takes out an item that is there.
func (s *interest) remove(it *item) {
	s.count--
	if uint(it.fd) < uint(len(s.small)) && s.small[it.fd] == it {
		s.small[it.fd] = nil
		return
	}
	if delete(s.rest, it.key); s.peak.Empty(len(s.rest)) {
		s.rest = nil
	}
}

// all yields every item; the one that it stands at may be removed.
func (s *interest) all() iter.Seq[*item] {
	return func(yield func(*item) bool) {
		for _, it := range s.small {
			if it != nil && !yield(it) {
				return
			}
		}
		for _, it := range s.rest {
			if !yield(it) {
				return
			}
		}
	}
}
