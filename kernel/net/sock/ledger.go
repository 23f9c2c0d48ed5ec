package sock

import "hardtack/kernel/base/ledger"

// Holds adds what options take that few sockets have.
func (o *Options) Holds(s *ledger.Sum) {
	r := o.rare.Load()
	if r == nil {
		return
	}
	n := ledger.Of[rareOptions]()
	if r.filter != nil {
		n += r.filter.Size()
	}
	s.Add(ledger.Sockets, n)
}
