//go:build amd64 && !race

package lock

// StoreRelease32 stores v in *p, which must be aligned to 4 bytes, after all
// earlier memory operations of the caller.
//
//go:noescape
func StoreRelease32(p *uint32, v uint32)

// StoreRelease64 stores v in *p, which must be aligned to 8 bytes, after all
// earlier memory operations of the caller.
//
//go:noescape
func StoreRelease64(p *uint64, v uint64)

// PublishAhead64 is StoreRelease64, and asks for the cache line of *ahead, to
// which the caller will soon write (PREFETCHW, Intel SDM volume 2B; elsewhere a
// no-operation). Lines that are asked for early move beside each other.
//
//go:noescape
func PublishAhead64(p *uint64, v uint64, ahead *byte)
