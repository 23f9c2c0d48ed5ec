package mem

import (
	"sync"
	"syscall"
	"unsafe"
)

// hostSource serves frames of an arena to tests.
type hostSource struct {
	mu   sync.Mutex
	free []Frame // guarded by mu
}

// Refill cannot block: a test's P is pinned while it runs, and so is whoever
// holds the lock, so the lock is held for a moment only.
func (s *hostSource) Refill(out []Frame) int {
	for !s.mu.TryLock() {
	}
	defer s.mu.Unlock()
	n := min(len(out), len(s.free))
	copy(out, s.free[len(s.free)-n:])
	s.free = s.free[:len(s.free)-n]
	return n
}

func (s *hostSource) Return(in []Frame) {
	for !s.mu.TryLock() {
	}
	defer s.mu.Unlock()
	s.free = append(s.free, in...)
}

func (s *hostSource) Free() int {
	for !s.mu.TryLock() {
	}
	defer s.mu.Unlock()
	return len(s.free)
}

var hostOnce sync.Once

// InitHost gives tests on Linux an arena of so many frames; the first call of
// a test binary decides.
func InitHost(frames int) {
	hostOnce.Do(func() {
		b, err := syscall.Mmap(-1, 0, (frames+1)*PageSize, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_PRIVATE|syscall.MAP_ANON)
		if err != nil {
			panic(err)
		}
		s := &hostSource{free: make([]Frame, 0, frames+magazineSize)}
		for f := frames; f > 0; f-- {
			s.free = append(s.free, Frame(f))
		}
		checkZeroed = true
		counts := make([]int32, frames+1)
		Init(unsafe.Pointer(&b[0]), unsafe.Pointer(&counts[0]), s, frames)
		SetDirectLimit(uint64(len(b)))
	})
}
