// Package posixtimer is the timers of timer_create(2): each belongs to a
// process, runs on any clock and sends a signal when it expires.
//
// Lock order: tablesMu, table.mu; timers are called without either. signals.Timer.Counting
// comes before a timer's lock. Exec and
// the end of the last thread delete a process's timers.
package posixtimer

import (
	"math"
	"slices"
	"sync"
	"time"

	"hardtack/abi/linux"
	"hardtack/kernel/base/ktime"
	"hardtack/kernel/base/ledger"
	"hardtack/kernel/process/proc"
	"hardtack/kernel/process/signals"
)

// Notify says what an expiration does.
type Notify struct {
	How    int32        // SIGEV_SIGNAL, SIGEV_THREAD_ID or SIGEV_NONE
	Signal linux.Signal // 0 for SIGEV_NONE
	Value  uint64
	Thread *proc.Thread // for SIGEV_THREAD_ID
	// ValueIsID makes the timer's number the value (no sigevent was given).
	ValueIsID bool
}

// Timer is one timer.
type Timer struct {
	ktime.Timer
	id     int32          // immutable
	proc   *proc.Process  // immutable
	notify Notify         // immutable
	signal *signals.Timer // immutable
}

// table is the timers of one process.
type table struct {
	mu     sync.Mutex
	timers map[int32]*Timer // guarded by mu
	peak   ledger.Peak      // of timers; guarded by mu
	next   int32            // guarded by mu
}

var (
	tablesMu sync.Mutex
	tables   = map[*proc.Process]*table{} // guarded by tablesMu
)

// Create makes a disarmed timer; EAGAIN if the user has too many (RLIMIT_SIGPENDING).
func Create(p *proc.Process, c ktime.Clock, n Notify) (int32, linux.Errno) {
	tablesMu.Lock()
	tab := tables[p]
	if tab == nil {
		tab = &table{timers: make(map[int32]*Timer)}
		tables[p] = tab
	}
	tablesMu.Unlock()
	tab.mu.Lock()
	defer tab.mu.Unlock()
	signal, e := p.NewTimerSignal()
	if e != 0 {
		return 0, e
	}
	for tab.timers[tab.next] != nil {
		tab.next = (tab.next + 1) & math.MaxInt32
	}
	t := &Timer{id: tab.next, proc: p, notify: n, signal: signal}
	tab.next = (tab.next + 1) & math.MaxInt32
	if n.ValueIsID {
		t.notify.Value = uint64(t.id)
	}
	t.Init(c, t.expired, nil)
	signal.Catch = t.Timer.Catch
	tab.timers[t.id] = t
	tab.peak.Note(len(tab.timers))
	return t.id, 0
}

func tableOf(p *proc.Process) *table {
	tablesMu.Lock()
	defer tablesMu.Unlock()
	return tables[p]
}

// Find returns a process's timer, or nil.
func Find(p *proc.Process, id int32) *Timer {
	tab := tableOf(p)
	if tab == nil {
		return nil
	}
	tab.mu.Lock()
	defer tab.mu.Unlock()
	return tab.timers[id]
}

// Delete stops and forgets a timer; false if there is none.
func Delete(p *proc.Process, id int32) bool {
	tab := tableOf(p)
	if tab == nil {
		return false
	}
	tab.mu.Lock()
	t := tab.timers[id]
	if delete(tab.timers, id); tab.peak.Empty(len(tab.timers)) {
		tab.timers = make(map[int32]*Timer)
	}
	tab.mu.Unlock()
	if t == nil {
		return false
	}
	t.end()
	return true
}

// Info is what /proc/PID/timers tells of a timer.
type Info struct {
	ID, Clock int32
	Notify
}

// Each returns a process's timers the last one first.
func Each(p *proc.Process) (list []Info) {
	tab := tableOf(p)
	if tab == nil {
		return nil
	}
	tab.mu.Lock()
	for _, t := range tab.timers {
		list = append(list, Info{t.id, t.ClockID(), t.notify})
	}
	tab.mu.Unlock()
	slices.SortFunc(list, func(a, b Info) int { return int(b.ID - a.ID) })
	return list
}

// DeleteAll stops and forgets all timers of a process.
func DeleteAll(p *proc.Process) {
	tablesMu.Lock()
	tab := tables[p]
	delete(tables, p)
	tablesMu.Unlock()
	if tab == nil {
		return
	}
	tab.mu.Lock()
	timers := tab.timers
	tab.timers = nil
	tab.mu.Unlock()
	for _, t := range timers {
		t.end()
	}
}

func (t *Timer) end() {
	t.Stop()
	t.signal.End()
}

// Set arms the timer, or disarms it, and returns what it was set to.
func (t *Timer) Set(s ktime.Setting, absolute bool) ktime.Setting {
	old := t.Timer.Set(s, absolute)
	t.signal.Reset()
	return old
}

// Overrun returns how many expirations came while the signal was pending that was
// taken last.
func (t *Timer) Overrun() int32 { return t.signal.Overrun() }

// expired is the call-back: it counts and sends the signal. A timer without one is
// only asked for its time, which needs no call-back.
func (t *Timer) expired() {
	if t.notify.How == linux.SIGEV_NONE {
		return
	}
	t.signal.Counting.Lock()
	defer t.signal.Counting.Unlock()
	n := t.TakeOnly()
	if n == 0 {
		return
	}
	info := linux.Siginfo{Signo: int32(t.notify.Signal), Code: linux.SI_TIMER}
	info.SetTimer(t.id, int32(min(n-1, math.MaxInt32)), t.notify.Value)
	delay := time.Duration(0)
	if !t.proc.SendTimer(t.signal, t.notify.Thread, &info) {
		delay = t.signal.Delay()
	}
	t.Resume(delay)
}
