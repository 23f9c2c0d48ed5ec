package monitor

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// bellState is a channel's bell in the model: two who ring, the bottom half of the kernel that is
// rung for, and who reads there. Steps are what others can come between.
type bellState struct {
	rung, set, irq, told bool // told is guarded by lock
	lock                 byte // who has it: 'b', 'r' or 0
	asleep, woken        bool // of the reader, in the queue

	left    [2]int8 // rings that each has yet to do
	ringer  [2]int8 // where each is
	bottom  int8
	tell    bool
	reader  int8
	unheard bool // a ring came since the reader last took one
}

// The bugs that can be planted.
const (
	bugNone        = iota
	bugLooksFirst  // the reader looks before it is in the queue
	bugNoLock      // told is taken back after the bit, without the lock
	bugTakesInHalf // told is taken back before the bit, without the lock
	bugClearsLate  // the bottom half clears Set after it has looked
	bugSetFirst    // who rings sets Set before the bit
	bugs
)

// next are the states that one step leads to.
func (s bellState) next(bug int) (all []bellState) {
	for i := range s.ringer {
		if n, ok := s.ring(i, bug); ok {
			all = append(all, n)
		}
	}
	if n, ok := s.hear(bug); ok {
		all = append(all, n)
	}
	if n, ok := s.read(bug); ok {
		all = append(all, n)
	}
	return all
}

// ring is a step of ringBell.
func (s bellState) ring(i, bug int) (bellState, bool) {
	if s.left[i] == 0 {
		return s, false
	}
	done := func() {
		s.left[i]--
		s.ringer[i] = 0
	}
	switch {
	case s.ringer[i] == 0 && bug == bugSetFirst:
		was := s.set
		s.set, s.ringer[i] = true, 1
		if was {
			s.ringer[i] = 3
		}
	case s.ringer[i] == 3 || s.ringer[i] == 1 && bug == bugSetFirst:
		s.irq = s.irq || s.ringer[i] == 1
		s.rung, s.unheard = true, true
		done()
	case s.ringer[i] == 0:
		was := s.rung
		s.rung, s.unheard, s.ringer[i] = true, true, 1
		if was {
			done()
		}
	case s.ringer[i] == 1:
		was := s.set
		s.set, s.ringer[i] = true, 2
		if was {
			done()
		}
	default:
		s.irq = true
		done()
	}
	return s, true
}

// hear is a step of the bottom half.
func (s bellState) hear(bug int) (bellState, bool) {
	switch s.bottom {
	case 0:
		if !s.irq {
			return s, false
		}
		s.irq, s.bottom = false, 1
	case 1:
		if s.bottom = 0; s.set {
			s.bottom = 2
			s.set = bug == bugClearsLate
		}
	case 2:
		if s.lock != 0 {
			return s, false
		}
		s.lock, s.bottom = 'b', 3
	case 3:
		s.tell, s.bottom = s.rung && !s.told, 4
	case 4:
		if s.tell {
			s.told = true
			s.woken = s.woken || s.asleep
		}
		s.bottom = 5
	default:
		s.lock, s.bottom = 0, 0
		if bug == bugClearsLate {
			s.set = false
		}
	}
	return s, true
}

// read is a step of who takes rings, and sleeps while there are none.
func (s bellState) read(bug int) (bellState, bool) {
	locks := bug != bugNoLock && bug != bugTakesInHalf
	switch s.reader {
	case 0: // looks; sleeps if there is none
		s.reader = 10
		if s.rung {
			s.reader = 1
		}
	case 1:
		if locks {
			if s.lock != 0 {
				return s, false
			}
			s.lock = 'r'
		}
		s.reader = 2
	case 2:
		if bug == bugNoLock {
			s.rung, s.unheard = false, false
		} else {
			s.told = false
		}
		s.reader = 3
	case 3:
		if bug == bugNoLock {
			s.told = false
		} else {
			s.rung, s.unheard = false, false
		}
		if locks {
			s.lock = 0
		}
		s.reader = 0
	case 10:
		if s.asleep, s.reader = true, 11; bug == bugLooksFirst {
			s.reader = 12
		}
	case 11: // looks once more
		if s.reader = 12; s.rung {
			s.asleep, s.woken, s.reader = false, false, 1
		}
	default:
		if !s.woken {
			return s, false
		}
		s.asleep, s.woken, s.reader = false, false, 0
	}
	return s, true
}

// lost looks through all that can happen, and returns how many states there are, and whether one of
// them is the end of all with a ring that nobody hears.
func lost(bug int) (states int, lost bool) {
	seen := map[bellState]bool{}
	todo := []bellState{{left: [2]int8{3, 3}}}
	for len(todo) > 0 {
		s := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if seen[s] {
			continue
		}
		seen[s] = true
		next := s.next(bug)
		if len(next) == 0 && (s.unheard || s.left != [2]int8{} || s.bottom != 0) {
			lost = true
		}
		todo = append(todo, next...)
	}
	return len(seen), lost
}

// No ring is lost however those who ring, the bottom half and the reader interleave; and the model finds
// the bugs that are planted in it.
func TestBellModel(t *testing.T) {
	for bug := range bugs {
		states, lost := lost(bug)
		if lost != (bug != bugNone) {
			t.Errorf("bug %d: lost is %v in %d states", bug, lost, states)
		}
	}
}

// Two ends that sleep ring for each other, while others do, too. A lost ring would be waited for for ever.
func TestBellsNotLost(t *testing.T) {
	ms, hosts, _ := machine(t, 3)
	var work sync.WaitGroup
	for _, w := range ways {
		x, y := ringed(t, ms, w[0], w[1], 1)
		var word atomic.Int32
		end := func(c *Channel, mine int32) {
			rang := onRung(c)
			for i := int32(0); i < 2000; i++ {
				for word.Load() != 2*i+mine {
					if rung, gone := c.TakeRung(); gone {
						t.Error("the end")
						return
					} else if !rung {
						<-rang
					}
				}
				word.Add(1)
				c.Ring()
			}
		}
		work.Go(func() { end(x, 0) })
		work.Go(func() { end(y, 1) })
		t.Cleanup(x.Close)
		t.Cleanup(y.Close)
	}
	work.Wait()
	for i, h := range hosts {
		t.Logf("kernel %d was interrupted %d times", i, h.rung.Load())
	}
}

// Who rings without end interrupts the other kernel once, until his ring is taken; the kernel that passes
// rings on now and then.
func TestBellsBounded(t *testing.T) {
	for _, w := range ways {
		ms, hosts, _ := machine(t, 3)
		x, y := ringed(t, ms, w[0], w[1], 1)
		var told atomic.Int32
		rang := make(chan struct{}, 1)
		y.OnRung(func() {
			told.Add(1)
			select {
			case rang <- struct{}{}:
			default:
			}
		})
		before := hosts[w[1]].rung.Load()
		start := time.Now()
		for range 100000 {
			x.Ring()
		}
		<-rang
		may := int32(1)
		if w[0] != 0 && w[1] != 0 {
			may = int32(time.Since(start)/time.Millisecond) + 2 // it hears of the first ring, and of what it left
		}
		if n := told.Load(); n > 1 {
			t.Errorf("%v: told %d times of rings that nobody takes", w, n)
		}
		// The monitors' own calls are over; what they still send is little.
		if n := hosts[w[1]].rung.Load() - before; n > may+10 {
			t.Errorf("%v: interrupted %d times", w, n)
		}
		if w[0] != 0 && w[1] != 0 {
			if n := hosts[0].rung.Load(); n > 1000 {
				t.Errorf("%v: the kernel between was interrupted %d times", w, n)
			}
		}
		// A ring that was left between comes after the first is taken.
		y.TakeRung()
		x.Ring()
		<-rang
		x.Close()
		y.Close()
		leave(ms[0], hosts[0].ram, 1)
		leave(ms[0], hosts[0].ram, 2)
	}
}

// The places of channels are used again; what was rung for the one before is not the next one's.
func TestBellsOfOthers(t *testing.T) {
	ms, _, _ := machine(t, 2)
	x, y := ringed(t, ms, 0, 1, 1)
	place := y.mine % maxChannels
	rang := onRung(y)
	x.Ring()
	<-rang
	y.Close()
	x.Close()
	for {
		x, y := ringed(t, ms, 0, 1, 1)
		if rung, _ := y.TakeRung(); rung {
			t.Error("a new channel was rung")
		}
		x.Close()
		y.Close()
		if y.mine%maxChannels == place {
			break
		}
	}
}
