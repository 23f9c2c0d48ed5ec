package inet_test

import (
	"testing"
	"time"

	"hardtack/abi/linux"
	"hardtack/kernel/net/sock"
	. "hardtack/kernel/net/socktest"
)

// What TCP_CORK or MSG_MORE keeps back goes after 200 ms, or a few times the timer's
// grain of 10 ms later where many connections share it, and not before.
func TestHeldDataGoes(tt *testing.T) {
	t := New(tt)
	type conn struct {
		since time.Time
		read  func() (string, linux.Errno)
	}
	var all []conn
	for range 20 {
		a, b := pair(t)
		defer a.Put()
		defer b.Put()
		NonBlock(b)
		_, e := t.Send(a, "kept back", &sock.Msg{Flags: linux.MSG_MORE})
		t.OK(e, "send")
		all = append(all, conn{time.Now(), func() (string, linux.Errno) { return t.ReadErr(b, 100) }})
		time.Sleep(3 * time.Millisecond)
	}
	for i, c := range all {
		for {
			before := time.Since(c.since)
			s, e := c.read()
			if e == 0 {
				if s != "kept back" || time.Since(c.since) < 150*time.Millisecond {
					t.Errorf("connection %d: %q after %v", i, s, time.Since(c.since))
				}
				break
			}
			if e != linux.EAGAIN || before > 30*time.Second {
				t.Fatalf("connection %d: %v after %v", i, e, before)
			}
			time.Sleep(time.Millisecond)
		}
	}
}
