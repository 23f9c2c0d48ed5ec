package endpoint

import (
	"math"
	"testing"

	"hardtack/abi/linux"
	"hardtack/kernel/base/wait"
	"hardtack/kernel/fs/vfs"
	"hardtack/nucleus"
	core "hardtack/nucleus/ipc"
)

// other is the operations of a file that is nothing to message calls.
type other struct{ vfs.BaseOps }

// What may be done with a descriptor is in its kind: the table says which files stand for
// what, and of which a sender with a badge can be made.
func TestKinds(t *testing.T) {
	o := &object{id: core.ID(7)}
	for name, x := range map[string]struct {
		ops    vfs.Ops
		target nucleus.Target
		e      linux.Errno
		mint   linux.Errno
		text   string
	}{
		"receiver":     {&receiver{file{o: o}}, nucleus.Target{Kind: nucleus.ReceiveTarget, ID: 7}, 0, 0, "anon_inode:[endpoint]"},
		"sender":       {&sender{file{o: o}, 0}, nucleus.Target{Kind: nucleus.SendTarget, ID: 7}, 0, 0, "anon_inode:[endpoint]"},
		"badged":       {&sender{file{o: o}, 5}, nucleus.Target{Kind: nucleus.SendTarget, ID: 7, Badge: 5}, 0, linux.EPERM, "anon_inode:[endpoint]"},
		"notification": {&notification{file{o: o}}, nucleus.Target{Kind: nucleus.NotificationTarget, ID: 7}, 0, linux.EBADF, "anon_inode:[notification]"},
		"other":        {other{}, nucleus.Target{}, linux.EBADF, linux.EBADF, ""},
	} {
		f := vfs.NewFile(x.ops, linux.O_RDWR)
		if got, e := targetOf(f); got != x.target || e != x.e {
			t.Errorf("%s: %+v %v, want %+v %v", name, got, e, x.target, x.e)
		}
		s, e := mint(f, 9)
		if e != x.mint {
			t.Errorf("%s: mint %v, want %v", name, e, x.mint)
		}
		if e == 0 {
			if got, _ := targetOf(s); got != (nucleus.Target{Kind: nucleus.SendTarget, ID: 7, Badge: 9}) {
				t.Errorf("%s: minted %+v", name, got)
			}
		}
		if n, ok := x.ops.(interface{ Name(*vfs.File) string }); ok && x.text != "" && n.Name(f) != x.text {
			t.Errorf("%s: %q", name, n.Name(f))
		}
	}
}

// A sender learns that its endpoint has ended.
func TestEnded(t *testing.T) {
	o := &object{id: core.ID(3)}
	s := &sender{file: file{o: o}}
	f := vfs.NewFile(s, linux.O_WRONLY)
	if ev := s.Ready(f); ev&wait.Out == 0 || ev&wait.Err != 0 {
		t.Errorf("%#x", ev)
	}
	o.ended.Store(true)
	if ev := s.Ready(f); ev&wait.Err == 0 {
		t.Errorf("after the end %#x", ev)
	}
	if _, e := targetOf(f); e != linux.EPIPE {
		t.Error(e)
	}
}

// The timer is set only if it does not fire by then anyway.
func TestExpiresBy(t *testing.T) {
	defer expiry.at.Store(expiry.at.Load())
	for _, x := range []struct {
		fires, at uint64
		want      bool
	}{
		{0, 1, false},
		{0, math.MaxUint64, true}, // for ever: there is nothing to fire for
		{100, 100, true},
		{100, 200, true},
		{100, 99, false},
		{100, math.MaxUint64, true},
	} {
		expiry.at.Store(x.fires)
		if got := expiresBy(x.at); got != x.want {
			t.Errorf("it fires at %d: by %d %v, want %v", x.fires, x.at, got, x.want)
		}
	}
}

// A file in flight is received once; numbers that were never sent bring nothing.
func TestFlight(t *testing.T) {
	a, b := vfs.NewFile(other{}, 0), vfs.NewFile(other{}, 0)
	flight.mu.Lock()
	if flight.file == nil {
		flight.file = map[uint64]inFlight{}
	}
	flight.file[1<<40] = inFlight{a, 1, 0}
	flight.file[1<<40+1] = inFlight{b, 2, 0}
	flight.mu.Unlock()
	if receive(1<<40+1) != b || receive(1<<40) != a || receive(1<<40) != nil || receive(5) != nil {
		t.Error("a file came twice, or another one")
	}
}
