package tmpfs

import "hardtack/abi/linux"

const (
	knownSeals = linux.F_SEAL_SEAL | linux.F_SEAL_SHRINK | linux.F_SEAL_GROW | linux.F_SEAL_WRITE |
		linux.F_SEAL_FUTURE_WRITE | linux.F_SEAL_EXEC
	writeSeals = linux.F_SEAL_WRITE | linux.F_SEAL_FUTURE_WRITE
)

// Seals returns F_GET_SEALS.
func (f *file) Seals() uint32 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.seals &^ sealLent
}

// AddSeals is F_ADD_SEALS. A file that somebody may still write to through a mapping
// cannot be sealed against writing.
func (f *file) AddSeals(s uint32) linux.Errno {
	if s&^knownSeals != 0 {
		return linux.EINVAL
	}
	f.Mu.Lock()
	defer f.Mu.Unlock()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.seals&linux.F_SEAL_SEAL != 0 {
		return linux.EPERM
	}
	if s&linux.F_SEAL_EXEC != 0 && f.Mode()&0o111 != 0 { // what is run does not change
		s |= linux.F_SEAL_SHRINK | linux.F_SEAL_GROW | writeSeals
	}
	if s&linux.F_SEAL_WRITE&^f.seals != 0 && f.writers.Load() > 0 {
		return linux.EBUSY
	}
	f.seals |= s
	return 0
}

// MapShared lets a shared mapping be made if the seals do; see mem.Sealed.
func (f *file) MapShared(write, later bool) (bool, linux.Errno) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.seals&writeSeals != 0 {
		if write {
			return false, linux.EPERM
		}
		return false, 0
	}
	if later {
		f.writers.Add(1)
	}
	return later, 0
}

// AddWriters counts mappings that may be written to. It needs no lock: who adds some
// has one already, so that the count does not leave 0 here.
func (f *file) AddWriters(n int) { f.writers.Add(int32(n)) }
