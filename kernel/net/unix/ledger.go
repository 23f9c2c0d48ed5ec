package unix

import (
	"hardtack/kernel/base/ledger"
	"hardtack/kernel/fs/vfs"
	"hardtack/kernel/net/sock"
)

var (
	sockBytes = ledger.Of[Sock]()
	addrBytes = ledger.Of[sock.Addr]()
	credBytes = ledger.Of[credPair]()
	// abstractBytes is about what an abstract name takes of the map of them.
	abstractBytes = ledger.Map[abstractName, *Sock](448) / 448
)

// Holds adds the socket with what waits for it, but for files under way, which are their
// senders': Ledger.
func (s *Sock) Holds(sum *ledger.Sum) {
	s.holdsOwn(sum)
	s.mu.Lock()
	pending := append([]*Sock(nil), s.pending...)
	sum.Add(ledger.Sockets, ledger.Array[*Sock](cap(s.pending)))
	if s.senders != nil {
		sum.Add(ledger.Sockets, ledger.Map[*Sock, struct{}](len(s.senders)))
	}
	s.mu.Unlock()
	for _, x := range pending {
		x.holdsOwn(sum)
	}
	if p := s.peer.Load(); p != nil && p.peer.Load() == s && p.state.Load() == stClosed {
		p.holdsOwn(sum) // nobody else knows it
		sum.Add(ledger.Files, ledger.Of[vfs.File]())
	}
}

func (s *Sock) holdsOwn(sum *ledger.Sum) {
	sum.Add(ledger.Sockets, sockBytes)
	if a := s.name.Load(); a != nil {
		sum.Add(ledger.Sockets, addrBytes)
		if b := a.Bytes(); len(b) > 2 && b[2] == 0 {
			sum.Add(ledger.Sockets, ledger.Size(int64(len(b)-2))+abstractBytes)
		}
	}
	if s.cred.Load() != nil {
		sum.Add(ledger.Sockets, credBytes)
	}
	s.Opt.Holds(sum)
	s.in.Holds(sum)
}

// flight is a file under way, with a reference, and who sent it.
type flight struct {
	f   *vfs.File
	pid int32
	uid uint32
}

// Ledger charges files under way to those who sent them.
func Ledger(charge ledger.Charge) {
	list := flights()
	for _, x := range list {
		x.f.ChargeFlight(charge, x.pid, x.uid)
	}
	if len(list) > 0 {
		collectIfNeeded() // it keeps what had a reference of ours
	}
}

// KeptBy returns how many bytes the files take that a user has sent and nobody has received.
// It may be called when memory is short: it waits for nothing.
func KeptBy(uid uint32) (bytes int64) {
	if inFlight.Used() == 0 {
		return 0
	}
	list := flights()
	for _, x := range list {
		if x.uid == uid {
			var own ledger.Sum
			x.f.Holds(&own)
			bytes += own.All() / max(x.f.Refs()-1, 1)
		}
	}
	go func() { // the last reference to a file may write, which may wait for memory
		for _, x := range list {
			x.f.Put()
		}
		collectIfNeeded()
	}()
	return bytes
}

// flights returns the files under way.
func flights() (list []flight) {
	for _, s := range all.list() {
		s.in.EachRights(func(a *sock.Ancillary) {
			for _, f := range a.Rights {
				f.Get()
				list = append(list, flight{f, a.Cred.PID, a.User.UID})
			}
		})
	}
	return list
}
