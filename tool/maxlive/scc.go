package maxlive

// circles lists the functions that the entry points reach in groups: those that call
// each other in a circle are one group, and callees come before callers.
func circles(roots []*function, callees func(*function) []*function) [][]*function {
	t := tarjan{callees: callees, index: map[*function]int{}, low: map[*function]int{}, on: map[*function]bool{}}
	for _, r := range roots {
		if _, ok := t.index[r]; !ok {
			t.visit(r)
		}
	}
	return t.out
}

// tarjan is Tarjan's algorithm with a stack of its own: call graphs are deep.
type tarjan struct {
	callees func(*function) []*function
	index   map[*function]int
	low     map[*function]int
	on      map[*function]bool
	stack   []*function
	out     [][]*function
}

type frame struct {
	fn   *function
	next []*function
}

func (t *tarjan) open(fn *function) frame {
	t.index[fn] = len(t.index)
	t.low[fn] = t.index[fn]
	t.stack = append(t.stack, fn)
	t.on[fn] = true
	return frame{fn, t.callees(fn)}
}

func (t *tarjan) visit(root *function) {
	frames := []frame{t.open(root)}
	for len(frames) > 0 {
		f := &frames[len(frames)-1]
		if len(f.next) > 0 {
			c := f.next[0]
			f.next = f.next[1:]
			if _, seen := t.index[c]; !seen {
				frames = append(frames, t.open(c))
			} else if t.on[c] {
				t.low[f.fn] = min(t.low[f.fn], t.index[c])
			}
			continue
		}
		fn := f.fn
		frames = frames[:len(frames)-1]
		if len(frames) > 0 {
			up := frames[len(frames)-1].fn
			t.low[up] = min(t.low[up], t.low[fn])
		}
		if t.low[fn] == t.index[fn] {
			t.close(fn)
		}
	}
}

func (t *tarjan) close(fn *function) {
	for i := len(t.stack) - 1; ; i-- {
		t.on[t.stack[i]] = false
		if t.stack[i] == fn {
			group := append([]*function(nil), t.stack[i:]...)
			t.stack = t.stack[:i]
			t.out = append(t.out, group)
			return
		}
	}
}
