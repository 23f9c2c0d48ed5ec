package lockmap

import (
	"fmt"
	"go/types"
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
