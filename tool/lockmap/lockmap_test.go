package lockmap

import (
	"encoding/json"
	"fmt"
	"go/types"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// sample is code whose lines say whether a lock may be held there: "L" at the end.
const sample = `package sample

type Mutex struct{}

func (*Mutex) Lock()
func (*Mutex) Unlock()
func (*Mutex) TryLock() bool
func (*Mutex) RLock()
func (*Mutex) RUnlock()

type word struct{}

func (word) CompareAndSwap(a, b int) bool

type T struct {
	mu, other Mutex
	w         word
	next      *T
}

func work() {}

func cond() bool

func plain(t *T) {
	work()
	t.mu.Lock() // L
	work()      // L
	t.mu.Unlock() // L
	work()
}

func deferred(t *T) {
	work()
	t.mu.Lock()         // L
	defer t.mu.Unlock() // L
	work()              // L
} // L

func literal(t *T) {
	t.mu.RLock() // L
	defer func() { // L
		work() // L
		t.mu.RUnlock() // L
	}() // L
	work() // L
} // L

func branches(t *T) {
	t.mu.Lock() // L
	if cond() { // L
		t.mu.Unlock() // L
		work()
		return
	}
	if cond() { // L
		work() // L
	} else {
		t.mu.Unlock() // L
	}
	work() // L
	t.mu.Unlock() // L
	work()
}

func loops(t *T) {
	for cond() {
		t.mu.Lock() // L
		if cond() { // L
			break // L
		}
		t.mu.Unlock() // L
		work()
	}
	work() // L
}

func always(t *T) {
	t.mu.Lock() // L
	for {
		if cond() { // L
			t.mu.Unlock() // L
			return
		}
		work() // L
	}
}

func tries(t *T) {
	if !t.mu.TryLock() { // L
		work()
		return
	}
	work() // L
	t.mu.Unlock() // L
	work()
}

func cases(t *T, n int) {
	switch n {
	case 1:
		t.mu.Lock() // L
	case 2:
		work()
	}
	work() // L
}

func (t *T) lock() {
	work()
	t.mu.Lock() // L
	t.other.Lock() // L
} // L

func (t *T) unlock() {
	t.other.Unlock()
	t.mu.Unlock()
	work()
}

func helpers(t *T) {
	t.next.lock() // L
	work() // L
	t.next.unlock() // L
	work()
	t.lock() // L
	defer t.unlock() // L
	work() // L
} // L

func wrong(t, u *T) {
	t.mu.Lock() // L
	u.mu.Unlock() // L
	work() // L
}

func hand(t *T) {
	t.mu.Lock() // L
	for cond() { // L
		next := t.next // L
		next.mu.Lock() // L
		t.mu.Unlock() // L
		t = next // L
	}
	t.mu.Unlock() // L
	work() // L
}

func again(t *T) {
	t.mu.Lock() // L
	pause(t) // L
	t.mu.Unlock() // L
	work()
}

func pause(t *T) {
	t.mu.Unlock()
	work()
	t.mu.Lock()
}

func swaps(t *T) {
	work()
	t.w.CompareAndSwap(0, 1) // L
	work() // L
} // L

func swapper(t *T) {
	swaps(t)
	work()
}

func jumps(t *T) { // L
	work() // L
again: // L
	t.mu.Lock() // L
	t.mu.Unlock() // L
	if cond() { // L
		goto again // L
	} // L
} // L

func value(t *T) {
	work()
	f := t.mu.Lock // L
	f() // L
} // L

func conditional(t *T) int {
	t.mu.Lock() // L
	if cond() { // L
		t.mu.Unlock() // L
		return 1
	}
	return 0 // L
}

func asks(t *T) int {
	e := conditional(t) // L
	if e != 0 { // L
		work()
		return e
	}
	work() // L
	t.mu.Unlock() // L
	work()
	if e := conditional(t); e == 0 { // L
		work() // L
		t.mu.Unlock() // L
	}
	work()
	e = conditional(t) // L
	e = 0 // L
	if e != 0 { // L
		work() // L
	}
	return e // L
}

var table = []func(*T){
	func(t *T) {
		work()
		t.mu.Lock() // L
		t.mu.Unlock() // L
	},
}

func others(t *T) {
	go func() {
		t.mu.Lock() // L
		t.mu.Unlock() // L
	}()
	work()
}
`

func analyse(t *testing.T, text string) *file {
	t.Helper()
	contracts["sample.conditional"] = contract{acquires: []string{"t.mu"}, unlessError: true}
	a := newAnalysis()
	// Functions without bodies stand for others' code.
	if err := a.add("sample", map[string]string{"sample.go": text}, noImports{}); err != nil {
		t.Fatal(err)
	}
	a.solve()
	return a.files[0]
}

type noImports struct{}

func (noImports) Import(path string) (*types.Package, error) { return nil, fmt.Errorf("no %s", path) }

func TestLines(t *testing.T) {
	f := analyse(t, sample)
	for i, line := range strings.Split(sample, "\n") {
		code, comment, _ := strings.Cut(line, "//")
		want := strings.TrimSpace(comment) == "L"
		// A brace alone does nothing, but where a function ends.
		if strings.Trim(code, "\t }") == "" && !want {
			continue
		}
		if got := f.held[i+1]; got != want {
			t.Errorf("line %d, %q: held %v", i+1, strings.TrimSpace(code), got)
		}
	}
}

// A file may say that panics in it stop the machine.
func TestStop(t *testing.T) {
	f := analyse(t, "package sample\n\n//oops:stop for a test\n\nfunc f() {}\n")
	if !f.stop {
		t.Error("the mark was not seen")
	}
}

// leavers are the kernel's functions that lock or unlock for their callers. One more
// makes all who call it suspects: it needs a contract, or another shape.
var leavers = []string{
	"kernel/process/futex.lockBoth", "kernel/process/futex.unlockBoth",
	"kernel/tty.unlock", "kernel/fs/vfs.lockTwo", "kernel/fs/vfs.unlockTwo", "kernel/mm/vm.lock", "kernel/mm/vm.unlock", "kernel/mm/vm.word",
}

// TestKernel judges the kernel as it is: what is known of some of its lines, and that
// most lines are clean.
func TestKernel(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles the kernel's packages")
	}
	list := exec.Command("go", "list", "-export", "-deps", "-pgo=off", "-json=ImportPath,Dir,Export,GoFiles", "hardtack/cmd/kernel")
	list.Env = append(os.Environ(), "GOOS=linux", "GOARCH=amd64", "CGO_ENABLED=0")
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	packages := Packages{}
	for d := json.NewDecoder(strings.NewReader(string(out))); d.More(); {
		var p Package
		if err := d.Decode(&p); err != nil {
			t.Fatal(err)
		}
		packages[p.ImportPath] = p
	}
	a, err := load(packages)
	if err != nil {
		t.Fatal(err)
	}
	a.solve()
	lines, held := 0, 0
	for _, f := range a.files {
		text, err := os.ReadFile("../../" + f.name)
		if err != nil {
			t.Fatal(err)
		}
		source := strings.Split(string(text), "\n")
		lines += len(source)
		held += len(f.held)
		for i, line := range source {
			line = strings.TrimSpace(line)
			if want, ok := judged[f.name][line]; ok && f.held[i+1] != want {
				t.Errorf("%s:%d, %q: held %v", f.name, i+1, line, !want)
			}
		}
	}
	if share := 100 * held / lines; share > 20 {
		t.Errorf("a lock may be held at %d of 100 lines: the analysis has lost its way", share)
	}
	for _, f := range a.functions {
		name := f.file.dir + "." + f.name
		if len(f.acquires)+len(f.releases) > 0 && !slices.Contains(leavers, name) {
			t.Errorf("%s leaves %v locked and %v unlocked for its callers", name, f.acquires, f.releases)
		}
	}
}

// judged are lines of the kernel that surely hold a lock, or none.
var judged = map[string]map[string]bool{
	"kernel/process/proc/run.go":   {"Syscall(t)": false, "t.fault(trap)": false, "left, ended := threadLoop(t)": false},
	"kernel/syscall/dispatch.go":   {"v, e := handlers[nr](t, a)": false},
	"kernel/syscall/sys_file.go":   {"n, e = f.Ops.Write(&t.Ctx, f, &t.Vec, 0)": false, "n, e = f.Ops.Write(&t.Ctx, f, &t.Vec, f.Pos)": true},
	"kernel/mm/vm/copy.go":         {"copy(dst, p[off:])": true, "return s.copyIn(dst, va)": false, "store32(b, v)": true},
	"kernel/tty/ioctl.go":          {"for !t.driver.drained(t) {": true},
	"kernel/syscall/sys_splice.go": {"off := at.off": false, "done, e = spliceOut(t, from, dst, a.Addr(3), a[4], !wait || src.NonBlock())": false},
	"kernel/syscall/sys_mount.go": {
		"fs, e := vfs.MakeFS(kind, source, data)": false, "_, e = p.Namespace().Mount(fs, fs.Root, source, p, flags)": false,
		"return 0, mountDisk(t, kind, source, data, p, mountFlags(flags, 0))": false, "fs.Drop()": false,
	},
	"kernel/fs/vfs/mount.go": {"n := old.copy(1 + len(below))": true},
}
