package vm

import "testing"

// Who looks into a space keeps it, but is nobody who has it: the killer must not take a
// reader of /proc/PID/mem for another process with the same memory.
func TestLook(t *testing.T) {
	leakCheck(t)
	s := newSpace(t)
	s.Share()
	if !s.TryLook() {
		t.Fatal("nobody may look")
	}
	s.Look()
	if n := s.Users(); n != 2 {
		t.Errorf("%d have it, want 2", n)
	}
	s.Release()
	s.EndLook()
	s.Release()
	if n := s.Users(); n != 0 {
		t.Errorf("%d have it, want nobody", n)
	}
	if !s.TryLook() {
		t.Error("it is gone before the last look has ended")
	}
	s.EndLook()
	s.EndLook()
	if s.TryLook() {
		t.Error("it stays")
	}
}
