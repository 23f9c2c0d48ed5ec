//go:build !amd64 || race

package core

import "sync/atomic"

// StoreRelease32 stores v in *p, which must be aligned to 4 bytes, after all
// earlier memory operations of the caller.
func StoreRelease32(p *uint32, v uint32) { atomic.StoreUint32(p, v) }

func endRelease32(p *uint32, v uint32) { atomic.StoreUint32(p, v) }

// StoreRelease64 stores v in *p, which must be aligned to 8 bytes, after all
// earlier memory operations of the caller.
func StoreRelease64(p *uint64, v uint64) { atomic.StoreUint64(p, v) }

// PublishAhead64 is StoreRelease64; nothing is done about *ahead.
func PublishAhead64(p *uint64, v uint64, ahead *byte) { atomic.StoreUint64(p, v) }
