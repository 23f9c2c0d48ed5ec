package maxlive

import (
	"cmp"
	"go/ast"
	"slices"
	"strings"

	"golang.org/x/tools/go/ssa"
)

// A point is a function that reserves for itself when it is entered. It has a bound of
// its own, and those that call it do not count it.

// isPoint says whether a function is annotated as one.
func (a *Analysis) isPoint(fn *ssa.Function) bool {
	is, ok := a.points[fn]
	if !ok {
		if d, isDecl := fn.Syntax().(*ast.FuncDecl); isDecl {
			is = a.notes.find("point", a.position(d.Type.Pos())) != nil
		}
		if m := a.pointModel(fn); m != nil {
			is, m.used = true, true
		}
		a.points[fn] = is
	}
	return is
}

// pointModel is the line of the file of models that makes a function a point: by its
// name, or one for all exported methods of a type.
func (a *Analysis) pointModel(fn *ssa.Function) *model {
	if len(fn.Blocks) == 0 || fn.Synthetic != "" && fn.Origin() == nil {
		return nil
	}
	name := nameOf(fn)
	if m := a.models[name]; m != nil && m.point {
		return m
	}
	if i := strings.LastIndex(name, "."); i > 0 && fn.Signature.Recv() != nil && ast.IsExported(fn.Name()) {
		if m := a.models[name[:i]+".*"]; m != nil && m.point {
			return m
		}
	}
	return nil
}

// pointFunctions are the points that the program can reach.
func (a *Analysis) pointFunctions() []*ssa.Function {
	var out []*ssa.Function
	if len(a.cfg.Only) > 0 {
		return nil
	}
	for fn := range a.targets.reachable {
		if a.isPoint(fn) && !isTemplate(fn) {
			out = append(out, fn)
		}
	}
	slices.SortFunc(out, func(x, y *ssa.Function) int { return strings.Compare(x.String(), y.String()) })
	return out
}

// withPoints adds the points to the entry points; one that needs nothing is needless.
func (a *Analysis) withPoints(entries []Entry) []Entry {
	for _, fn := range a.pointFunctions() {
		if slices.ContainsFunc(entries, func(e Entry) bool { return e.fn == fn }) {
			continue
		}
		entries = append(entries, Entry{Name: fn.String(), Num: -1, fn: fn, point: true})
	}
	return entries
}

// pointNotes marks the annotations of points that have something to reserve.
func (a *Analysis) pointNotes(entries []Entry) {
	for _, e := range entries {
		f := a.instance(e.fn, nil)
		d, ok := e.fn.Syntax().(*ast.FuncDecl)
		if !ok || !e.point || f.cost.Peak.zero() && len(f.causes.list()) == 0 {
			continue
		}
		if n := a.notes.find("point", a.position(d.Type.Pos())); n != nil {
			n.used = true
		}
	}
}

// pointsFrom are the points that a function reaches on its own way: what lies behind a
// point is that point's. What may grow a table of the runtime is one, too.
func (a *Analysis) pointsFrom(from *function) []*function {
	seen := map[*function]bool{from: true}
	todo := []*function{from}
	var out []*function
	for len(todo) > 0 {
		f := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for _, list := range f.calls {
			for _, g := range list {
				if seen[g] {
					continue
				}
				seen[g] = true
				if g.point || g.table {
					out = append(out, g)
				} else {
					todo = append(todo, g)
				}
			}
		}
	}
	return out
}

// pointGraph finds which points lie behind each entry point and each point.
type pointGraph struct {
	a    *Analysis
	next map[*function][]*function
}

func (p *pointGraph) from(f *function) []*function {
	list, ok := p.next[f]
	if !ok {
		list = p.a.pointsFrom(f)
		p.next[f] = list
	}
	return list
}

// names are the points that a function reaches: on its own way, and also by way of
// others.
func (p *pointGraph) names(f *function) (direct, all []string) {
	for _, g := range p.from(f) {
		direct = append(direct, g.fn.String())
	}
	seen := map[*function]bool{}
	todo := slices.Clone(p.from(f))
	for len(todo) > 0 {
		g := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if seen[g] {
			continue
		}
		seen[g] = true
		all = append(all, g.fn.String())
		todo = append(todo, p.from(g)...)
	}
	slices.Sort(direct)
	slices.Sort(all)
	return direct, all
}

// seen is the summary of a function for its callers. Of a point it is not known.
func (f *function) seen() *flowSummary {
	if f.point {
		return opaque(f.fn)
	}
	return f.summary
}

// started are the functions that go statements start, and those that the runtime is
// given to call: timers' functions among them.
func (a *Analysis) started(known []Entry) []Entry {
	names := map[*ssa.Function]string{}
	for call, set := range a.targets.calls {
		if _, ok := call.(*ssa.Go); !ok {
			continue
		}
		for fn := range set {
			names[fn] = "go " + fn.String()
		}
	}
	for _, it := range a.targets.held(escapedKey{}) {
		if it.fn != nil && names[it.fn] == "" {
			names[it.fn] = "runtime " + it.fn.String()
		}
	}
	for _, e := range known {
		delete(names, e.fn)
	}
	var out []Entry
	for fn, name := range names {
		if !isTemplate(fn) && !a.external(fn) {
			out = append(out, Entry{Name: name, Num: -1, fn: fn})
		}
	}
	slices.SortFunc(out, func(x, y Entry) int {
		return cmp.Or(strings.Compare(x.Name, y.Name), cmp.Compare(x.fn.Pos(), y.fn.Pos()))
	})
	return out
}
