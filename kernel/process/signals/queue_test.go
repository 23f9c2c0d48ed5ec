package signals

import (
	"testing"

	"hardtack/abi/linux"
	"hardtack/kernel/base/accounts"
)

func TestQueueOrder(t *testing.T) {
	u := accounts.UserOf(12345)
	var q Queue
	rt := linux.SIGRTMIN + 3
	add := func(sig linux.Signal, v uint64) {
		info := linux.Siginfo{Signo: int32(sig), Code: linux.SI_QUEUE}
		info.SetValue(v)
		if !q.Put(&info, u, 100) {
			t.Fatal("full")
		}
	}
	add(rt, 1)
	add(linux.SIGTERM, 2)
	add(linux.SIGTERM, 3) // merged
	add(rt, 4)
	add(linux.SIGSEGV, 5)
	want := []struct {
		sig linux.Signal
		v   uint64
	}{{linux.SIGSEGV, 5}, {linux.SIGTERM, 2}, {rt, 1}, {rt, 4}}
	for _, w := range want {
		info, ok := q.Take(^linux.SigSet(0))
		if !ok || info.Signal() != w.sig || info.Value() != w.v {
			t.Errorf("%+v, want %v", info, w)
		}
	}
	if _, ok := q.Take(^linux.SigSet(0)); ok || q.Set != 0 || q.first != nil || q.last != nil {
		t.Error("not empty")
	}
	if n := u.Signals.Load(); n != 0 {
		t.Errorf("%d charged", n)
	}
}

func TestQueueLimit(t *testing.T) {
	u := accounts.UserOf(12346)
	var q Queue
	rt := linux.Siginfo{Signo: int32(linux.SIGRTMIN), Code: linux.SI_QUEUE}
	kill := linux.Siginfo{Signo: int32(linux.SIGTERM)}
	if !q.Put(&rt, u, 1) || q.Put(&rt, u, 1) {
		t.Error("limit not kept")
	}
	if !q.Put(&kill, u, 1) || !q.Set.Has(linux.SIGTERM) {
		t.Error("kill's signal got lost")
	}
	q.Drop(^linux.SigSet(0))
	if q.first != nil || q.Set != 0 || u.Signals.Load() != 0 {
		t.Error("not empty")
	}
}
