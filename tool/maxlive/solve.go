package maxlive

import (
	"fmt"
	"go/ast"
	"go/token"
	"slices"
	"strings"

	"golang.org/x/tools/go/ssa"
)

// Bound is the result for one entry point.
type Bound struct {
	Name   string
	Num    int64 // of a table's row; -1: of another entry point
	Func   string
	Cost   Cost
	Causes []*Cause // why there is no bound; none: the cost is one
	Paths  []string // how each cause is reached

	// Point says that it is a point of reservation and not an entry point that was asked
	// for. Points are those that the call reaches, also by way of others, by name;
	// Direct are those on its own way.
	Point  bool
	Points []string
	Direct []string
}

// Whole says that the function has a bound and that all points that it reaches have. A function of
// the runtime that may grow a table is a point without one.
func (r *Result) Whole(b *Bound) bool {
	if len(b.Causes) > 0 {
		return false
	}
	if r.open == nil {
		r.open = map[string]bool{}
		for i := range r.Bounds {
			if r.Bounds[i].Point && len(r.Bounds[i].Causes) > 0 {
				r.open[r.Bounds[i].Name] = true
			}
		}
	}
	return !slices.ContainsFunc(b.Points, func(p string) bool { return r.open[p] || r.tables[p] })
}

// Result is that of a run.
type Result struct {
	Bounds    []Bound
	Problems  []Problem // annotations that are wrong or needless
	Functions int       // that were looked at
	sizes     []uint64
	open      map[string]bool // points without a bound
	tables    map[string]bool // functions that may grow a table of the runtime
}

// Run analyses a program.
func Run(cfg *Config) (*Result, error) {
	a, err := load(cfg)
	if err != nil {
		return nil, err
	}
	entries, err := a.entries()
	if err != nil {
		return nil, err
	}
	a.callGraph(entries)
	if cfg.Started {
		entries = append(entries, a.started(entries)...)
	}
	groups := a.reach(entries)
	entries = a.withPoints(entries)
	reached := map[*ssa.Function]bool{}
	for _, f := range a.functions {
		reached[f.fn] = true
	}
	if err := a.compiled(reached); err != nil {
		return nil, err
	}
	for _, group := range groups {
		a.solve(group)
	}
	a.pointNotes(entries)
	return a.result(entries), nil
}

// reach makes a record of each function that the entry points reach.
func (a *Analysis) reach(entries []Entry) [][]*function {
	var roots []*function
	for _, e := range entries {
		roots = append(roots, a.instance(e.fn, nil))
	}
	for _, fn := range a.pointFunctions() {
		roots = append(roots, a.instance(fn, nil))
	}
	return circles(roots, func(f *function) []*function {
		if a.external(f.fn) {
			return nil
		}
		if !a.cfg.Panics {
			f.doomed = doomed(f.fn)
		}
		f.calls = a.callsOf(f)
		f.callees = f.calleesOf()
		return f.callees
	})
}

// isTemplate: a generic function is run only as what is made of it for some types.
func isTemplate(fn *ssa.Function) bool {
	for ; fn != nil; fn = fn.Parent() {
		if fn.TypeParams().Len() > 0 && len(fn.TypeArgs()) == 0 {
			return true
		}
	}
	return false
}

// external says that a function is known by a model only, or not at all.
func (a *Analysis) external(fn *ssa.Function) bool {
	return a.modelOf(fn) != nil || isFormat(fn) || len(fn.Blocks) == 0 || isRuntime(pkgOf(fn))
}

// isRuntime: what the runtime does is modelled, except for its packages of plain functions.
func isRuntime(path string) bool {
	switch path {
	case "internal/runtime/atomic", "internal/runtime/sys", "internal/runtime/math":
		return false
	}
	return path == "runtime" || strings.HasPrefix(path, "internal/runtime/")
}

// solve finds the costs of functions that call each other in a circle, or of one.
func (a *Analysis) solve(group []*function) {
	if len(group) == 1 && a.external(group[0].fn) {
		a.solveExternal(group[0])
		return
	}
	for _, fn := range group {
		fn.prepare()
	}
	a.solveFlow(group)
	if len(group) == 1 && !slices.Contains(group[0].callees, group[0]) {
		f := group[0]
		f.finish(func(*function) bool { return false })
		return
	}
	a.solveCircle(group)
}

// finish computes a function's costs and forgets what is only needed for that.
func (f *function) finish(skip func(*function) bool) {
	f.a.recursionNote(f, false)
	f.cost = f.compute(false, skip)
	if f.inlinable() && !f.cost.Peak.zero() {
		t := f.compute(true, skip)
		f.thin = &t
	}
	f.flow, f.byBlock, f.loops, f.chains = nil, nil, nil, nil
}

// solveExternal takes a function's cost from its model.
func (a *Analysis) solveExternal(f *function) {
	name := f.fn.String()
	if m := a.modelOf(f.fn); m != nil {
		m.used = true
		f.cost, f.summary, f.table = m.cost(a), m.summary(f.fn), m.table
		return
	}
	if isFormat(f.fn) {
		f.summary = formatSummary(f.fn) // what it costs depends on the call
		return
	}
	f.summary = opaque(f.fn)
	if f.fn.Object() != nil && a.noescape[f.fn.Object().Pos()] {
		f.summary = borrowing(f.fn)
	}
	if len(f.fn.Blocks) == 0 && a.assembly[strings.Replace(name, "[", " [", 1)] {
		return
	}
	f.cause("function outside Go that has no model", name, f.fn.Pos())
}

// solveFlow finds the flow of a group: again, until nothing changes.
func (a *Analysis) solveFlow(group []*function) {
	for changed := true; changed; {
		changed = false
		for _, f := range group {
			f.flow = newFlow(f.fn)
			f.flow.build(func(c ssa.CallInstruction) []*function { return f.calls[c] })
			s := f.flow.summarise()
			if !s.equal(f.summary) {
				f.summary, changed = s, true
			}
		}
		changed = changed && len(group) > 1 || changed && slices.Contains(group[0].callees, group[0])
	}
}

// recursionNote finds the annotation of a function's recursion.
func (a *Analysis) recursionNote(f *function, use bool) (uint64, bool) {
	d, ok := f.fn.Syntax().(*ast.FuncDecl)
	if !ok {
		return 0, false
	}
	pos := a.position(d.Type.Pos())
	if use {
		return a.notes.bound("recursion", pos)
	}
	return 0, a.notes.find("recursion", pos) != nil
}

// solveCircle is for functions that call each other in a circle. A bound on how often
// an annotated one is called in all, for one call from outside, must cut every circle.
func (a *Analysis) solveCircle(group []*function) {
	in, done := map[*function]bool{}, map[*function]bool{}
	times := map[*function]uint64{}
	for _, fn := range group {
		in[fn] = true
		if _, ok := a.recursionNote(fn, false); ok {
			times[fn] = 0
		}
	}
	order, uncut := a.cut(group, in, times)
	skip := func(g *function) bool { return in[g] && (!done[g] || hasKey(times, g)) }
	flat := true
	for _, fn := range order {
		f := fn
		f.cost = f.compute(false, skip)
		flat = flat && f.cost.Peak.zero()
		done[fn] = true
	}
	if !flat && uncut != nil {
		f := uncut
		f.cause("recursion without a bound", a.circle(group, in, uncut), uncut.fn.Pos())
	}
	if !flat {
		a.multiply(group, times)
	}
	var causes bitset
	for _, fn := range group {
		causes.or(fn.causes)
	}
	for _, fn := range group {
		f := fn
		f.causes = causes
		f.flow, f.byBlock, f.loops, f.chains = nil, nil, nil, nil
	}
}

func hasKey(m map[*function]uint64, fn *function) bool { _, ok := m[fn]; return ok }

// multiply charges each function of a circle with all calls of the annotated ones.
func (a *Analysis) multiply(group []*function, times map[*function]uint64) {
	var all Cost
	once := map[*function]Cost{}
	for fn := range times {
		f := fn
		n, _ := a.recursionNote(f, true)
		l := f.cost.Lasting()
		l = l.times(n)
		all.Heap.add(&l)
		p := f.cost.Peak.times(n)
		all.Peak.add(&p)
		once[fn] = f.cost
	}
	all.Sum = endless
	for _, fn := range group {
		f := fn
		if _, ok := once[fn]; ok {
			f.cost = all
			continue
		}
		l := f.cost.Lasting()
		cost := Cost{Heap: all.Heap, Peak: all.Peak, Sum: endless}
		cost.Heap.add(&l)
		cost.Peak.add(&f.cost.Peak)
		f.cost = cost
	}
}

// cut orders a group so that callees come first, as far as calls of annotated functions
// do not count; uncut is a function on a circle that is left.
func (a *Analysis) cut(group []*function, in map[*function]bool, times map[*function]uint64) (order []*function, uncut *function) {
	sub := circles(group, func(fn *function) []*function {
		var out []*function
		for _, g := range fn.callees {
			if in[g] && !hasKey(times, g) {
				out = append(out, g)
			}
		}
		return out
	})
	for _, s := range sub {
		self := !hasKey(times, s[0]) && slices.Contains(s[0].callees, s[0])
		if len(s) > 1 || self {
			uncut = s[0]
		}
		order = append(order, s...)
	}
	return order, uncut
}

// circle writes a shortest way from a function back to itself.
func (a *Analysis) circle(group []*function, in map[*function]bool, fn *function) string {
	path := a.path(fn, fn, func(g *function) bool { return in[g] })
	return fmt.Sprintf("%d functions; %s", len(group), path)
}

// path is the shortest call path from one function to another, by names.
func (a *Analysis) path(from, to *function, through func(*function) bool) string {
	return names(a.search(from, to, through), from, to)
}

// search finds all functions that one reaches, each with who calls it on a shortest
// path; it ends at to.
func (a *Analysis) search(from, to *function, through func(*function) bool) map[*function]*function {
	prev := map[*function]*function{}
	todo := []*function{from}
	for len(todo) > 0 {
		f := todo[0]
		todo = todo[1:]
		for _, g := range f.callees {
			if _, seen := prev[g]; seen || !through(g) {
				continue
			}
			prev[g] = f
			if g == to {
				return prev
			}
			todo = append(todo, g)
		}
	}
	return prev
}

func names(prev map[*function]*function, from, to *function) string {
	list := []string{to.fn.String()}
	for f, ok := prev[to]; ok; f, ok = prev[f] {
		list = append(list, f.fn.String())
		if f == from {
			break
		}
	}
	if to == from && len(list) == 1 {
		return list[0]
	}
	slices.Reverse(list)
	return strings.Join(list, " → ")
}

// result collects what was found.
func (a *Analysis) result(entries []Entry) *Result {
	r := &Result{Functions: len(a.functions), sizes: a.classes.sizes, Problems: append(a.problems, a.notes.errors...), tables: map[string]bool{}}
	files := map[string]bool{}
	for _, f := range a.functions {
		if f.table {
			r.tables[f.fn.String()] = true
		}
		if f.fn.Pos().IsValid() {
			files[a.position(f.fn.Pos()).Filename] = true
		}
	}
	points := pointGraph{a, map[*function][]*function{}}
	for _, e := range entries {
		f := a.instance(e.fn, nil)
		b := Bound{Name: e.Name, Num: e.Num, Func: e.fn.String(), Cost: f.cost, Point: e.point}
		b.Direct, b.Points = points.names(f)
		for _, i := range f.causes.list() {
			b.Causes = append(b.Causes, a.causes[i])
		}
		r.Bounds = append(r.Bounds, b)
	}
	if len(a.cfg.Only) > 0 {
		files = nil // what is left out may need them
	}
	r.Problems = append(r.Problems, a.notes.needless(func(name string) bool { return files[name] })...)
	for name, m := range a.models {
		if !m.used && len(a.cfg.Only) == 0 {
			r.Problems = append(r.Problems, Problem{Text: "needless model of " + name})
		}
	}
	slices.SortFunc(r.Problems, func(x, y Problem) int { return strings.Compare(x.String(), y.String()) })
	for i := range r.Bounds {
		if len(r.Bounds[i].Causes) == 0 {
			continue
		}
		from := a.instance(entries[i].fn, nil)
		prev := a.search(from, nil, func(*function) bool { return true })
		for _, c := range r.Bounds[i].Causes {
			r.Bounds[i].Paths = append(r.Bounds[i].Paths, names(prev, from, c.fn))
		}
	}
	for _, c := range a.causes {
		c.fn = nil // the result does not keep the program
	}
	return r
}

// fileAt is the syntax of the file at a position.
func (a *Analysis) fileAt(pos token.Pos) *ast.File {
	if a.files == nil {
		a.files = map[*token.File]*ast.File{}
		for _, p := range a.loaded {
			for _, f := range p.Syntax {
				a.files[a.fset.File(f.Pos())] = f
			}
		}
	}
	return a.files[a.fset.File(pos)]
}
