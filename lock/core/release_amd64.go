//go:build amd64 && !race

package core

// StoreRelease32 stores v in *p, which must be aligned to 4 bytes, after all
// earlier memory operations of the caller.
//
// It stays a function of its own, for the compiler carries no memory operation over
// a call. In assembly it would be the same MOV behind a change of calling
// convention, ten instructions more.
//
//go:noinline
func StoreRelease32(p *uint32, v uint32) { *p = v }

// StoreRelease64 stores v in *p, which must be aligned to 8 bytes, after all
// earlier memory operations of the caller. See StoreRelease32.
//
//go:noinline
func StoreRelease64(p *uint64, v uint64) { *p = v }

// endRelease32 is StoreRelease32 as the last step of a function that is not inlined,
// whose callers' operations are before it for the same reason.
func endRelease32(p *uint32, v uint32) { *p = v }

// PublishAhead64 is StoreRelease64, and asks for the cache line of *ahead, to
// which the caller will soon write (PREFETCHW, Intel SDM volume 2B; elsewhere a
// no-operation). Lines that are asked for early move beside each other.
//
//go:noescape
func PublishAhead64(p *uint64, v uint64, ahead *byte)
