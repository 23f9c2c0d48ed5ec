//go:build race

package flight

import "sync/atomic"

// Under the race detector words are stored as it wants.
func (p *record) put(when, what, value uint64) {
	atomic.StoreUint64(&p.when, when)
	atomic.StoreUint64(&p.what, what)
	atomic.StoreUint64(&p.value, value)
}

func (p *record) get() Record {
	when, what, value := atomic.LoadUint64(&p.when), atomic.LoadUint64(&p.what), atomic.LoadUint64(&p.value)
	return Record{int64(when), Kind(what >> 56), uint32(what>>32) & (1<<24 - 1), int32(what), value}
}
