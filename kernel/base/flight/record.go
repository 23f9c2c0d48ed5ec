//go:build !race

package flight

// put fills a record. Stores of one word are whole on amd64.
func (p *record) put(when, what, value uint64) { p.when, p.what, p.value = when, what, value }

func (p *record) get() Record { return unpack(p.when, p.what, p.value) }

func unpack(when, what, value uint64) Record {
	return Record{int64(when), Kind(what >> 56), uint32(what>>32) & (1<<24 - 1), int32(what), value}
}
