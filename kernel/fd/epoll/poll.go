package epoll

import (
	"sync"

	"hardtack/abi/linux"
	"hardtack/kernel/base/accounts"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/wait"
	"hardtack/kernel/fs/vfs"
)

// PollSet is the files of one poll(2) or select(2) in progress. Sets are
// recycled, so that calls with up to smallSet files allocate nothing.
//
//	s, e := NewPollSet(user, n)
//	for … { s.Add(file, events) }       // takes the file's reference over
//	n, e := s.Wait(c, deadline, poll)
//	for i := range … { s.Got(i) }
//	s.Free()
type PollSet struct {
	slots []pollSlot
	small [smallSet]pollSlot
	user  *accounts.User // who is charged for a large set
	// Buf is for the caller's copies of user structures.
	Buf [smallSet * 8]byte
}

// pollSlot is one file of a set.
type pollSlot struct {
	file  *vfs.File   // nil for a slot that cannot become ready
	queue *wait.Queue // where entry is, nil if nowhere
	want  wait.Events
	got   wait.Events
	entry wait.Entry
}

const (
	smallSet = 64
	// slotCost is the memory of a slot; sets larger than smallSet may together
	// take maxSlots: 16 MiB, of which no user can take all.
	slotCost = 128
	maxSlots = 16 << 20 / slotCost
)

var (
	pollSets   = sync.Pool{New: func() any { return new(PollSet) }}
	largeSlots = accounts.NewPool(maxSlots) // slots of sets larger than smallSet
)

// NewPollSet returns a user's set for up to n files; ENOMEM if too many wait at once.
func NewPollSet(u *accounts.User, n int) (*PollSet, linux.Errno) {
	s := pollSets.Get().(*PollSet)
	if n <= smallSet {
		s.slots = s.small[:0]
		return s, 0
	}
	if !largeSlots.Charge(u, int64(n)) {
		pollSets.Put(s)
		return nil, linux.ENOMEM
	}
	s.slots, s.user = make([]pollSlot, 0, n), u
	return s, 0
}

// Free ends the set and drops its references.
func (s *PollSet) Free() {
	for i := range s.slots {
		p := &s.slots[i]
		if p.queue != nil {
			p.queue.Remove(&p.entry)
			p.queue = nil
		}
		if p.file != nil {
			p.file.Put()
			p.file = nil
		}
	}
	if n := cap(s.slots); n > smallSet {
		largeSlots.Release(s.user, int64(n))
	}
	s.slots, s.user = nil, nil
	pollSets.Put(s)
}

// Add appends a file, whose reference the set takes over, with the events
// wanted besides what is always told: Err and Hup. A nil file never becomes
// ready; events already known go to got (Nval for a bad descriptor).
func (s *PollSet) Add(f *vfs.File, want, got wait.Events) {
	n := len(s.slots)
	s.slots = s.slots[:n+1]
	p := &s.slots[n]
	p.file, p.want, p.got, p.queue = f, want|wait.Err|wait.Hup, got, nil
}

// AddStrict is Add for select, where Err and Hup count only if wanted.
func (s *PollSet) AddStrict(f *vfs.File, want, got wait.Events) {
	s.Add(f, want, got)
	s.slots[len(s.slots)-1].want = want
}

// Got returns the events that hold for the i-th file added.
func (s *PollSet) Got(i int) wait.Events { return s.slots[i].got }

// scan asks every file and returns how many are ready. With listen it enters
// the queues on the way, as long as nothing is ready.
func (s *PollSet) scan(c *caller.Ctx, listen bool) int {
	n := 0
	for i := range s.slots {
		p := &s.slots[i]
		if p.file == nil {
			if p.got != 0 {
				n++
			}
			continue
		}
		if listen && n == 0 {
			if q := p.file.Ops.Queue(p.file); q != nil {
				q.Add(&p.entry, &c.Sleeper, p.want)
				p.queue = q
			}
		}
		if p.got = p.file.Ops.Ready(p.file) & p.want; p.got != 0 {
			n++
		}
	}
	return n
}

// Wait blocks until a file is ready and returns how many are: 0 when the
// deadline passed (as for wait.Sleeper.Sleep; poll asks not to wait at all),
// EINTR when a signal is pending and nothing is ready, even after the deadline.
func (s *PollSet) Wait(c *caller.Ctx, deadline int64, poll bool) (int, linux.Errno) {
	if n := s.scan(c, false); n > 0 {
		return n, 0
	}
	if poll {
		return 0, interrupted(c)
	}
	for listen := true; ; listen = false {
		c.Arm()
		if n := s.scan(c, listen); n > 0 {
			return n, 0
		}
		if c.Sleep(deadline) != wait.Woken {
			return 0, interrupted(c)
		}
	}
}

// interrupted is EINTR if a signal is pending.
func interrupted(c *caller.Ctx) linux.Errno {
	if c.Interrupted() {
		return linux.EINTR
	}
	return 0
}
