package sync

// lockOrder is what the runtime keeps of a lock: see runtime/locks_unsafe.go. It
// begins as zeros, wherever the lock lies.
type lockOrder struct {
	class    uint32
	instance uint32
}

// lockTaken tells that the goroutine is about to wait for a lock at pc, or has it
// without waiting (TryLock).
//
//go:noescape
func lockTaken(o *lockOrder, pc uintptr, waits bool)

// lockReleased tells that the lock is about to be free.
//
//go:noescape
func lockReleased(o *lockOrder)
