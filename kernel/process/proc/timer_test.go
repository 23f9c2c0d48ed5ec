package proc

import (
	"testing"

	"hardtack/abi/linux"
)

// Expirations that the timer counts while its signal is being taken belong to the taker.
func TestCountWhileTaken(t *testing.T) {
	p := &Process{}
	th := &Thread{Proc: p}
	s, e := p.NewTimerSignal()
	if e != 0 {
		t.Fatal(e)
	}
	expired := func(n int32) {
		info := linux.Siginfo{Signo: int32(linux.SIGUSR1), Code: linux.SI_TIMER}
		info.SetTimer(7, n-1, 0)
		if p.SendTimer(s, th, &info) {
			t.Error("a second signal was queued")
		}
	}
	s.Catch = func() uint64 {
		expired(40)
		return 300
	}
	info := linux.Siginfo{Signo: int32(linux.SIGUSR1), Code: linux.SI_TIMER}
	info.SetTimer(7, 0, 0)
	th.sig.pending.PutTimer(&info, s)
	s.Counting.Lock()
	expired(5)
	s.Counting.Unlock()
	got, ok := th.DequeueSignal(linux.SIGUSR1.Set())
	if _, over := got.Timer(); !ok || over != 345 || s.Overrun() != 345 {
		t.Errorf("%v: %d and %d, want 345", ok, over, s.Overrun())
	}
	if s.Merge(&info) || s.Queued() {
		t.Error("the next signal would not be queued")
	}
}
