package procfs

import "testing"

// TestCPUTimes divides times among processors: idle time is each one's own, the rest goes by how
// busy they were, nothing goes back, and one that is off keeps what it had.
func TestCPUTimes(t *testing.T) {
	var c cpuTimes
	idle := []int64{0, 900, 500}
	idled := func(cpu int) int64 { return idle[cpu] }
	first := c.update(7, 1000, idled, cpuTime{user: 800, waited: 320, turns: 16})
	if want := (cpuTime{busy: 1000, user: 500, waited: 200, turns: 10}); first[0] != want {
		t.Errorf("busy: %v, want %v", first[0], want)
	}
	if want := (cpuTime{busy: 100, idle: 900, user: 50, waited: 20, turns: 1}); first[1] != want {
		t.Errorf("idle: %v, want %v", first[1], want)
	}
	// Now the second one alone is busy, the third is off, and a thread that ended took its time along.
	idle[0] = 1000
	second := c.update(3, 2000, idled, cpuTime{user: 700, waited: 330, turns: 20})
	if second[0] != (cpuTime{busy: 1000, idle: 1000, user: 500, waited: 200, turns: 10}) || second[2] != first[2] {
		t.Errorf("%v, %v before; %v, %v", first[0], first[2], second[0], second[2])
	}
	if want := (cpuTime{busy: 1100, idle: 900, user: 50, waited: 30, turns: 5}); second[1] != want {
		t.Errorf("busy: %v, want %v", second[1], want)
	}
	// Who asks at once learns the same.
	if third := c.update(3, 2000, idled, cpuTime{user: 900, waited: 330, turns: 20}); third != second {
		t.Errorf("%v, before %v", third, second)
	}
}
