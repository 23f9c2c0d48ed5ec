// Package accounts counts what each user uses of the machine's scarce resources, and
// shares these resources between users.
package accounts

import (
	"runtime"
	"sync"
	"sync/atomic"
	"weak"

	"hardtack/kernel/base/wait"
)

// User is what the processes of one real user ID have in use together. It lives as
// long as anything refers to it: credentials, or an object that is charged to it.
type User struct {
	UID uint32 // immutable

	// Threads, with zombies, count against RLIMIT_NPROC; Signals, which are queued
	// ones and POSIX timers, against RLIMIT_SIGPENDING.
	Threads, Signals atomic.Int64

	Crowd wait.Crowd // its threads that wait for user mode

	used [maxPools]atomic.Int64 // what each pool has given it
}

var users = struct {
	mu sync.Mutex
	m  map[uint32]weak.Pointer[User] // guarded by mu
}{m: map[uint32]weak.Pointer[User]{}}

// Root is user 0, who is never forgotten.
var Root = UserOf(0)

// UserOf returns the account of a user ID.
func UserOf(uid uint32) *User {
	users.mu.Lock()
	defer users.mu.Unlock()
	if u := users.m[uid].Value(); u != nil {
		return u
	}
	u := &User{UID: uid}
	users.m[uid] = weak.Make(u)
	runtime.AddCleanup(u, forgetUser, uid)
	return u
}

// forgetUser drops an account that nobody refers to, unless the user is back.
func forgetUser(uid uint32) {
	users.mu.Lock()
	defer users.mu.Unlock()
	if users.m[uid].Value() == nil {
		delete(users.m, uid)
	}
}

// ChargeSignal counts a queued signal or a timer, up to a limit.
func (u *User) ChargeSignal(limit uint64) bool {
	if n := u.Signals.Add(1); uint64(n) > limit {
		u.Signals.Add(-1)
		return false
	}
	return true
}

// ReleaseSignal undoes ChargeSignal.
func (u *User) ReleaseSignal() { u.Signals.Add(-1) }

// Shares describes how users share a scarce resource: users with large shares may take
// three quarters of it together; a user with a small share, up to a 64th, is served until
// only a 16th is left, which is root's. So no user can take everything, and a user who
// has taken nothing gets something.
type Shares struct {
	Much, Little int64 // bounds of the total for those who have much, and little
	Small, Max   int64 // what is little, and all there is
}

// SharesOf returns the shares of n.
func SharesOf(n int64) Shares {
	return Shares{Max: n, Much: n - n/4, Little: n - n/16, Small: max(n/64, 1)}
}

// Grant decides whether a user may have own, all users together having all.
func (s *Shares) Grant(own, all int64, privileged bool) bool {
	switch {
	case privileged:
		return all <= s.Max
	case own <= s.Small:
		return all <= s.Little
	}
	return all <= s.Much
}

// Pool is a scarce resource that all users share.
type Pool struct {
	id      int // immutable
	shares  atomic.Pointer[Shares]
	used    atomic.Int64
	perUser atomic.Int64 // no user but root gets more; 0: no such bound
}

// maxPools is about the number of the kernel's pools.
const maxPools = 48

var lastPool atomic.Int32

// NewPool returns a pool of n.
func NewPool(n int64) *Pool {
	id := int(lastPool.Add(1)) - 1
	if id >= maxPools {
		panic("accounts: too many pools")
	}
	p := &Pool{id: id}
	p.SetMax(n)
	return p
}

// LatePool is a pool that is made at its first use: when memory is known.
type LatePool struct {
	Make func() *Pool // immutable
	pool atomic.Pointer[Pool]
	mu   sync.Mutex // held while it is made
}

// Get returns the pool.
func (l *LatePool) Get() *Pool {
	if p := l.pool.Load(); p != nil {
		return p
	}
	return l.first()
}

func (l *LatePool) first() *Pool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.pool.Load() == nil {
		l.pool.Store(l.Make())
	}
	return l.pool.Load()
}

// SetMax makes it a pool of n; what was given out stays.
func (p *Pool) SetMax(n int64) {
	s := SharesOf(n)
	p.shares.Store(&s)
}

// SetPerUser bounds what a user other than root gets.
func (p *Pool) SetPerUser(n int64) { p.perUser.Store(n) }

// PerUser returns what a user other than root gets, 0 if there is no such bound.
func (p *Pool) PerUser() int64 { return p.perUser.Load() }

// Max returns how much there is.
func (p *Pool) Max() int64 { return p.shares.Load().Max }

// Of returns how much a user has.
func (p *Pool) Of(u *User) int64 { return u.used[p.id].Load() }

// Used returns how much is given out.
func (p *Pool) Used() int64 { return p.used.Load() }

// Charge takes n out of the pool for a user, or reports false.
func (p *Pool) Charge(u *User, n int64) bool {
	if p.Force(u, n); p.within(u, p.used.Load(), u.UID == 0) {
		return true
	}
	p.Release(u, n)
	return false
}

// Force takes n out of the pool even if it has less.
func (p *Pool) Force(u *User, n int64) {
	u.used[p.id].Add(n)
	p.used.Add(n)
}

// Note counts n more given out that nobody is charged for yet, Hold charges n of
// those to a user. Release undoes both, and Note of -n only the first.
func (p *Pool) Note(n int64) { p.used.Add(n) }

// Hold charges a user for n that were noted.
func (p *Pool) Hold(u *User, n int64) { u.used[p.id].Add(n) }

// Release gives n back.
func (p *Pool) Release(u *User, n int64) {
	p.used.Add(-n)
	u.used[p.id].Add(-n)
}

// Room reports whether a user would get n more; a privileged one counts as root.
func (p *Pool) Room(u *User, n int64, privileged bool) bool {
	all := p.used.Load() + n
	if all <= p.shares.Load().Much && p.perUser.Load() == 0 {
		return true
	}
	return p.granted(u.used[p.id].Load()+n, all, privileged)
}

// within is granted of what the user has now, all being given out in total.
func (p *Pool) within(u *User, all int64, privileged bool) bool {
	if all <= p.shares.Load().Much && p.perUser.Load() == 0 {
		return true
	}
	return p.granted(u.used[p.id].Load(), all, privileged)
}

func (p *Pool) granted(own, all int64, privileged bool) bool {
	if most := p.perUser.Load(); !privileged && most > 0 && own > most {
		return false
	}
	return p.shares.Load().Grant(own, all, privileged)
}

// Move charges n to another user, whether or not that one has room.
func (p *Pool) Move(from, to *User, n int64) {
	from.used[p.id].Add(-n)
	to.used[p.id].Add(n)
}
