package runtime

import _ "unsafe" // for linkname

// Where a goroutine allocates, for a kernel that compares what system calls allocate with
// their bounds: the largest few allocations since beginSites, each with those who called.

const (
	siteCount = 6 // allocations that are kept
	siteDepth = 8 // callers of each
)

// allocSites are those of one goroutine.
type allocSites struct {
	on, muted bool
	at        [siteCount]struct {
		bytes uintptr
		pcs   [siteDepth]uintptr
	}
}

// noteSite is told by mallocgc what it took. An allocation replaces the smallest.
func noteSite(bytes uintptr) {
	s := &getg().sites
	if !s.on || s.muted || bytes == 0 {
		return
	}
	least := &s.at[0]
	for i := range s.at {
		if s.at[i].bytes < least.bytes {
			least = &s.at[i]
		}
	}
	if bytes > least.bytes {
		least.bytes = bytes
		clear(least.pcs[:])
		callers(2, least.pcs[:])
	}
}

// beginSites forgets the calling goroutine's allocations and notes them from now on; see
// allocated.
//
//go:linkname beginSites hardtack/kernel/base/checks.beginSites
var beginSites = func() { getg().sites = allocSites{on: true} }

// muteSites leaves allocations out, and returns whether they were left out before.
//
//go:linkname muteSites hardtack/kernel/base/checks.muteSites
var muteSites = func(muted bool) (before bool) {
	s := &getg().sites
	before, s.muted = s.muted, muted
	return before
}

// beginOwn begins an allocation that is nobody's: of a table that all use, which grows at
// whoever comes when it is full. It returns what the goroutine had allocated before.
//
//go:linkname beginOwn sync.runtime_beginOwn
func beginOwn() (allocated uint64, muted bool) {
	gp := getg()
	allocated, muted = gp.allocated, gp.sites.muted
	gp.sites.muted = true
	return allocated, muted
}

// endOwn takes it off the goroutine's count.
//
//go:linkname endOwn sync.runtime_endOwn
func endOwn(allocated uint64, muted bool) {
	gp := getg()
	gp.allocated, gp.sites.muted = allocated, muted
}

// siteAt is one of the noted allocations; 0 bytes: no more.
//
//go:linkname siteAt hardtack/kernel/base/checks.siteAt
var siteAt = func(i int) (bytes uintptr, pcs [siteDepth]uintptr) {
	s := &getg().sites
	if i >= siteCount {
		return 0, pcs
	}
	return s.at[i].bytes, s.at[i].pcs
}
