package futex

import (
	"hardtack/abi/linux"
	"hardtack/kernel/base/uio"
	"hardtack/kernel/mm/vm"
)

// SizeofRobustListHead is struct robust_list_head: next, futex offset, pending.
const SizeofRobustListHead = 24

// Exit tells those that wait for a thread which ends, or leaves its memory s for another
// program: it marks the locks in its robust list as orphaned, gives up PI futexes and
// clears its clear_child_tid word.
func (t *Thread) Exit(s *vm.Space) {
	if t.RobustList != 0 {
		t.walkRobustList(s, t.RobustList)
		t.RobustList = 0
	}
	t.leavePI()
	if a := uio.Addr(t.ClearTID); a != 0 {
		t.ClearTID = 0
		// A process that nobody shares the memory with has nobody to tell.
		if s.Users() > 1 {
			if _, e := s.CopyOut(a, make([]byte, 4)); e == 0 {
				Wake(s, a, false, 1, linux.FUTEX_BITSET_MATCH_ANY)
			}
		}
	}
}

// Reset lets the thread, after Exit, go on with another program.
func (t *Thread) Reset() { t.pi.gone.Store(false) }

// walkRobustList follows a list that the program may have damaged: it is
// bounded, and ends at the first address that cannot be read.
func (t *Thread) walkRobustList(s *vm.Space, head uint64) {
	load := func(a uint64) (uint64, bool) {
		v, e := s.LoadU64(uio.Addr(a))
		return v, e == 0
	}
	entry, ok1 := load(head)
	offset, ok2 := load(head + 8)
	pending, ok3 := load(head + 16)
	if !ok1 || !ok2 || !ok3 {
		return
	}
	pendingPI := pending&1 != 0
	pending &^= 1
	for n := 0; entry&^1 != head && n < linux.ROBUST_LIST_LIMIT; n++ {
		next, ok := load(entry &^ 1)
		pi := entry&1 != 0
		if e := entry &^ 1; e != pending && !t.ownerDied(s, e+offset, pi, false) {
			return
		}
		if !ok {
			return
		}
		entry = next
	}
	if pending != 0 {
		t.ownerDied(s, pending+offset, pendingPI, true)
	}
}

// ownerDied marks a lock word that the thread owns and wakes a waiter.
func (t *Thread) ownerDied(s *vm.Space, addr uint64, pi, pending bool) bool {
	a := uio.Addr(addr)
	if addr&3 != 0 {
		return false
	}
	for {
		v, e := s.LoadU32(a)
		if e != 0 {
			return false
		}
		owner := v & linux.FUTEX_TID_MASK
		if pending && !pi && owner == 0 {
			// The thread died between unlocking and waking.
			Wake(s, a, false, 1, linux.FUTEX_BITSET_MATCH_ANY)
			return true
		}
		if owner != uint32(t.ctx.TID) {
			return true
		}
		got, e := s.CASU32(a, v, v&linux.FUTEX_WAITERS|linux.FUTEX_OWNER_DIED)
		if e != 0 {
			return false
		}
		if got != v {
			continue
		}
		if v&linux.FUTEX_WAITERS != 0 && !pi {
			Wake(s, a, false, 1, linux.FUTEX_BITSET_MATCH_ANY)
		}
		return true
	}
}
