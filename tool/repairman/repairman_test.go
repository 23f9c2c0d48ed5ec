package repairman

import (
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func near(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tolerance*math.Abs(want)) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// Cases that can be done by hand.
func TestExact(t *testing.T) {
	// One core never waits.
	s := Model{Service: 3, Think: 7}.At(1)
	near(t, "throughput", s.Throughput, 1.0/10, 1e-12)
	near(t, "queue", s.Queue, 3.0/10, 1e-12)
	near(t, "wait", s.Wait, 3, 1e-12)
	// Two cores, s = a: P is 1/5, 2/5, 2/5.
	m := Model{Service: 1, Think: 1}
	for k, want := range []float64{1.0 / 5, 2.0 / 5, 2.0 / 5} {
		near(t, "P", m.Probabilities(2)[k], want, 1e-12)
	}
	s = m.At(2)
	near(t, "throughput", s.Throughput, 4.0/5, 1e-12)
	near(t, "queue", s.Queue, 6.0/5, 1e-12)
	near(t, "busy", s.Busy, 4.0/5, 1e-12)
	// Three cores, a = 2 s: the terms are 1, 3/2, 6/4, 6/8; their sum is 19/4.
	m = Model{Service: 1, Think: 2}
	for k, want := range []float64{4.0 / 19, 6.0 / 19, 6.0 / 19, 3.0 / 19} {
		near(t, "P", m.Probabilities(3)[k], want, 1e-12)
	}
	near(t, "throughput", m.At(3).Throughput, 15.0/19, 1e-12)
	near(t, "queue", m.At(3).Queue, (6.0+12+9)/19, 1e-12)
	near(t, "knee", m.Knee(), 3, 1e-12)
	// Many more cores than the knee: the lock is always busy.
	near(t, "plateau", m.At(1000).Throughput, 1, 1e-9)
	// All but no lock: n times one core.
	m = Model{Service: 1e-9, Think: 1}
	near(t, "no lock", m.At(100).Throughput, 100, 1e-6)
	if n := m.Carries(0.9, 200); n != 200 {
		t.Errorf("carries %d", n)
	}
	// By hand: X(2)/2X(1) is 4/5 for s = a.
	if n := (Model{Service: 1, Think: 1}).Carries(0.8, 100); n != 2 {
		t.Errorf("carries %d, want 2", n)
	}
	if n := (Model{Service: 1, Think: 1}).Carries(0.81, 100); n != 1 {
		t.Errorf("carries %d, want 1", n)
	}
}

// The steady states against mean value analysis (Reiser, Lavenberg, 1980), which knows
// no probabilities: a core that comes finds as many at the lock as there are on average
// with one core less.
func TestMeanValues(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := Model{Service: math.Exp(rapid.Float64Range(-3, 3).Draw(t, "s")), Think: math.Exp(rapid.Float64Range(-3, 9).Draw(t, "a"))}
		n := rapid.IntRange(1, 1000).Draw(t, "n")
		x, queue, wait := 0.0, 0.0, 0.0
		for i := 1; i <= n; i++ {
			wait = m.Service * (1 + queue)
			x = float64(i) / (wait + m.Think)
			queue = x * wait
		}
		s := m.At(n)
		for _, v := range [][2]float64{{s.Throughput, x}, {s.Queue, queue}, {s.Wait, wait}, {s.Busy, x * m.Service}} {
			if !(math.Abs(v[0]-v[1]) <= 1e-8*v[1]) {
				t.Fatalf("%+v, %d cores: %+v, want throughput %v, queue %v, wait %v", m, n, s, x, queue, wait)
			}
		}
		if all := s.Throughput * (s.Wait + m.Think); math.Abs(all-float64(n)) > 1e-8*float64(n) {
			t.Fatalf("%v cores of %d", all, n)
		}
	})
}

// The model against a simulation of the machines and their repairman.
func TestSimulation(t *testing.T) {
	const events = 200_000
	random := rand.New(rand.NewPCG(3, 4))
	for _, v := range []struct {
		n    int
		s, a float64
	}{{2, 1, 1}, {4, 1, 5}, {8, 2, 9}} {
		// The times are memoryless: what happens next depends on the numbers alone.
		at, now, done := 0, 0.0, 0
		for range events {
			arrive := float64(v.n-at) / v.a
			serve := 0.0
			if at > 0 {
				serve = 1 / v.s
			}
			now += random.ExpFloat64() / (arrive + serve)
			if random.Float64() < arrive/(arrive+serve) {
				at++
			} else {
				at--
				done++
			}
		}
		near(t, "simulated", float64(done)/now, Model{Service: v.s, Think: v.a}.At(v.n).Throughput, 0.02)
	}
}

// The model with a transfer against cores that queue for a lock and remember who had
// it last. They have names, so what the model says of states is no assumption here.
func TestTransfer(t *testing.T) {
	const operations = 100_000
	random := rand.New(rand.NewPCG(7, 8))
	for _, v := range []struct {
		n int
		m Model
	}{
		{1, Model{Service: 2, Think: 3, Transfer: 5}}, {2, Model{Service: 1, Think: 2, Transfer: 2}},
		{2, Model{Service: 1, Think: 40, Transfer: 2}}, {4, Model{Service: 1, Think: 20, Transfer: 1}},
		{8, Model{Service: 1, Think: 3, Transfer: 2}},
	} {
		comes := make([]float64, v.n) // when each core wants the lock
		for i := range comes {
			comes[i] = v.m.Think * random.ExpFloat64()
		}
		free, last := 0.0, -1
		for range operations {
			next := 0
			for i := range comes { // first come, first served
				if comes[i] < comes[next] {
					next = i
				}
			}
			s := v.m.Service
			if last >= 0 && last != next {
				s += v.m.Transfer
			}
			free = max(free, comes[next]) + s*random.ExpFloat64()
			last, comes[next] = next, free+v.m.Think*random.ExpFloat64()
		}
		near(t, "simulated", operations/free, v.m.At(v.n).Throughput, 0.03)
	}
}

// Fits find the model that made the points again.
func TestFits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := Model{Service: math.Exp(rapid.Float64Range(-2, 7).Draw(t, "log s"))}
		m.Think = m.Service * math.Exp(rapid.Float64Range(-1, 3).Draw(t, "log a/s"))
		var points []Point
		for n := 1; n <= rapid.IntRange(3, 28).Draw(t, "cores"); n++ {
			points = append(points, Point{Cores: n, Throughput: m.At(n).Throughput})
		}
		fit, err := Least(points)
		if err != nil {
			t.Fatal(err)
		}
		if math.Abs(fit.Service/m.Service-1) > 1e-3 || math.Abs(fit.Think/m.Think-1) > 1e-3 || fit.R2 < 0.999999 || fit.Loose {
			t.Fatalf("%+v, want %+v", fit, m)
		}
	})
}

func paperPoints(noise float64) []Point {
	random := rand.New(rand.NewPCG(5, 6))
	var points []Point
	for delay := 500.0; delay <= 32000; delay *= 2 {
		for n := 1; n <= 14; n++ {
			x := Model{Service: 358, Think: delay + 120}.At(n).Throughput
			points = append(points, Point{Cores: n, Delay: delay, Throughput: x * (1 + noise*random.NormFloat64())})
		}
	}
	return points
}

func TestDelays(t *testing.T) {
	fit, err := Delays(paperPoints(0))
	if err != nil {
		t.Fatal(err)
	}
	near(t, "service", fit.Service, 358, 1e-3)
	near(t, "overhead", fit.Think, 120, 1e-2)
	near(t, "R²", fit.R2, 1, 1e-6)
	fit, err = Delays(paperPoints(0.02))
	if err != nil {
		t.Fatal(err)
	}
	near(t, "service", fit.Service, 358, 0.02)
	if fit.R2 < 0.99 || fit.R2 > 0.99999 {
		t.Errorf("R² %v of points with noise", fit.R2)
	}
}

func TestTransfers(t *testing.T) {
	var points []Point
	for delay := 500.0; delay <= 32000; delay *= 2 {
		for n := 1; n <= 2; n++ {
			points = append(points, Point{Cores: n, Delay: delay, Throughput: Model{Service: 290, Think: delay, Transfer: 490}.At(n).Throughput})
		}
	}
	fit, err := Transfers(points)
	if err != nil {
		t.Fatal(err)
	}
	near(t, "service", fit.Service, 290, 1e-3)
	near(t, "transfer", fit.Transfer, 490, 1e-3)
	near(t, "R²", fit.R2, 1, 1e-6)
	if plain, err := Delays(points); err != nil || plain.R2 > 0.99 {
		t.Errorf("without a transfer: %+v, %v", plain, err)
	}
	if _, err := Transfers([]Point{{Cores: 2, Throughput: 1, Delay: 1}}); !errors.Is(err, ErrFewCores) {
		t.Errorf("%v", err)
	}
	if _, err := Transfers([]Point{{Cores: 1, Throughput: 1}, {Cores: 2, Throughput: 2}}); !errors.Is(err, ErrNoDelays) {
		t.Errorf("%v", err)
	}
}

func TestFitLimits(t *testing.T) {
	if _, err := Least([]Point{{Cores: 2, Throughput: 1}, {Cores: 2, Throughput: 1.1}}); !errors.Is(err, ErrFewCores) {
		t.Errorf("%v", err)
	}
	if _, err := Delays([]Point{{Cores: 1, Throughput: 1, Delay: 1}, {Cores: 1, Throughput: 2, Delay: 2}}); !errors.Is(err, ErrFewCores) {
		t.Errorf("%v", err)
	}
	fit, err := Least([]Point{{Cores: 1, Throughput: 1}, {Cores: 2, Throughput: 2}, {Cores: 4, Throughput: 4}})
	if err != nil || !fit.Loose || fit.R2 < 0.999 {
		t.Errorf("%+v, %v: want a loose fit", fit, err)
	}
	fit, err = Least([]Point{{Cores: 1, Throughput: 2}, {Cores: 2, Throughput: 2}})
	if err != nil || !math.IsNaN(fit.R2) {
		t.Errorf("%+v, %v: want no R²", fit, err)
	}
}

func TestReadCSV(t *testing.T) {
	points, err := ReadCSV(strings.NewReader("\ufeffname, Throughput ,cores,delay\n# ours\nx, 2e9 , 1,500\n\ny,3e9,2,500\n"), 1e9)
	if err != nil || len(points) != 2 || points[1] != (Point{Cores: 2, Throughput: 3, Delay: 500}) {
		t.Errorf("%+v, %v", points, err)
	}
	for text, want := range map[string]string{
		"":                                       "no lines",
		"cores\n1\n":                             "no column is called throughput",
		"throughput\n1\n":                        "no column is called cores",
		"cores,throughput\n":                     "no measurements",
		"cores,cores,throughput\n":               "two columns",
		"cores,throughput\n1,2\nx,3\n":           `line 3: cores "x" is not a number`,
		"cores,throughput\n1,\n":                 `line 2: throughput "" is not a number`,
		"cores,throughput\n1.5,3\n":              "line 2: 1.5 cores",
		"cores,throughput\n0,3\n":                "line 2: 0 cores",
		"cores,throughput\n99999,3\n":            "line 2: 99999 cores",
		"cores,throughput\n1,-3\n":               "line 2: a throughput of -3",
		"cores,throughput\n1,NaN\n":              "not a number",
		"cores,throughput\n1,1e999\n":            "not a number",
		"cores,throughput\n1,2,3\n":              "wrong number of fields",
		"cores,throughput,delay\n1,2,-1\n":       "line 2: a delay of -1",
		"cores,throughput\n\"1,2\n":              "line",
		"cores,throughput,delay\n1,2,infinity\n": "not a number",
	} {
		if _, err := ReadCSV(strings.NewReader(text), 1); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

func FuzzReadCSV(f *testing.F) {
	f.Add("cores,throughput\n1,2\n2,3\n")
	f.Add("cores,throughput,delay\n1,2,500\n2,3e-300,500\n")
	f.Fuzz(func(t *testing.T, text string) {
		points, err := ReadCSV(strings.NewReader(text), 1e9)
		if err != nil || len(points) > 100 || mostCores(points) > 100 {
			return
		}
		if fit, err := Least(points); err == nil && !(fit.Service > 0 && fit.Think > 0) {
			t.Errorf("%+v of %q", fit, text)
		}
	})
}

func TestReport(t *testing.T) {
	points := Series(paperPoints(0))[2]
	r := Report{Unit: "cycles", PerSecond: 2e9, Cores: 4, Efficiency: 0.9,
		Loads: []Load{{Name: "delay 2000", Model: Model{Service: 358, Think: 2120}, Points: points}}}
	var b strings.Builder
	if err := r.Text(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"delay 2000: service time 358 cycles, think time 2120 cycles", "R² 1.0000 over 14", "knee at 6.9 cores"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, &b)
		}
	}
	name := filepath.Join(t.TempDir(), "x.svg")
	if err := r.SVG(name, "t"); err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(name); err != nil || !strings.Contains(string(data), "<svg") {
		t.Errorf("%v, %.50s", err, data)
	}
}
