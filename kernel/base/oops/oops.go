// Package oops decides whether the kernel may go on after a Go panic
// (docs/decisions/0093-panics.md).
//
// The panicking goroutine's stack is compared with a table, made when the image is built,
// of the source lines at which a lock may be held. The kernel continues only if every
// frame is known and none is at such a line.
package oops

import (
	"fmt"
	"runtime"
	"strconv"
	"strings"
)

const module = "hardtack/"

// pure are the packages of Go's library that hold no lock while they call others or
// panic. The runtime itself is among them: where it holds one it does not panic, it
// ends the machine.
var pure = map[string]bool{
	"bytes": true, "cmp": true, "encoding/binary": true, "errors": true, "fmt": true, "iter": true, "maps": true,
	"math": true, "math/bits": true, "runtime": true, "slices": true, "sort": true, "strconv": true,
	"strings": true, "unicode/utf8": true,
}

// maxFrames is how deep a stack may be; of a deeper one not all would be looked at.
const maxFrames = 512

// Locked looks at the stack of the calling goroutine, which is panicking, and returns
// the innermost place at which a lock may be held; "" if there is none.
func Locked() string {
	pcs := make([]uintptr, maxFrames)
	pcs = pcs[:runtime.Callers(1, pcs)]
	if len(pcs) == maxFrames {
		return "the stack, which is too deep"
	}
	var stack []runtime.Frame
	for frames := runtime.CallersFrames(pcs); ; {
		f, more := frames.Next()
		stack = append(stack, f)
		if !more {
			return locked(stack, lines)
		}
	}
}

// locked is Locked for a stack and a table. What lies inside the panic are those who
// ask.
func locked(stack []runtime.Frame, table string) string {
	for len(stack) > 0 && stack[0].Function != "runtime.gopanic" {
		stack = stack[1:]
	}
	if len(stack) == 0 || stack[len(stack)-1].Function != "runtime.goexit" {
		return "the stack, of which only a part is known"
	}
	files := parse(table)
	for _, f := range stack {
		if !files.clean(f) {
			return fmt.Sprintf("%s (%s:%d)", f.Function, f.File, f.Line)
		}
	}
	return ""
}

// fileLines are the ranges of lines of each file.
type fileLines map[string]string

func parse(table string) fileLines {
	files := fileLines{}
	for line := range strings.Lines(table) {
		name, ranges, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		files[name] = ranges
	}
	return files
}

// clean reports whether a frame surely holds no lock.
func (files fileLines) clean(f runtime.Frame) bool {
	if name, ours := strings.CutPrefix(f.File, module); ours {
		ranges, known := files[name]
		return known && !within(ranges, f.Line)
	}
	p := packageOf(f.Function)
	return pure[p] || strings.HasPrefix(p, "internal/runtime/") || p == "internal/bytealg"
}

// packageOf cuts a function's full name down to its package.
func packageOf(function string) string {
	slash := strings.LastIndexByte(function, '/') + 1
	dot := strings.IndexByte(function[slash:], '.')
	if dot < 0 {
		return ""
	}
	return function[:slash+dot]
}

// within reports whether a line is in one of the ranges "4-7 12-12". What cannot be
// read holds every line.
func within(ranges string, line int) bool {
	for r := range strings.FieldsSeq(ranges) {
		from, to, _ := strings.Cut(r, "-")
		first, err1 := strconv.Atoi(from)
		last, err2 := strconv.Atoi(to)
		if err1 != nil || err2 != nil || first <= line && line <= last {
			return true
		}
	}
	return false
}
