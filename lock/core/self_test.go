package core

import "testing"

func TestSelf(t *testing.T) {
	mine := Self()
	stop := make(chan bool)
	defer close(stop)
	seen := map[uintptr]bool{mine: true}
	for range 20 { // all alive at once
		other := make(chan uintptr)
		go func() {
			other <- Self()
			other <- deeper(2000) // its stack is another by then
			<-stop
		}()
		a, b := <-other, <-other
		if a != b || seen[a] || a == 0 {
			t.Errorf("%#x, then %#x; seen before: %v", a, b, seen[a])
		}
		seen[a] = true
	}
	if Self() != mine {
		t.Error("this goroutine is another now")
	}
}

func deeper(n int) uintptr {
	if n == 0 {
		return Self()
	}
	return deeper(n-1) | deeper(0)
}
