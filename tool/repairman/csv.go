package repairman

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Limits of what is read.
const (
	MaxCores  = 1024
	maxPoints = 10_000
	maxDelays = 64
)

// ReadCSV reads measurements: a line of titles, then a line for each. Titles are
// cores, throughput (operations a second), and, for several loads in one file,
// delay (the think time that was asked for, in the caller's unit of time); other
// columns are not looked at. Empty lines and lines that begin with # are left out.
// perSecond is how many units of time a second has.
func ReadCSV(r io.Reader, perSecond float64) ([]Point, error) {
	in := csv.NewReader(r)
	in.Comment = '#'
	in.TrimLeadingSpace = true
	titles, err := in.Read()
	if err == io.EOF {
		return nil, errors.New("no lines; want titles: cores,throughput and perhaps delay")
	}
	if err != nil {
		return nil, err
	}
	column, err := columns(titles)
	if err != nil {
		return nil, err
	}
	var points []Point
	for {
		fields, err := in.Read()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
		line, _ := in.FieldPos(0)
		p, err := point(line, titles, fields, column)
		if err != nil {
			return nil, err
		}
		p.Throughput /= perSecond
		if points = append(points, p); len(points) > maxPoints {
			return nil, fmt.Errorf("line %d: more than %d measurements", line, maxPoints)
		}
	}
	if len(points) == 0 {
		return nil, errors.New("titles, but no measurements")
	}
	if n := len(Series(points)); n > maxDelays {
		return nil, fmt.Errorf("%d different delays: want at most %d", n, maxDelays)
	}
	return points, nil
}

// columns returns where the titles that count stand.
func columns(titles []string) (map[string]int, error) {
	column := map[string]int{}
	for i, t := range titles {
		t = strings.ToLower(strings.TrimSpace(strings.TrimPrefix(t, "\ufeff")))
		if _, twice := column[t]; twice && (t == "cores" || t == "throughput" || t == "delay") {
			return nil, fmt.Errorf("line 1: two columns are called %s", t)
		}
		column[t] = i
	}
	for _, t := range []string{"cores", "throughput"} {
		if _, ok := column[t]; !ok {
			return nil, fmt.Errorf("line 1: no column is called %s; want titles: cores,throughput and perhaps delay", t)
		}
	}
	return column, nil
}

// point is a line of measurements, with operations a second.
func point(line int, titles, fields []string, column map[string]int) (p Point, err error) {
	number := func(i int) (float64, error) {
		v, err := strconv.ParseFloat(strings.TrimSpace(fields[i]), 64)
		if err != nil || math.IsInf(v, 0) || math.IsNaN(v) {
			return 0, fmt.Errorf("line %d: %s %q is not a number", line, strings.TrimSpace(titles[i]), fields[i])
		}
		return v, nil
	}
	cores, err := number(column["cores"])
	if err != nil {
		return p, err
	}
	if cores != math.Trunc(cores) || cores < 1 || cores > MaxCores {
		return p, fmt.Errorf("line %d: %v cores: want a whole number from 1 to %d", line, cores, MaxCores)
	}
	throughput, err := number(column["throughput"])
	if err != nil {
		return p, err
	}
	if throughput <= 0 {
		return p, fmt.Errorf("line %d: a throughput of %v operations a second", line, throughput)
	}
	p = Point{Cores: int(cores), Throughput: throughput}
	if delay, ok := column["delay"]; ok {
		if p.Delay, err = number(delay); err != nil {
			return p, err
		}
		if p.Delay < 0 {
			return p, fmt.Errorf("line %d: a delay of %v", line, p.Delay)
		}
	}
	return p, nil
}

// Series are the points by their delay, ascending, each by cores.
func Series(points []Point) [][]Point {
	by := map[float64][]Point{}
	for _, p := range points {
		by[p.Delay] = append(by[p.Delay], p)
	}
	var out [][]Point
	for _, s := range by {
		slices.SortStableFunc(s, func(a, b Point) int { return a.Cores - b.Cores })
		out = append(out, s)
	}
	slices.SortFunc(out, func(a, b []Point) int {
		if a[0].Delay < b[0].Delay {
			return -1
		}
		return 1
	})
	return out
}
