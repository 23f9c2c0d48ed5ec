package vm

import (
	"sync/atomic"

	"hardtack/kernel/base/mem"
	"hardtack/kernel/base/settings"
)

// Modes of vm.overcommit_memory.
const (
	overcommitGuess  = iota // refuse what can never be there
	overcommitAlways        // refuse nothing
	overcommitNever         // no more than the limit in all
)

// allCommitted is the bytes of all spaces' private writable mappings, and of memory that
// they share.
var allCommitted atomic.Int64

// commit counts bytes that a space's mappings may use up; the caller holds mu.
func (s *Space) commit(n int64) {
	s.committed += n
	allCommitted.Add(n)
}

// Committed returns how much memory all mappings may use up, and how much they may
// where vm.overcommit_memory is 2, in bytes (Committed_AS and CommitLimit).
func Committed() (used, limit int64) {
	return allCommitted.Load(), commitLimit()
}

func commitLimit() int64 {
	if n := settings.OvercommitKbytes.Get(); n != 0 {
		return n << 10
	}
	return int64(mem.Total()) * mem.PageSize / 100 * settings.OvercommitRatio.Get()
}

// mayCommit reports whether the space may have more bytes of private memory; the
// caller holds mu.
func (s *Space) mayCommit(more uint64) bool { return mayCommit(more, int64(s.size)) }

// mayCommit is that for a space of size bytes.
func mayCommit(more uint64, size int64) bool {
	switch settings.OvercommitMemory.Get() {
	case overcommitAlways:
		return true
	case overcommitNever:
		reserve := min(size/32, settings.UserReserve.Get()<<10)
		return more < 1<<62 && allCommitted.Load()+int64(more) <= commitLimit()-reserve
	}
	return more>>pageShift <= uint64(mem.Total())
}
