package affinity_test

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"hardtack/affinity"
)

// The output is the same whether "hardtack go" or go alone has built the program.

func Example() {
	if affinity.Available() {
		if err := affinity.SetPolicy(affinity.Group); err != nil {
			fmt.Println(err)
		}
	}
	// The rest of the program needs no change.
	c := make(chan string, 1)
	c <- "hello"
	fmt.Println(<-c)
	// Output: hello
}

// A flag that takes the same names as HARDTACK_AFFINITY.
func ExampleParsePolicy() {
	fmt.Println(affinity.ParsePolicy("group"))
	_, err := affinity.ParsePolicy("fast")
	fmt.Println(err)
	// Output:
	// group <nil>
	// affinity: no policy "fast": want off, process, node or group
}

func ExamplePolicy_String() {
	for _, p := range []affinity.Policy{affinity.Off, affinity.Process, affinity.Node, affinity.Group} {
		fmt.Println(p)
	}
	// Output:
	// off
	// process
	// node
	// group
}

// Bad settings are refused, and nothing changes.
func ExampleSet() {
	before := affinity.Get()
	err := affinity.Set(affinity.Settings{Policy: affinity.Group, Period: time.Microsecond, Touches: 800})
	fmt.Println(err)
	fmt.Println(affinity.Get() == before)
	// Output:
	// affinity: period 1µs: want 1ms to 1h
	// true
}

// A part of the program for which the policy is off.
func ExampleSetPolicy() {
	before := affinity.Get().Policy
	err := affinity.SetPolicy(affinity.Off)
	if errors.Is(err, affinity.ErrNotBuilt) {
		err = nil // built by go alone: nothing to switch off
	}
	defer func() {
		if affinity.Available() {
			affinity.SetPolicy(before)
		}
	}()
	fmt.Println(affinity.Get().Policy, err)
	// Output: off <nil>
}

// How often one channel was used.
func ExampleCount() {
	c := make(chan int, 1)
	for i := range 1000 {
		c <- i
		<-c
	}
	touches, _, err := affinity.Count(c)
	switch {
	case errors.Is(err, affinity.ErrNotBuilt):
		touches = 2000 // what a program that was built by "hardtack go" is told
	case err != nil:
		fmt.Println(err)
	}
	fmt.Println(touches, "touches: 1000 sends and 1000 receives")
	// Output: 2000 touches: 1000 sends and 1000 receives
}

// A Meter tells rates since its last look. Only channels that are used a lot are seen.
func ExampleMeter() {
	var meter affinity.Meter
	meter.Channels()
	for _, c := range meter.Channels() {
		if c.Share > 0.5 && c.PerSecond > 100_000 {
			fmt.Printf("%s:%d moves between cores\n", c.File, c.Line)
		}
	}
	fmt.Println("done")
	// Output: done
}

// What the policy has decided since the last time that somebody asked.
func ExampleDecisions() {
	count := map[affinity.Kind]int{}
	next := uint64(0)
	for range 2 { // in a program: every few seconds
		var list []affinity.Decision
		list, next = affinity.Decisions(next)
		for _, d := range list {
			count[d.Kind]++
		}
	}
	for _, kind := range []affinity.Kind{affinity.Gathered, affinity.Scattered} {
		fmt.Println(kind, count[kind] <= int(next))
	}
	// Output:
	// gathered true
	// scattered true
}

// All metrics whose names say that they count touches.
func ExampleRead() {
	var samples []affinity.Sample
	for _, m := range affinity.All() {
		if strings.HasSuffix(m.Name, ":touches") {
			samples = append(samples, affinity.Sample{Name: m.Name})
		}
	}
	affinity.Read(samples)
	for _, s := range samples {
		fmt.Println(s.Name, s.Known == affinity.Available())
	}
	// Output:
	// /affinity/contended:touches true
	// /affinity/cross:touches true
	// /affinity/touches:touches true
}
