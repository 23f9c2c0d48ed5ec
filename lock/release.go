package lock

import "hardtack/lock/core"

// StoreRelease32 stores v in *p, which must be aligned to 4 bytes, after all earlier
// memory operations of the caller. What was written before it is seen by whoever loads
// the new value with atomic.Load*. Unlike atomic.Store* it orders nothing after it: a
// later load may be performed first, so that a thread that publishes and then looks for
// a sleeper needs a barrier between.
func StoreRelease32(p *uint32, v uint32) { core.StoreRelease32(p, v) }

// StoreRelease64 is StoreRelease32 for 8 bytes.
func StoreRelease64(p *uint64, v uint64) { core.StoreRelease64(p, v) }

// Transactions tells whether hardware transactions work here: a fact of the processor
// and of the hypervisor that this run has met. Without them Elided is a plain lock.
func Transactions() bool { return core.Transactions() }
