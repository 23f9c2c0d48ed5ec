package oops

import (
	"runtime"
	"strings"
	"testing"
)

const table = "kernel/mm/vm/copy.go 40-44 60-60\nkernel/process/proc/run.go\nkernel/bad.go x-y\n"

func frame(function, file string, line int) runtime.Frame {
	return runtime.Frame{Function: function, File: file, Line: line}
}

func TestLocked(t *testing.T) {
	asks := frame("hardtack/kernel/process/proc.(*runner).caught", "hardtack/kernel/process/proc/run.go", 1)
	panics := frame("runtime.gopanic", "runtime/panic.go", 7)
	loop := frame("hardtack/kernel/process/proc.(*Thread).loop", "hardtack/kernel/process/proc/run.go", 30)
	exit := frame("runtime.goexit", "runtime/asm_amd64.s", 1)
	at := func(line int) runtime.Frame {
		return frame("hardtack/kernel/mm/vm.(*Space).CopyIn", "hardtack/kernel/mm/vm/copy.go", line)
	}
	for _, c := range []struct {
		name  string
		stack []runtime.Frame
		want  string // in the answer; "" means that the kernel may go on
	}{
		{"no lock", []runtime.Frame{asks, panics, at(45), loop, exit}, ""},
		{"before a lock", []runtime.Frame{asks, panics, at(39), loop, exit}, ""},
		{"a lock", []runtime.Frame{asks, panics, at(40), loop, exit}, "copy.go:40"},
		{"a lock's last line", []runtime.Frame{asks, panics, at(44), loop, exit}, "copy.go:44"},
		{"a lock further out", []runtime.Frame{panics, frame("sort.Sort", "sort/sort.go", 1), at(60), loop, exit}, "copy.go:60"},
		{"Go's own", []runtime.Frame{panics, frame("internal/runtime/maps.(*Map).Put", "x", 1), frame("slices.SortFunc[...]", "x", 1), loop, exit}, ""},
		{"sync", []runtime.Frame{panics, frame("sync.(*Once).Do", "sync/once.go", 1), loop, exit}, "sync"},
		{"a package that is not judged", []runtime.Frame{panics, frame("hardtack/ext4.f", "hardtack/ext4/f.go", 1), loop, exit}, "ext4"},
		{"another module", []runtime.Frame{panics, frame("gvisor.dev/gvisor/pkg/tcpip/stack.f", "gvisor.dev/x.go", 1), loop, exit}, "gvisor"},
		{"a table that cannot be read", []runtime.Frame{panics, frame("hardtack/kernel.f", "hardtack/kernel/bad.go", 1), exit}, "bad.go"},
		{"no panic", []runtime.Frame{loop, exit}, "stack"},
		{"a cut stack", []runtime.Frame{panics, at(45), loop}, "stack"},
		{"a second panic", []runtime.Frame{panics, at(45), panics, at(41), loop, exit}, "copy.go:41"},
	} {
		got := locked(c.stack, table)
		if c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// Without a table no panic is survived.
func TestNoTable(t *testing.T) {
	stack := make(chan string)
	go func() {
		defer func() {
			stack <- Locked()
			_ = recover()
		}()
		panic("test")
	}()
	if where := <-stack; !strings.Contains(where, "oops_test.go") {
		t.Errorf("%q", where)
	}
}
