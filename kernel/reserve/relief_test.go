package reserve

import (
	"slices"
	"testing"
	"time"
)

// model is a machine without processes.
type model struct {
	garbage           int64
	short             bool
	pages, caches     int64 // what can be given back
	idle              int64 // free pages that the heap keeps
	free              int64
	held              []int64 // by processes, which die in this order
	deaths            int     // steps until a victim is gone
	ending            int     // steps until what others left is given up
	left              int64   // that
	hidden            int64   // garbage that only a sweep finds
	rested            int
	log               []string
	hurried, stubborn bool
}

type modelVictim struct {
	m     *model
	holds int64
}

func (v *modelVictim) Gone() bool { return v.holds == 0 }
func (v *modelVictim) Hurry()     { v.m.hurried = true; v.end() }

func (v *modelVictim) end() {
	v.m.free += v.holds
	v.holds = 0
}

func (m *model) relief(heap, pages *Queue) *Relief {
	var dying *modelVictim
	steps := 0
	return &Relief{Heap: heap, Pages: pages, Machine: Machine{
		Survey: func() {},
		Short:  func() bool { return m.short && m.free < 100 },
		GiveBack: func() bool {
			m.free += m.idle
			defer func() { m.idle = 0 }()
			return m.idle > 0
		},
		Reclaim: func(n int) int {
			m.log = append(m.log, "reclaim")
			m.free += m.pages
			defer func() { m.pages = 0 }()
			return int(m.pages)
		},
		Squeeze: func() bool {
			m.log = append(m.log, "squeeze")
			m.free += m.caches
			defer func() { m.caches = 0 }()
			return m.caches > 0
		},
		Ending:   func() bool { return m.ending > 0 },
		Doubtful: func() bool { return m.hidden > 0 },
		Sweep: func() {
			m.log = append(m.log, "sweep")
			m.free, m.garbage, m.hidden = m.free+m.garbage+m.hidden, 0, 0
		},
		Kill: func() Victim {
			m.log = append(m.log, "kill")
			if len(m.held) == 0 {
				m.free += 1 // somebody ends by himself
				return nil
			}
			dying, steps = &modelVictim{m, m.held[0]}, 0
			m.held = m.held[1:]
			return dying
		},
		Collect: func() {
			m.log = append(m.log, "collect")
			m.free, m.garbage = m.free+m.garbage, 0
		},
		Rested: func() { m.rested++ },
		Sleep: func(time.Duration) {
			if m.ending > 0 {
				if m.ending--; m.ending == 0 {
					m.free, m.left = m.free+m.left, 0
				}
			}
			if steps++; dying != nil && steps == m.deaths && !m.stubborn {
				dying.end()
			}
		},
	}}
}

func TestReliefTakesTheCheapestFirst(t *testing.T) {
	for _, x := range []struct {
		name string
		m    model
		need int64
		want []string
	}{
		{"free pages of the heap do", model{idle: 100, pages: 100, held: []int64{100}}, 50, nil},
		{"clean pages do", model{pages: 100}, 50, []string{"reclaim"}},
		{"caches do", model{caches: 100}, 50, []string{"reclaim", "squeeze"}},
		{"one dies", model{held: []int64{100}, deaths: 2}, 50, []string{"reclaim", "squeeze", "kill"}},
		{"two die, one after the other", model{held: []int64{20, 100}, deaths: 2}, 50,
			[]string{"reclaim", "squeeze", "kill", "collect", "collect", "reclaim", "squeeze", "sweep", "kill"}},
		{"its garbage is collected", model{held: []int64{20}, deaths: 2, garbage: 40}, 50,
			[]string{"reclaim", "squeeze", "kill", "collect"}},
		{"what ended processes left is waited for", model{ending: 3, left: 50}, 50, []string{"reclaim", "squeeze"}},
		{"but not for ever", model{ending: 1000, left: 50, held: []int64{100}, deaths: 2}, 50, []string{"reclaim", "squeeze", "kill"}},
		{"a doubtful heap is swept before", model{hidden: 50, held: []int64{100}}, 50, []string{"reclaim", "squeeze", "sweep"}},
		{"nobody is left to die", model{free: 49}, 50, []string{"reclaim", "squeeze", "kill", "collect"}},
	} {
		m := x.m
		q := queueOf(func() int64 { return m.free })
		c := enter(q, x.need)
		r := m.relief(queueOf(func() int64 { return 0 }), q)
		r.run()
		if !c.Granted() || !slices.Equal(m.log, x.want) || m.rested != 1 {
			t.Errorf("%s: granted is %v after %v, want %v; rested %d times", x.name, c.Granted(), m.log, x.want, m.rested)
		}
	}
}

func TestReliefTakesFromTheStuck(t *testing.T) {
	m := model{held: []int64{100}, stubborn: true}
	q := queueOf(func() int64 { return m.free })
	c := enter(q, 50)
	m.relief(queueOf(func() int64 { return 0 }), q).run()
	if !c.Granted() || !m.hurried {
		t.Errorf("granted is %v, hurried is %v", c.Granted(), m.hurried)
	}
}

func TestReliefOfTheHeap(t *testing.T) {
	m := model{short: true, held: []int64{60, 60}, deaths: 1}
	heap := queueOf(func() int64 { return m.free })
	m.relief(heap, queueOf(func() int64 { return 0 })).run()
	want := []string{"reclaim", "squeeze", "kill", "collect", "collect", "reclaim", "squeeze", "sweep", "kill"}
	if !slices.Equal(m.log, want) {
		t.Errorf("%v, want %v", m.log, want)
	}
}
