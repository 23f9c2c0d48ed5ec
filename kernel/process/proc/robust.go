package proc

import (
	"hardtack/abi/linux"
	"hardtack/kernel/base/uio"
)

// SizeofRobustListHead is struct robust_list_head: next, futex offset, pending.
const SizeofRobustListHead = 24

// SetRobustList is set_robust_list.
func (t *Thread) SetRobustList(head uint64) { t.robustList = head }

// RobustList is get_robust_list.
func (t *Thread) RobustList() uint64 { return t.robustList }

// SetClearTID is set_tid_address.
func (t *Thread) SetClearTID(a uint64) { t.clearTID = a }

// ClearTID returns what set_tid_address set.
func (t *Thread) ClearTID() uint64 { return t.clearTID }

// leaveFutexes tells those that wait for the dying thread: it marks the locks
// in its robust list as orphaned, gives up PI futexes and clears its
// clear_child_tid word.
func (t *Thread) leaveFutexes() {
	if t.robustList != 0 {
		t.walkRobustList(t.robustList)
		t.robustList = 0
	}
	t.leavePI()
	if a := uio.Addr(t.clearTID); a != 0 {
		t.clearTID = 0
		// A process that nobody shares the memory with has nobody to tell.
		if t.Space.Users() > 1 {
			if _, e := t.Space.CopyOut(a, make([]byte, 4)); e == 0 {
				t.FutexWake(a, false, 1, linux.FUTEX_BITSET_MATCH_ANY)
			}
		}
	}
}

// walkRobustList follows a list that the program may have damaged: it is
// bounded, and ends at the first address that cannot be read.
func (t *Thread) walkRobustList(head uint64) {
	load := func(a uint64) (uint64, bool) {
		v, e := t.Space.LoadU64(uio.Addr(a))
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
		if e := entry &^ 1; e != pending && !t.ownerDied(e+offset, pi, false) {
			return
		}
		if !ok {
			return
		}
		entry = next
	}
	if pending != 0 {
		t.ownerDied(pending+offset, pendingPI, true)
	}
}

// ownerDied marks a lock word that the thread owns and wakes a waiter.
func (t *Thread) ownerDied(addr uint64, pi, pending bool) bool {
	a := uio.Addr(addr)
	if addr&3 != 0 {
		return false
	}
	for {
		v, e := t.Space.LoadU32(a)
		if e != 0 {
			return false
		}
		owner := v & linux.FUTEX_TID_MASK
		if pending && !pi && owner == 0 {
			// The thread died between unlocking and waking.
			t.FutexWake(a, false, 1, linux.FUTEX_BITSET_MATCH_ANY)
			return true
		}
		if owner != uint32(t.TID) {
			return true
		}
		got, e := t.Space.CASU32(a, v, v&linux.FUTEX_WAITERS|linux.FUTEX_OWNER_DIED)
		if e != 0 {
			return false
		}
		if got != v {
			continue
		}
		if v&linux.FUTEX_WAITERS != 0 && !pi {
			t.FutexWake(a, false, 1, linux.FUTEX_BITSET_MATCH_ANY)
		}
		return true
	}
}
