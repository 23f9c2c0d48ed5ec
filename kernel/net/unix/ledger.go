package unix

import (
	"sync"

	"hardtack/kernel/base/ledger"
	"hardtack/kernel/base/wait"
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

// keptFor is how long what KeptBy has found counts, in nanoseconds, and keptLooked of how
// many files under way the memory is added up: the others are taken to be like them.
const (
	keptFor    = 100_000_000
	keptLooked = 64
)

// kept is what the users' files under way took a moment ago, in bytes.
var kept struct {
	mu    sync.Mutex
	at    int64            // guarded by mu: monotonic nanoseconds
	users map[uint32]int64 // guarded by mu
}

// KeptBy returns about how many bytes the files take that a user has sent and nobody has
// received. It may be called when memory is short: it waits for nothing.
func KeptBy(uid uint32) (bytes int64) {
	n := inFlight.Used()
	if n == 0 {
		return 0
	}
	kept.mu.Lock()
	defer kept.mu.Unlock()
	if now := wait.Now(); kept.users == nil || now-kept.at > keptFor {
		kept.users = keptByAll(n/keptLooked + 1)
		kept.at = wait.Now()
	}
	return kept.users[uid]
}

// keptByAll adds up the memory of every so many of the files under way.
func keptByAll(every int64) map[uint32]int64 {
	var list []flight
	n := int64(0)
	for _, s := range all.list() {
		s.in.EachRights(func(a *sock.Ancillary) {
			for _, f := range a.Rights {
				if n++; n%every == 0 {
					f.Get()
					list = append(list, flight{f, a.Cred.PID, a.User.UID})
				}
			}
		})
	}
	users := map[uint32]int64{}
	for _, x := range list {
		own := ledger.Scratch()
		x.f.Holds(own)
		users[x.uid] += own.All() / max(x.f.Refs()-1, 1) * every
		own.Done()
	}
	go func() { // the last reference to a file may write, which may wait for memory
		for _, x := range list {
			x.f.Put()
		}
		collectIfNeeded()
	}()
	return users
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
