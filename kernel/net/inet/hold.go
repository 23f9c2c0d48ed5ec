package inet

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"hardtack/kernel/base/wait"
)

// holding is data that TCP_CORK or MSG_MORE keeps back within the machine: a
// timer sends it if the program forgets.
type holding struct {
	end    atomic.Int64 // when it goes at the latest; 0: nothing is kept back
	listed bool         // guarded by holders.mu
}

// holders are the connections that the timer looks at. All share one timer: a
// timer each would cost more than what is kept back, and slow the scheduler down.
// holders.mu is a leaf.
var holders struct {
	mu    sync.Mutex
	list  []*TCP      // guarded by mu
	timer *time.Timer // made at the first use, set while the list has any; guarded by mu
}

// holdTime is how long data may be kept back, and holdGrain how long more.
const (
	holdTime  = 200 * time.Millisecond
	holdGrain = 10 * time.Millisecond
)

// holdBegin notes that data is kept back.
func (s *TCP) holdBegin() {
	if s.hold.end.Load() != 0 {
		return
	}
	s.hold.end.Store(wait.Now() + int64(holdTime))
	h := &holders
	h.mu.Lock()
	if !s.hold.listed {
		s.hold.listed = true
		h.list = append(h.list, s)
		if len(h.list) == 1 {
			armHolders(holdTime)
		}
	}
	h.mu.Unlock()
}

// armHolders sets the timer; called with holders.mu held.
func armHolders(d time.Duration) {
	if h := &holders; h.timer == nil {
		h.timer = time.AfterFunc(d, holdOver)
	} else {
		h.timer.Reset(d)
	}
}

// holdOver is the timer: it sends what has been kept back for long enough.
func holdOver() {
	h := &holders
	now := wait.Now()
	next := now + int64(holdTime)
	var over []*TCP
	h.mu.Lock()
	h.list = slices.DeleteFunc(h.list, func(s *TCP) bool {
		end := s.hold.end.Load()
		if end > now {
			next = min(next, end)
			return false
		}
		s.hold.listed = false
		if end != 0 {
			over = append(over, s)
		}
		return true
	})
	if len(h.list) > 0 {
		armHolders(max(time.Duration(next-now), holdGrain))
	}
	h.mu.Unlock()
	for _, s := range over {
		s.letLocal()
	}
}

// letLocal sends what is kept back.
func (s *TCP) letLocal() {
	if s.hold.end.Load() != 0 {
		s.hold.end.Store(0)
	}
	if x := s.far.Load(); x != nil && x.in.Let() {
		x.Q.Notify(evIn)
	}
}
