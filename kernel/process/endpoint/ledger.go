package endpoint

import "hardtack/kernel/base/ledger"

// Holds adds the file, and the object with the receiver.
func (x *receiver) Holds(s *ledger.Sum) {
	s.Add(ledger.Endpoints, ledger.Of[receiver]()+ledger.Of[object]())
}

// Holds adds the file.
func (x *sender) Holds(s *ledger.Sum) { s.Add(ledger.Endpoints, ledger.Of[sender]()) }

// Holds adds the file and the object.
func (x *notification) Holds(s *ledger.Sum) {
	s.Add(ledger.Endpoints, ledger.Of[notification]()+ledger.Of[object]())
}

// Bytes implements proc.Partner.
func (p *partner) Bytes() int64 { return ledger.Of[partner]() }

// Ledger charges files that are under way in messages to those who sent them.
func Ledger(charge ledger.Charge) {
	flight.mu.Lock()
	list := make([]inFlight, 0, len(flight.file))
	for _, x := range flight.file {
		x.f.Get()
		list = append(list, x)
	}
	flight.mu.Unlock()
	for _, x := range list {
		x.f.ChargeFlight(charge, x.pid, x.uid)
	}
}
