package mem_test

import (
	"testing"
	"time"

	"hardtack/kernel/base/mem"
)

// Two that are held up at the same time count once.
func TestStall(t *testing.T) {
	var s mem.Stall
	start := time.Now()
	s.Begin()
	s.Begin()
	time.Sleep(20 * time.Millisecond)
	s.End()
	if _, n := s.Total(); n != 1 {
		t.Errorf("%d are held up, want 1", n)
	}
	s.End()
	most := time.Since(start)
	got, n := s.Total()
	if got < int64(20*time.Millisecond) || got > int64(most) || n != 0 {
		t.Errorf("stalled for %v of %v, %d still", time.Duration(got), most, n)
	}
	time.Sleep(time.Millisecond)
	if again, _ := s.Total(); again != got {
		t.Errorf("%v passed while nobody was held up", time.Duration(again-got))
	}
}
