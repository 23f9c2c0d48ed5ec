package inet

import (
	"time"

	"gvisor.dev/gvisor/pkg/tcpip"

	"hardtack/abi/linux"
	"hardtack/kernel/base/wait"
)

// Forever is a lifetime without an end.
const Forever = ^uint32(0)

// Lifetime says how long an address may be used for new connections, and how long it
// stays. The zero value is for ever.
type Lifetime struct {
	Limited          bool
	Preferred, Valid uint32 // seconds from Changed; Forever for no end
	Made, Changed    int64  // monotonic time
}

// begin notes that the address has come, or that it has a new lifetime.
func (l *Lifetime) begin() {
	l.Changed = wait.Now()
	if l.Made == 0 {
		l.Made = l.Changed
	}
}

// ends reports whether the address goes by itself.
func (l *Lifetime) ends() bool { return l.Limited && l.Valid != Forever }

// limited reports whether time changes anything.
func (l *Lifetime) limited() bool { return l.Limited && (l.Valid != Forever || l.Preferred != Forever) }

// Left returns how many seconds are left, and Forever for no end.
func (l *Lifetime) Left() (preferred, valid uint32) {
	if !l.Limited {
		return Forever, Forever
	}
	passed := (wait.Now() - l.Changed) / 1e9
	left := func(v uint32) uint32 {
		if v == Forever {
			return Forever
		}
		return uint32(max(int64(v)-passed, 0))
	}
	return left(l.Preferred), left(l.Valid)
}

// never is later than everything.
const never = 1<<63 - 1

// at returns when a lifetime ends.
func (l *Lifetime) at(v uint32) int64 {
	if v == Forever {
		return never
	}
	return l.Changed + int64(v)*1e9
}

// ChangeLifetime gives an address another lifetime, and other flags.
func (n *Net) ChangeLifetime(by By, i *Interface, a tcpip.AddressWithPrefix, x AddressNote) linux.Errno {
	n.changing.Lock()
	defer n.changing.Unlock()
	for _, own := range n.Addresses(i.Index) {
		if own.Address != a.Address {
			continue
		}
		old := n.AddressNoteOf(i.Index, a.Address)
		x.Life.Made = old.Life.Made
		x.Life.begin()
		old.Life, old.Flags = x.Life, x.Flags
		n.noteAddress(i.Index, a.Address, old)
		n.tell(Event{By: by, Type: linux.RTM_NEWADDR, Interface: i, Address: own})
		if x.Life.limited() {
			n.armExpiry()
		}
		return 0
	}
	return linux.EADDRNOTAVAIL
}

// armExpiry has expire run soon, which sets the timer for what comes next; called with
// changing held. Without an address that ends there is no timer.
func (n *Net) armExpiry() {
	if n.expiry == nil {
		n.expiry = &timer{fn: func() { go n.expire() }}
	}
	n.expiry.Reset(0)
}

// ending is an address with a lifetime.
type ending struct {
	i *Interface
	a tcpip.AddressWithPrefix
	x AddressNote
}

// expire takes the addresses away whose time is over, marks those that are no longer
// preferred, and sets the timer for the next.
func (n *Net) expire() {
	n.changing.Lock()
	defer n.changing.Unlock()
	next := int64(never)
	for _, e := range n.endings() {
		now := wait.Now()
		gone, old := e.x.Life.at(e.x.Life.Valid), e.x.Life.at(e.x.Life.Preferred)
		deprecated := e.x.Flags&linux.IFA_F_DEPRECATED != 0
		switch {
		case gone <= now:
			n.takeWithSecondaries(By{}, e.i, e.a.Address)
			continue
		case old <= now && !deprecated:
			e.x.Flags |= linux.IFA_F_DEPRECATED
			n.noteAddress(e.i.Index, e.a.Address, e.x)
			n.tell(Event{Type: linux.RTM_NEWADDR, Interface: e.i, Address: e.a})
		case !deprecated:
			next = min(next, old)
		}
		next = min(next, gone)
	}
	if next != never {
		n.expiry.Reset(time.Duration(next - wait.Now()))
	}
}

// endings returns the addresses that time changes.
func (n *Net) endings() (list []ending) {
	for _, i := range n.Interfaces() {
		for _, a := range n.Addresses(i.Index) {
			if x := n.AddressNoteOf(i.Index, a.Address); x.Life.limited() {
				list = append(list, ending{i, a, x})
			}
		}
	}
	return list
}
