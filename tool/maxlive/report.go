package maxlive

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
)

// Bounded is how many entry points have a bound.
func (r *Result) Bounded() int {
	n := 0
	for _, b := range r.Bounds {
		if len(b.Causes) == 0 {
			n++
		}
	}
	return n
}

// OK says that everything has a bound and no annotation is wrong.
func (r *Result) OK() bool { return r.Bounded() == len(r.Bounds) && len(r.Problems) == 0 }

// Text writes the bounds, what has none with the call path to the reason, and problems.
// Most causes are many entry points' own: each is written once, with one path to it.
func (r *Result) Text(w io.Writer) error {
	p := printer{w: w}
	p.f("%-40s %12s %12s %12s\n", "entry", "peak", "transient", "lasting")
	for _, b := range r.Bounds {
		if n := len(b.Causes); n > 0 {
			p.f("%-40s no bound: %d causes\n", b.Name, n)
			continue
		}
		l, t := b.Cost.Lasting(), b.Cost.Transient()
		more := ""
		if n := len(b.Points); n > 0 {
			more = fmt.Sprintf(" and %d points", n)
		}
		if b.Point {
			more = " at each pass" + more
		}
		p.f("%-40s %12d %12d %12d%s\n", b.Name, b.Cost.Peak.Total(), t.Total(), l.Total(), more)
	}
	for _, c := range r.causes() {
		p.f("%v: error: %s\n\t%d entry points, as %s\n", c.cause.Pos, c.cause.Text, c.entries, c.path)
	}
	for _, q := range r.Problems {
		p.f("error: %v\n", q)
	}
	p.f("%d of %d entry points have a bound; %d functions\n", r.Bounded(), len(r.Bounds), r.Functions)
	return p.err
}

type printer struct {
	w   io.Writer
	err error
}

func (p *printer) f(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format, args...)
	}
}

type causeCount struct {
	cause   *Cause
	entries int
	path    string
}

// causes lists what has no bound, most entry points first.
func (r *Result) causes() []*causeCount {
	byCause := map[*Cause]*causeCount{}
	var list []*causeCount
	for _, b := range r.Bounds {
		for i, c := range b.Causes {
			n := byCause[c]
			if n == nil {
				n = &causeCount{cause: c, path: b.Paths[i]}
				byCause[c] = n
				list = append(list, n)
			}
			n.entries++
			if len(b.Paths[i]) < len(n.path) {
				n.path = b.Paths[i]
			}
		}
	}
	slices.SortStableFunc(list, func(x, y *causeCount) int { return cmp.Compare(y.entries, x.entries) })
	return list
}

// Summary writes how many places of each kind have no bound, and how many entry points
// would have one if everything of that kind had.
func (r *Result) Summary(w io.Writer) error {
	places := map[string]map[*Cause]bool{}
	for _, b := range r.Bounds {
		for _, c := range b.Causes {
			if places[c.Kind] == nil {
				places[c.Kind] = map[*Cause]bool{}
			}
			places[c.Kind][c] = true
		}
	}
	var kinds []string
	for k := range places {
		kinds = append(kinds, k)
	}
	slices.SortFunc(kinds, func(x, y string) int {
		return cmp.Or(cmp.Compare(len(places[y]), len(places[x])), cmp.Compare(x, y))
	})
	p := printer{w: w}
	p.f("%d of %d entry points have a bound; %d functions\n", r.Bounded(), len(r.Bounds), r.Functions)
	for _, k := range kinds {
		with, only := 0, 0
		for _, b := range r.Bounds {
			has, other := false, false
			for _, c := range b.Causes {
				has = has || c.Kind == k
				other = other || c.Kind != k
			}
			if has {
				with++
			}
			if has && !other {
				only++
			}
		}
		p.f("%6d places, %4d entry points, %4d by this alone: %s\n", len(places[k]), with, only, k)
	}
	return p.err
}

// JSON writes the bounds by size class. A class is named by its size, "large" is whole
// pages, "stacks" is those of goroutines.
func (r *Result) JSON(w io.Writer) error {
	type row struct {
		Name      string            `json:"name"`
		Func      string            `json:"func"`
		Bounded   bool              `json:"bounded"`
		Peak      map[string]uint64 `json:"peak,omitempty"`
		Transient map[string]uint64 `json:"transient,omitempty"`
		Lasting   map[string]uint64 `json:"lasting,omitempty"`
		Point     bool              `json:"point,omitempty"`
		Points    []string          `json:"points,omitempty"`
		Direct    []string          `json:"direct,omitempty"`
		Causes    []string          `json:"causes,omitempty"`
	}
	rows := []row{}
	for _, b := range r.Bounds {
		x := row{Name: b.Name, Func: b.Func, Bounded: len(b.Causes) == 0, Point: b.Point, Points: b.Points, Direct: b.Direct}
		for i, c := range b.Causes {
			x.Causes = append(x.Causes, c.String()+" ("+b.Paths[i]+")")
		}
		if x.Bounded {
			x.Peak, x.Lasting, x.Transient = b.Cost.Peak.named(r.sizes), named(b.Cost.Lasting(), r.sizes), named(b.Cost.Transient(), r.sizes)
		}
		rows = append(rows, x)
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(rows)
}

func named(v Vector, sizes []uint64) map[string]uint64 { return v.named(sizes) }

func (v *Vector) named(sizes []uint64) map[string]uint64 {
	out := map[string]uint64{}
	for i, n := range v {
		if n == 0 {
			continue
		}
		switch i {
		case largeClass:
			out["large"] = n
		case stacks:
			out["stacks"] = n
		case total:
			out["total"] = n
		default:
			out[fmt.Sprint(sizes[i])] = n
		}
	}
	return out
}
