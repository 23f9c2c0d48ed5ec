package osbench

import "testing"

// TestWake: beside a thread that spins, and among sixteen that take turns, whoever is woken runs
// at once. The clock counts instructions, so this is not a timing test. A thread waits for the
// fifteen others in one wake-up of a thousand, if nothing lets its slice go on.
func TestWake(t *testing.T) {
	b := guestBench(t)
	// The sleeper and the spinner are bound to the same one of two processors. Timers, and who was
	// woken, come to it from the other one, too.
	two, err := b.Count(2, "/bench/osbench online\n/bench/osbench delay 200\n")
	if err != nil {
		t.Fatal(err)
	}
	if late := two["delay"][OnHardtack].Minimum; late > 0.1 {
		t.Errorf("of two processors, on the first a sleeper beside a spinner woke %.3f ms late", late)
	}
	rows, err := b.Count(1, "/bench/osbench delay 1000\n/bench/osbench crowd\n")
	if err != nil {
		t.Fatal(err)
	}
	// Of these two the programs print the worst, and 99.9 %, in milliseconds.
	if late := rows["delay"][OnHardtack].Minimum; late > 0.1 {
		t.Errorf("a sleeper beside a spinner woke %.3f ms late", late)
	}
	if late := rows["crowd"][OnHardtack].Median; late <= 0 || late > 1 {
		t.Errorf("99.9 %% of the crowd woke %.3f ms late at most", late)
	}
	t.Logf("sleeper: %+v; crowd: %+v", rows["delay"][OnHardtack], rows["crowd"][OnHardtack])
}
