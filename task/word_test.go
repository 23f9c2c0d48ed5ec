package task

import (
	"fmt"
	"testing"
)

// A model of one worker's deque: the owner pushes and pops through the real
// transitions of word, each atomic access one step, and two thieves steal.
// All interleavings are walked through, states met before are not entered again.
//
// What is checked in each state: no task is run twice, none is touched by the
// owner while a thief has it, and at the end every task has been run once.

const modelTasks = 4

type ownerStep uint8

const (
	ownNext     ownerStep = iota // begin the next operation of the program
	ownShareCAS                  // share: the word has been loaded
	ownPopLoad                   // pop: of a shared frame
	ownPopCAS
	ownWait // the frame was stolen: until its thief is done
	ownEnd
)

type thiefStep uint8

const (
	thLoad thiefStep = iota
	thCAS
	thRun
)

type thief struct {
	step  thiefStep
	old   word
	frame int8
	tries int8
}

// model is a state; it is comparable, so that a map can hold those seen.
type model struct {
	word   word
	split  uint32 // the owner's own copy
	top    uint32
	pc     int8
	step   ownerStep
	old    word
	done   [modelTasks]bool // frame's state says done
	task   [modelTasks]int8 // which task is in the frame
	ran    [16]int8         // how often each task was run
	pushes int8
	th     [2]thief
}

// A program is a string of the owner's operations: p pushes, s shares, o pops.
type checker struct {
	t       *testing.T
	program string
	seen    map[model]bool
	ends    int
	buggy   func(word, uint32) (word, bool) // a wrong takeBack, for the test of the test
	failed  string
}

func (c *checker) fail(format string, args ...any) {
	if c.failed == "" {
		c.failed = c.program + ": " + fmt.Sprintf(format, args...)
	}
}

func (c *checker) walk(m model) {
	if c.failed != "" || c.seen[m] {
		return
	}
	c.seen[m] = true
	moved := c.owner(m)
	for i := range m.th {
		if c.thief(m, i) {
			moved = true
		}
	}
	if !moved {
		if m.step != ownEnd {
			c.fail("nobody can go on: %+v", m)
			return
		}
		c.ends++
		for i := int8(0); i < m.pushes; i++ {
			if m.ran[i] != 1 {
				c.fail("task %d was run %d times", i, m.ran[i])
			}
		}
	}
}

func (c *checker) run(m *model, frame uint32, who string) {
	m.ran[m.task[frame]]++
	if m.ran[m.task[frame]] > 1 {
		c.fail("%s runs task %d a second time", who, m.task[frame])
	}
}

func (c *checker) owner(m model) bool {
	switch m.step {
	case ownEnd:
		return false
	case ownNext:
		if int(m.pc) == len(c.program) {
			m.step = ownEnd
			c.walk(m)
			return true
		}
		op := c.program[m.pc]
		m.pc++
		switch op {
		case 'p':
			if m.split > m.top {
				c.fail("a push into a shared frame")
				return true
			}
			m.task[m.top] = m.pushes
			m.pushes++
			m.top++
		case 's':
			m.old = m.word
			m.step = ownShareCAS
		case 'o':
			if i := m.top - 1; i >= m.split { // private: no atomic access
				c.run(&m, i, "the owner")
				m.top--
			} else {
				m.step = ownPopLoad
			}
		}
	case ownShareCAS:
		next, ok := m.old.share(m.top)
		if !ok {
			m.step = ownNext
			break
		}
		for i := m.old.split(); i < next.split(); i++ {
			m.done[i] = false
		}
		if m.word != m.old { // a thief came between: once more
			m.old = m.word
			break
		}
		m.word, m.split, m.step = next, next.split(), ownNext
	case ownPopLoad:
		m.old, m.step = m.word, ownPopCAS
	case ownPopCAS:
		i := m.top - 1
		take := word.takeBack
		if c.buggy != nil {
			take = c.buggy
		}
		next, ok := take(m.old, i)
		if !ok {
			m.step = ownWait
			break
		}
		if m.word != m.old {
			m.step = ownPopLoad
			break
		}
		m.word, m.split = next, next.split()
		c.run(&m, i, "the owner")
		m.top--
		m.step = ownNext
	case ownWait:
		i := m.top - 1
		if !m.done[i] {
			return false
		}
		if m.word.tail() != m.word.split() || m.word.split() != i+1 {
			c.fail("frame %d is released while the word is %d, %d", i, m.word.tail(), m.word.split())
		}
		m.word = m.word.release(i)
		m.split = i
		m.top--
		m.step = ownNext
	}
	c.walk(m)
	return true
}

func (c *checker) thief(m model, k int) bool {
	th := &m.th[k]
	switch th.step {
	case thLoad:
		if th.tries == 0 {
			return false
		}
		th.tries--
		th.old = m.word
		if _, _, ok := th.old.steal(); !ok {
			break // looked, found nothing
		}
		th.step = thCAS
	case thCAS:
		next, i, _ := th.old.steal()
		if m.word != th.old {
			th.step = thLoad
			break
		}
		m.word = next
		th.frame, th.step = int8(i), thRun
	case thRun:
		c.run(&m, uint32(th.frame), "a thief")
		m.done[th.frame] = true
		th.step = thLoad
	}
	c.walk(m)
	return true
}

// programs are all sequences of n operations that push before they pop and pop
// all they push.
func programs(n int) []string {
	var out []string
	var grow func(s string, depth int)
	grow = func(s string, depth int) {
		if len(s) == n {
			if depth == 0 {
				out = append(out, s)
			}
			return
		}
		if depth < modelTasks {
			grow(s+"p", depth+1)
		}
		if depth > 0 && s[len(s)-1] != 's' {
			grow(s+"s", depth)
		}
		if depth > 0 {
			grow(s+"o", depth-1)
		}
	}
	grow("", 0)
	return out
}

func check(t *testing.T, program string, buggy func(word, uint32) (word, bool)) (string, int) {
	c := &checker{t: t, program: program, seen: map[model]bool{}, buggy: buggy}
	var m model
	m.th[0].tries, m.th[1].tries = 3, 2
	c.walk(m)
	if c.ends == 0 && c.failed == "" {
		c.fail("no end was reached")
	}
	return c.failed, len(c.seen)
}

func TestDequeModel(t *testing.T) {
	n, states := 9, 0
	if testing.Short() {
		n = 7
	}
	count := 0
	for k := 2; k <= n; k++ {
		for _, p := range programs(k) {
			why, seen := check(t, p, nil)
			if why != "" {
				t.Fatal(why)
			}
			states += seen
			count++
		}
	}
	// Longer ones with all four frames in use.
	for _, p := range []string{"ppppssoooo", "pppspsoooo", "ppsopspsooo", "ppppsosososo"} {
		why, seen := check(t, p, nil)
		if why != "" {
			t.Fatal(why)
		}
		states += seen
		count++
	}
	t.Logf("%d programs, %d states", count, states)
	if states < 100_000 {
		t.Errorf("only %d states: the model does not branch", states)
	}
}

// The model must notice wrong transitions.
func TestDequeModelNotices(t *testing.T) {
	bugs := map[string]func(word, uint32) (word, bool){
		"takes a stolen frame": func(w word, i uint32) (word, bool) {
			return pack(min(w.tail(), i), min(w.tail(), i)), true
		},
		"leaves the frame shared": func(w word, i uint32) (word, bool) {
			next, ok := w.takeBack(i)
			if !ok {
				return w, false
			}
			return pack(next.tail(), i+1), true
		},
	}
	for name, bug := range bugs {
		found := false
		for _, p := range programs(6) {
			if why, _ := check(t, p, bug); why != "" {
				found = true
				break
			}
		}
		if !found {
			t.Errorf("a deque that %s passes", name)
		}
	}
}
