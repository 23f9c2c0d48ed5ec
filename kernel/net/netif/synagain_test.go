package netif_test

import (
	"encoding/binary"
	"os"
	"slices"
	"sync"
	"testing"

	"hardtack/abi/linux"
	"hardtack/kernel/net/netdev"
	. "hardtack/kernel/net/socktest"
)

// synTimes keeps the timestamps of segments with SYN from or to a port, and loses all with SYN.
type synTimes struct {
	port uint16
	mu   sync.Mutex
	list []uint32
}

func (s *synTimes) drop(f *netdev.Frame) bool {
	b := slices.Concat(f.Parts...)
	if len(b) < 54 || binary.BigEndian.Uint16(b[12:]) != 0x800 || b[23] != 6 || b[47]&2 == 0 {
		return false
	}
	if from, to := binary.BigEndian.Uint16(b[34:]), binary.BigEndian.Uint16(b[36:]); from != s.port && to != s.port {
		return true
	}
	for o := b[54:min(len(b), 34+int(b[46]>>4)*4)]; len(o) > 9; {
		if o[0] == 8 {
			s.mu.Lock()
			s.list = append(s.list, binary.BigEndian.Uint32(o[2:]))
			s.mu.Unlock()
			break
		}
		if o[0] == 1 {
			o = o[1:]
		} else {
			o = o[max(int(o[1]), 2):]
		}
	}
	return true
}

func (s *synTimes) first(n int) []uint32 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.list) < n {
		return nil
	}
	return slices.Clone(s.list[:n])
}

// A SYN that is sent again, and a SYN-ACK, has the time at which it is sent, with the kernel's
// netstack (the overlay's test runs this one with it): else the answer to it would measure a way
// as long as all that was waited.
func TestSYNAgainHasItsTime(tt *testing.T) {
	if os.Getenv("HARDTACK_NETSTACK") != "patched" {
		tt.Skip("netstack sends the first one's time")
	}
	t := New(tt)
	a, b, ca, cb := machines(tt, 0)
	dial := func(port uint16) {
		x := socket(t, a, linux.SOCK_STREAM)
		t.Cleanup(x.Put)
		t.OK(S(x).Bind(t.C, x, nil, In4(10, 9, 0, 1, 0)), "bind")
		t.Want(S(x).Connect(t.C, nil, In4(10, 9, 0, 2, port), true), linux.EINPROGRESS, "connect")
	}
	l := socket(t, b, linux.SOCK_STREAM)
	t.Cleanup(l.Put)
	t.OK(S(l).Bind(t.C, l, nil, In4(0, 0, 0, 0, 0)), "bind")
	t.OK(S(l).Listen(t.C, 5), "listen")

	answers := &synTimes{port: t.Port(l)}
	cb.drop = answers.drop
	dial(t.Port(l))
	eventually(t, "a SYN-ACK", func() bool { return answers.first(1) != nil })
	syns := &synTimes{port: 9}
	ca.drop = syns.drop
	dial(9)
	for what, s := range map[string]*synTimes{"SYN-ACKs": answers, "SYNs": syns} {
		var times []uint32
		eventually(t, what, func() bool { times = s.first(2); return times != nil })
		if later := int32(times[1] - times[0]); later < 900 { // the timer's second
			t.Errorf("%s have the times %v", what, times)
		}
	}
}
