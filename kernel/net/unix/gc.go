package unix

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	"hardtack/abi/linux"
	"hardtack/kernel/base/accounts"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/creds"
	"hardtack/kernel/base/wait"
	"hardtack/kernel/fs/vfs"
	"hardtack/kernel/net/sock"
)

// Files in messages under way hold references. Sockets sent over themselves or
// over each other would live for ever once every descriptor is closed, so a
// collector looks for them: a socket whose only references are messages under
// way, and which no message outside such sockets holds, is garbage, and what
// waits in it is dropped.

// MaxInFlight is how many files may be under way in all; more get ETOOMANYREFS. A user
// may have about as many under way as RLIMIT_NOFILE says, unless privileged.
const MaxInFlight = 16384

var inFlight = accounts.NewPool(MaxInFlight)

// gc holds what the collector needs.
var gc = struct {
	mu    sync.Mutex
	socks map[*Sock]bool // guarded by mu: sockets among them

	n     atomic.Int32 // how many those are; changed under mu
	last  atomic.Int64 // when the collector ran
	later atomic.Bool  // it runs by itself when it may
}{socks: make(map[*Sock]bool)}

// launched notes files of a user that go under way.
func launched(c *caller.Ctx, u *accounts.User, files []*vfs.File, limit uint64) linux.Errno {
	if !charge(c, u, len(files), limit) {
		if gc.n.Load() > 0 && toDrop(nil, true) {
			drop()
		}
		if !charge(c, u, len(files), limit) {
			return linux.ETOOMANYREFS
		}
	}
	gc.mu.Lock()
	defer gc.mu.Unlock()
	for _, f := range files {
		if s, ok := f.Ops.(*Sock); ok {
			s.inflight++
			gc.socks[s] = true
		}
	}
	gc.n.Store(int32(len(gc.socks)))
	return 0
}

// charge counts n files under way: a user that is beyond the limit already gets no
// more, as on Linux.
func charge(c *caller.Ctx, u *accounts.User, n int, limit uint64) bool {
	privileged := c.Cred().Has(creds.CapSysResource) || c.Cred().Has(creds.CapSysAdmin)
	if !privileged && uint64(inFlight.Of(u)) > limit || !inFlight.Room(u, int64(n), privileged) {
		return false
	}
	inFlight.Force(u, int64(n))
	return true
}

// landed notes files that have arrived, or were dropped.
func landed(a *sock.Ancillary) {
	if len(a.Rights) == 0 {
		return
	}
	inFlight.Release(a.User, int64(len(a.Rights)))
	gc.mu.Lock()
	defer gc.mu.Unlock()
	for _, f := range a.Rights {
		if s, ok := f.Ops.(*Sock); ok {
			if s.inflight--; s.inflight == 0 {
				delete(gc.socks, s)
			}
		}
	}
	gc.n.Store(int32(len(gc.socks)))
}

// dropper closes the files of messages that nobody will read. One goroutine at
// a time does it, in a loop: closing a socket drops what waits in it, and chains
// of sockets inside sockets may be long.
var dropper struct {
	turn wait.Turn // of who does the work

	mu      sync.Mutex
	files   []*vfs.File // guarded by mu
	collect bool        // guarded by mu: look for garbage afterwards
	running bool        // guarded by mu
}

// dropAll closes the files that messages carried.
func dropAll(list []*sock.Ancillary) {
	for _, a := range list {
		landed(a)
		dispose(a.Rights, false)
	}
}

// With more than manySocks under way the collector runs only every collectEvery
// nanoseconds, for it looks at all of them, and in a goroutine of its own: whoever closes a
// socket does not wait for it.
const (
	manySocks    = 64
	collectEvery = 100_000_000
)

// collectIfNeeded runs the collector when sockets are under way at all. It is
// called when a socket is closed. The socket may have been the last, and what hangs on garbage
// (a file system that is to be unmounted) must not wait for another one.
func collectIfNeeded() {
	n := gc.n.Load()
	switch {
	case n == 0:
	case n <= manySocks:
		gc.last.Store(wait.Now())
		dispose(nil, true)
	case !gc.later.Load() && gc.later.CompareAndSwap(false, true):
		time.AfterFunc(time.Duration(gc.last.Load()+collectEvery-wait.Now()), collectLater)
	}
}

// collectLater is collectIfNeeded where many sockets are under way.
func collectLater() {
	gc.last.Store(wait.Now())
	gc.later.Store(false)
	if gc.n.Load() > 0 {
		dispose(nil, true)
	}
}

// Dropping reports whether files of messages that nobody will read are still to be closed,
// or the collector is to look for them.
func Dropping() bool {
	dropper.mu.Lock()
	defer dropper.mu.Unlock()
	return dropper.running || gc.later.Load()
}

// dispose adds work for the dropper, and does it unless somebody is at it. Much of it is
// done by another goroutine.
func dispose(files []*vfs.File, garbage bool) {
	switch {
	case !toDrop(files, garbage):
	case garbage && gc.n.Load() > manySocks:
		go disposeSome(math.MaxInt)
	default:
		drop()
	}
}

// drop begins the dropper's work, and has a goroutine end it.
func drop() {
	if !disposeSome(maxDispose) {
		go disposeSome(math.MaxInt)
	}
}

// toDrop adds work for the dropper. It reports whether the caller has to see to it.
func toDrop(files []*vfs.File, garbage bool) bool {
	d := &dropper
	d.mu.Lock()
	defer d.mu.Unlock()
	d.files = append(d.files, files...)
	d.collect = d.collect || garbage
	begins := !d.running
	d.running = true
	return begins
}

// maxDispose files are closed by whoever has dropped them, who may be in a hurry.
const maxDispose = 256

// somePut files are closed, or sockets looked at, before the clock is looked at.
const somePut = 8

// restDropper lets others have their turn.
func restDropper(p *caller.Pace) {
	dropper.turn.Rest()
	p.Rested()
}

// disposeSome does the dropper's work, or about limit files of it; it reports whether
// that was all.
func disposeSome(limit int) bool {
	d := &dropper
	var pace caller.Pace
	d.mu.Lock()
	for len(d.files) > 0 || d.collect {
		if limit--; limit < 0 {
			d.mu.Unlock()
			return false
		}
		if n := len(d.files); n > 0 {
			f := d.files[n-1]
			d.files[n-1] = nil
			d.files = d.files[:n-1]
			d.mu.Unlock()
			f.Put()
			if limit%somePut == 0 && pace.Due() {
				restDropper(&pace)
			}
			d.mu.Lock()
			continue
		}
		d.collect = false
		d.mu.Unlock()
		gc.mu.Lock()
		unreachable := collect()
		gc.mu.Unlock()
		for i, s := range unreachable {
			if i%somePut == somePut-1 && pace.Due() {
				restDropper(&pace)
			}
			s.eachFlow(func(f *sock.Flow) {
				_, rights := f.Purge()
				for _, a := range rights {
					landed(a)
					d.mu.Lock()
					d.files = append(d.files, a.Rights...)
					d.mu.Unlock()
				}
			})
		}
		d.mu.Lock()
	}
	d.files = nil
	d.running = false
	d.mu.Unlock()
	return true
}

// collect returns the sockets that nobody can reach; called with gc.mu held.
func collect() (garbage []*Sock) {
	looked := 0
	var pace caller.Pace
	look := func() {
		if looked++; looked%somePut == 0 && pace.Due() {
			restDropper(&pace)
		}
	}
	// Every reference to a candidate is a message under way. Nobody can take
	// a new one while gc.mu is held, for messages arrive through landed.
	cand := make(map[*Sock]int) // references from outside the candidates
	for s := range gc.socks {
		look()
		if f := s.File(); f != nil && f.Refs() == int64(s.inflight) {
			cand[s] = s.inflight
		}
	}
	for s := range cand {
		look()
		s.eachSock(func(x *Sock) {
			if _, ok := cand[x]; ok {
				cand[x]--
			}
		})
	}
	// What is held from outside is reachable, and so is what waits in it.
	var live []*Sock
	for s, n := range cand {
		look()
		if n > 0 {
			live = append(live, s)
		}
	}
	for len(live) > 0 {
		s := live[len(live)-1]
		live = live[:len(live)-1]
		look()
		if _, ok := cand[s]; !ok {
			continue
		}
		delete(cand, s)
		s.eachSock(func(x *Sock) { live = append(live, x) })
	}
	for s := range cand {
		look()
		garbage = append(garbage, s)
	}
	return garbage
}

// eachSock calls fn for every socket that waits in s, or in the connections
// that wait to be accepted from it.
func (s *Sock) eachSock(fn func(*Sock)) {
	s.eachFlow(func(f *sock.Flow) {
		f.EachRight(func(f *vfs.File) {
			if x, ok := f.Ops.(*Sock); ok {
				fn(x)
			}
		})
	})
}

// eachFlow calls fn for what waits in s, and in the connections that wait to be accepted
// from it, which go with it.
func (s *Sock) eachFlow(fn func(*sock.Flow)) {
	fn(&s.in)
	s.mu.Lock()
	pending := append([]*Sock(nil), s.pending...)
	s.mu.Unlock()
	for _, x := range pending {
		fn(&x.in)
	}
}
