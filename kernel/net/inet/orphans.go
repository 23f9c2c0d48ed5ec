package inet

import (
	"slices"
	"sync"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"

	"hardtack/kernel/base/accounts"
	"hardtack/kernel/base/ledger"
	"hardtack/kernel/base/mem"
)

// An orphan is a connection whose socket is closed. netstack keeps it until the other end
// has acknowledged all data and TIME-WAIT is over: for as long as the other end likes, if
// that reads nothing. No process holds it, so killing one frees nothing. Its memory is
// charged to the user whose socket it was. A user beyond his share loses orphans: those in
// TIME-WAIT first, then the oldest, whose other end gets a reset, as on Linux.
type orphan struct {
	p     lingerer
	user  *accounts.User
	bytes int64 // what the user is charged for
}

// lingerer is what netstack keeps of a connection.
type lingerer = interface {
	State() uint32
	Abort()
}

// leaver is an endpoint that ends in TIME-WAIT and leaves a small thing that answers for it,
// in a kernel (overlay/_netstack). What it leaves tells its size, which is 0 at the end.
type leaver interface{ Leave() lingerer }

type sized interface{ Bytes() int64 }

// orphans are those of all users, oldest first. mu comes before netstack's locks of the
// queues of an endpoint.
type orphans struct {
	mu    sync.Mutex
	list  []orphan    // guarded by mu
	timer *time.Timer // made at the first use, set while the list has any; guarded by mu
	fresh int         // came since all were looked at; guarded by mu
}

// orphanPool is the memory that orphans may take: an eighth of all.
var orphanPool = accounts.LatePool{Make: func() *accounts.Pool {
	return accounts.NewPool(max(int64(mem.Total())*mem.PageSize/8, 1<<20))
}}

const (
	orphanBytes   = 6 << 10 // without data
	orphanSweep   = time.Second
	orphansAtOnce = 64 // that a user loses for another
)

// queuer is an endpoint of netstack that tells how much memory its queues take.
type queuer interface {
	Queued() (toSend, received, unaccepted int64)
}

// orphaned is about what a connection takes whose socket is closed; 0: it has ended.
func orphaned(p lingerer) int64 {
	if x, ok := p.(sized); ok {
		return x.Bytes()
	}
	switch tcp.EndpointState(p.State()) {
	case tcp.StateClose, tcp.StateError:
		return 0
	}
	n := int64(orphanBytes)
	if q, ok := p.(queuer); ok {
		toSend, _, _ := q.Queued()
		n += toSend
	}
	return n
}

// abandon charges the user for the endpoint of a socket that was closed.
func (n *Net) abandon(u *accounts.User, point *netPoint) {
	var p lingerer = point.Endpoint
	if l, ok := p.(leaver); ok {
		p = l.Leave()
	}
	if p == nil {
		return
	}
	bytes := orphaned(p)
	if bytes == 0 {
		return
	}
	pool := orphanPool.Get()
	if !pool.Charge(u, bytes) && !(n.orphans.lookAgain() && pool.Charge(u, bytes)) {
		n.orphans.shed(u, bytes)
		pool.Force(u, bytes)
	}
	o := &n.orphans
	o.mu.Lock()
	o.list = append(o.list, orphan{p, u, bytes})
	o.fresh++
	if len(o.list) == 1 {
		o.arm()
	}
	o.mu.Unlock()
}

// arm sets the timer; called with mu held.
func (o *orphans) arm() {
	if o.timer == nil {
		o.timer = time.AfterFunc(orphanSweep, o.sweep)
	} else {
		o.timer.Reset(orphanSweep)
	}
}

// shed ends orphans of a user: some in TIME-WAIT or else as many as have so many bytes.
func (o *orphans) shed(u *accounts.User, bytes int64) {
	var victims [orphansAtOnce]orphan
	n := 0
	take := func(fits func(*orphan) bool) {
		i := 0
		for ; i < len(o.list) && n < len(victims); i++ {
			if x := &o.list[i]; x.user == u && fits(x) {
				victims[n] = *x
				n++
				x.p = nil
			}
		}
		// The oldest go first: those that stay of them move up, and the many behind stay
		// where they are.
		at := i
		for i--; i >= 0; i-- {
			if o.list[i].p != nil {
				at--
				o.list[at] = o.list[i]
			}
		}
		clear(o.list[:at])
		o.list = o.list[at:]
	}
	o.mu.Lock()
	take(func(x *orphan) bool { return tcp.EndpointState(x.p.State()) == tcp.StateTimeWait })
	if n == 0 {
		take(func(x *orphan) bool {
			bytes -= x.bytes
			return bytes+x.bytes > 0
		})
	}
	o.mu.Unlock()
	for _, x := range victims[:n] {
		x.p.Abort()
		orphanPool.Get().Release(x.user, x.bytes)
	}
}

// sweep is the timer: it forgets who has ended, and gives back what was acknowledged.
func (o *orphans) sweep() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.forget(); len(o.list) > 0 {
		o.arm()
	}
}

// lookAgain does so before its time, and reports whether it did: most connections are in
// TIME-WAIT at once, where they take an eighth of what they were charged for. It looks only
// if enough have come since the last look to be worth a walk along the list.
func (o *orphans) lookAgain() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.fresh < max(orphansAtOnce, len(o.list)/4) {
		return false
	}
	o.forget()
	return true
}

// forget drops who has ended, and charges the others for what they take now; called with
// mu held.
func (o *orphans) forget() {
	o.fresh = 0
	pool := orphanPool.Get()
	kept := o.list[:0]
	for _, x := range o.list {
		old := x.bytes
		x.bytes = min(orphaned(x.p), old)
		pool.Release(x.user, old-x.bytes)
		if x.bytes > 0 {
			kept = append(kept, x)
		}
	}
	clear(o.list[len(kept):])
	if o.list = kept; len(kept) == 0 {
		o.list = nil
	}
}

// KeptBy returns about how many bytes of closed connections a user has.
func KeptBy(uid uint32) int64 {
	if orphanPool.Get().Used() == 0 {
		return 0
	}
	return orphanPool.Get().Of(accounts.UserOf(uid))
}

// Ledger charges closed connections to their users.
func Ledger(charge ledger.Charge) {
	o := &Default.orphans
	o.mu.Lock()
	list := slices.Clone(o.list)
	o.mu.Unlock()
	for _, x := range list {
		charge(0, x.user.UID, ledger.Sockets, x.bytes)
	}
}
