package repairman

import (
	"errors"
	"math"
	"slices"
)

// Point is one measurement.
type Point struct {
	Cores      int
	Throughput float64 // operations in the unit of time
	Delay      float64 // the think time that the program was asked for; 0 if not known
}

// Fit is a model and how well it explains what was measured.
type Fit struct {
	Model
	R2 float64 // 1 - residual sum of squares / total sum of squares; NaN if all points are the same
	// Loose says that the points hardly depend on the service time: no core waits
	// in them, and the lock may be much faster or, with them, does not matter.
	Loose bool
}

// With is the model of a point's delay, by a fit of several.
func (f Fit) With(p Point) Model {
	return Model{Service: f.Service, Transfer: f.Transfer, Think: max(p.Delay+f.Think, 0)}
}

// ErrFewCores says that all points have the same number of cores, from which two
// times cannot be told.
var ErrFewCores = errors.New("want measurements with at least two different numbers of cores")

// The fits look for ratios of think to service time between these.
const (
	leastRatio = 1e-4
	mostRatio  = 1e6
)

// Least fits service and think time to points of one load by least squares.
//
// For a given ratio a/s the throughputs of the model are 1/s times fixed numbers,
// so the best s is known and only the ratio is searched: variable projection.
func Least(points []Point) (Fit, error) {
	if sameCores(points) {
		return Fit{}, ErrFewCores
	}
	at := func(logRatio float64) (Model, float64) {
		unit := Model{Service: 1, Think: math.Exp(logRatio)}
		curve := unit.Curve(mostCores(points))
		var xf, ff float64
		for _, p := range points {
			f := curve[p.Cores-1].Throughput
			xf += p.Throughput * f
			ff += f * f
		}
		s := ff / xf
		sum := 0.0
		for _, p := range points {
			d := p.Throughput - curve[p.Cores-1].Throughput/s
			sum += d * d
		}
		return Model{Service: s, Think: s * unit.Think}, sum
	}
	best := search(math.Log(leastRatio), math.Log(mostRatio), func(x float64) float64 { _, r := at(x); return r })
	m, r := at(best)
	return Fit{Model: m, R2: r2(points, r), Loose: best > math.Log(mostRatio)-1}, nil
}

// Delays fits points whose delays are known: one service time, and one overhead
// that each delay has in addition to make the think time (what an operation does
// outside of the lock). In Fit, Think is the overhead.
func Delays(points []Point) (Fit, error) {
	if sameCores(points) {
		return Fit{}, ErrFewCores
	}
	shortest, longest, scale := math.Inf(1), 0.0, 0.0
	for _, p := range points {
		shortest, longest = min(shortest, p.Delay), max(longest, p.Delay)
		scale = max(scale, float64(p.Cores)/p.Throughput)
	}
	series := Series(points)
	// The overhead may be a little below 0: a delay is what was asked for.
	with := func(s, o float64) float64 {
		sum := 0.0
		for _, p := range series {
			sum += seriesResidual(p, Model{Service: s, Think: max(p[0].Delay+o, 0)})
		}
		return sum
	}
	overhead := func(s float64) float64 {
		return search(-shortest*0.5, scale+longest, func(o float64) float64 { return with(s, o) })
	}
	low, high := math.Log(scale*1e-7), math.Log(scale)
	x := search(low, high, func(x float64) float64 {
		s := math.Exp(x)
		return with(s, overhead(s))
	})
	s := math.Exp(x)
	o := overhead(s)
	return Fit{Model: Model{Service: s, Think: o}, R2: r2(points, with(s, o)), Loose: x < low+1}, nil
}

// ErrNoDelays says that think times are not known, without which a transfer cannot be
// told from them.
var ErrNoDelays = errors.New("want measurements with delays")

// Transfers fits points whose think times are their delays: one service time, and what
// an operation takes more when the lock comes from another core.
func Transfers(points []Point) (Fit, error) {
	if sameCores(points) {
		return Fit{}, ErrFewCores
	}
	longest := 0.0 // of the cores' cycles: what one operation can take at most
	for _, p := range points {
		if p.Delay == 0 {
			return Fit{}, ErrNoDelays
		}
		longest = max(longest, float64(p.Cores)/p.Throughput)
	}
	series := Series(points)
	with := func(s, t float64) float64 {
		sum := 0.0
		for _, p := range series {
			sum += seriesResidual(p, Model{Service: s, Think: p[0].Delay, Transfer: t})
		}
		return sum
	}
	low, high := math.Log(longest*1e-7), math.Log(longest)
	transfer := func(s float64) float64 {
		return math.Exp(search(low, high, func(x float64) float64 { return with(s, math.Exp(x)) }))
	}
	x := search(low, high, func(x float64) float64 {
		s := math.Exp(x)
		return with(s, transfer(s))
	})
	s := math.Exp(x)
	t := transfer(s)
	return Fit{Model: Model{Service: s, Transfer: t}, R2: r2(points, with(s, t)), Loose: x < low+1}, nil
}

// R2 is how well models, one for each delay, explain points; NaN if all points are
// the same.
func R2(points []Point, model func(Point) Model) float64 { return r2(points, residual(points, model)) }

func residual(points []Point, model func(Point) Model) float64 {
	sum := 0.0
	for _, s := range Series(points) {
		sum += seriesResidual(s, model(s[0]))
	}
	return sum
}

func seriesResidual(points []Point, m Model) float64 {
	sum := 0.0
	curve := m.Curve(mostCores(points))
	for _, p := range points {
		d := p.Throughput - curve[p.Cores-1].Throughput
		sum += d * d
	}
	return sum
}

func r2(points []Point, residual float64) float64 {
	mean, total := 0.0, 0.0
	for _, p := range points {
		mean += p.Throughput / float64(len(points))
	}
	for _, p := range points {
		total += (p.Throughput - mean) * (p.Throughput - mean)
	}
	if total <= 1e-24*mean*mean {
		return math.NaN()
	}
	return 1 - residual/total
}

func sameCores(points []Point) bool {
	for _, p := range points {
		if p.Cores != points[0].Cores {
			return false
		}
	}
	return true
}

func mostCores(points []Point) int {
	n := 0
	for _, p := range points {
		n = max(n, p.Cores)
	}
	return n
}

// search is the place of the least f between two numbers: a grid, since f may have
// more than one valley, then the golden section around the best point of it.
func search(low, high float64, f func(float64) float64) float64 {
	const steps = 60
	best, value := low, math.Inf(1)
	for i := range steps + 1 {
		x := low + (high-low)*float64(i)/steps
		if v := f(x); v < value {
			best, value = x, v
		}
	}
	a, b := max(low, best-(high-low)/steps), min(high, best+(high-low)/steps)
	golden := (math.Sqrt(5) - 1) / 2
	c, d := b-golden*(b-a), a+golden*(b-a)
	fc, fd := f(c), f(d)
	for range 60 {
		if fc <= fd {
			b, d, fd = d, c, fc
			c = b - golden*(b-a)
			fc = f(c)
		} else {
			a, c, fc = c, d, fd
			d = a + golden*(b-a)
			fd = f(d)
		}
	}
	if fc <= fd {
		return c
	}
	return d
}

func median(v []float64) float64 {
	v = slices.Sorted(slices.Values(v))
	if len(v)%2 == 1 {
		return v[len(v)/2]
	}
	return (v[len(v)/2-1] + v[len(v)/2]) / 2
}
