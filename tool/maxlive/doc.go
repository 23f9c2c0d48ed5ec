// Package maxlive bounds the heap that a call of a Go function needs, without running
// it: how many bytes of what the call allocates can be live at once, by size class, and
// how many are still live after it. docs/maxlive.md says what is counted and what is not.
//
// program.go loads a program; targets.go, assign.go and special.go find what functions and
// interfaces hold, bind.go what a function is given, point.go what reserves for itself;
// escape.go asks the compiler what is on the heap. For each function, callees first
// (scc.go, solve.go), flow.go and reach.go find from where objects can be reached, site.go and grow.go what instructions
// allocate, loop.go and trips.go how often loops run, and cost.go adds up along the
// paths. annotation.go and model.go are for what cannot be derived.
package maxlive
