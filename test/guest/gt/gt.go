// Package gt is the small frame of the guest test programs. A program runs its
// tests in order and prints, for each,
//
//	=== RUN   name
//	what the test observed, line by line
//	--- PASS: name
//
// The same static binary runs on Linux and on Hardtack and the outputs must be
// equal, so a test prints what it sees instead of what it expected, and never
// anything that differs between two runs (ids, addresses, times). Require and
// Fatal are for what must hold before the rest means anything.
package gt

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// T is one running test.
type T struct{ failed string }

// A Test is a name and what it does.
type Test struct {
	Name string
	Run  func(*T)
}

type stop struct{}

// children are entry points of the program when it runs as its own child.
var children = map[string]func(args []string){}

// Child registers an entry point for Self; call it before Main.
func Child(name string, run func(args []string)) { children[name] = run }

// Self is the argument vector that runs the program's entry point `name`.
func Self(name string, args ...string) []string {
	return append([]string{"/proc/self/exe", "child:" + name}, args...)
}

// Main runs all tests and exits with 1 when one failed. Arguments are parts of
// names: only those tests run.
func Main(tests ...Test) {
	if len(os.Args) > 1 {
		if name, ok := strings.CutPrefix(os.Args[1], "child:"); ok {
			children[name](os.Args[2:])
			os.Exit(0)
		}
	}
	unix.Umask(0o022)
	status := 0
	base, err := os.Getwd()
	if err != nil {
		fmt.Println("--- FAIL: getwd:", err)
		os.Exit(1)
	}
	for i, test := range tests {
		if !selected(test.Name) {
			continue
		}
		// Each test has an empty directory.
		dir := fmt.Sprintf("%s/t%d", base, i)
		if err := errors.Join(os.Mkdir(dir, 0o755), os.Chdir(dir)); err != nil {
			fmt.Printf("--- FAIL: %s: %v\n", test.Name, err)
			os.Exit(1)
		}
		fmt.Println("=== RUN  ", test.Name)
		t := &T{}
		done := make(chan struct{})
		// A goroutine of its own, locked to a thread that ends with it: tests
		// may change credentials, masks and timers of their thread.
		go func() {
			defer close(done)
			defer t.recover()
			runtime.LockOSThread()
			test.Run(t)
		}()
		<-done
		if t.failed != "" {
			fmt.Printf("--- FAIL: %s: %s\n", test.Name, t.failed)
			status = 1
		} else {
			fmt.Println("--- PASS:", test.Name)
		}
	}
	os.Exit(status)
}

func selected(name string) bool {
	if len(os.Args) < 2 {
		return true
	}
	for _, part := range os.Args[1:] {
		if strings.Contains(name, part) {
			return true
		}
	}
	return false
}

func (t *T) recover() {
	switch r := recover().(type) {
	case nil, stop:
	default:
		t.failed = fmt.Sprint("panic: ", r)
	}
}

// Say prints one line of what was observed.
func (t *T) Say(format string, args ...any) { fmt.Printf("    "+format+"\n", args...) }

// Err prints how a call ended: ok, or the name of its errno.
func (t *T) Err(what string, err error) { t.Say("%s: %s", what, Name(err)) }

// Fatal ends the test as failed.
func (t *T) Fatal(format string, args ...any) {
	t.failed = fmt.Sprintf(format, args...)
	panic(stop{})
}

// Require ends the test as failed when err is not nil.
func (t *T) Require(what string, err error) {
	if err != nil {
		t.Fatal("%s: %s", what, Name(err))
	}
}

// Name is an error's errno name, or ok.
func Name(err error) string {
	var errno syscall.Errno
	switch {
	case err == nil:
		return "ok"
	case errors.As(err, &errno) && errno == 0:
		return "ok"
	case errors.As(err, &errno):
		if name := unix.ErrnoName(errno); name != "" {
			return name
		}
		return fmt.Sprintf("errno %d", int(errno))
	}
	return err.Error()
}

// Sys makes a raw system call and returns its result and error.
func Sys(nr uintptr, args ...uintptr) (uintptr, error) {
	var a [6]uintptr
	copy(a[:], args)
	r, _, errno := unix.Syscall6(nr, a[0], a[1], a[2], a[3], a[4], a[5])
	if errno != 0 {
		return r, errno
	}
	return r, nil
}

// Later runs do when the caller's thread has been blocked for a while.
func Later(do func()) {
	stat := fmt.Sprintf("/proc/self/task/%d/stat", unix.Gettid())
	go func() {
		end := time.Now().Add(5 * time.Second)
		for asleep := 0; asleep < 3 && time.Now().Before(end); asleep++ {
			time.Sleep(10 * time.Millisecond)
			b, err := os.ReadFile(stat)
			_, state, _ := strings.Cut(string(b), ") ")
			if err == nil && !strings.HasPrefix(state, "S") {
				asleep = -1
			}
		}
		do()
	}()
}

// Wild are pointers that no system call may follow.
var Wild = []struct {
	Name string
	Addr uintptr
}{
	{"null page", 8},
	{"unmapped", 0x10000},
	{"end of user space", 0x7ffffffff000},
	{"non-canonical", 0x8000000000000000},
	{"kernel", 0xffffffff80200000},
	{"direct map", 0xffff800000000000},
	{"last byte", 0xffffffffffffffff},
}
