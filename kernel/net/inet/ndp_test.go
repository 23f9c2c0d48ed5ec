package inet_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"

	"hardtack/kernel/net/inet"
	. "hardtack/kernel/net/socktest"
)

// What routers advertise faster than it is made takes no more memory than what is valid, and in the
// end what is valid is made, and nothing else.
func TestDiscoveryIsBounded(tt *testing.T) {
	t := New(tt)
	n := inet.New(inet.Config{})
	before := len(n.Routes())
	d := n.Discovery()
	prefix := func(i int) tcpip.Subnet {
		a := tcpip.AddrFrom16([16]byte{0xfd, 7, byte(i >> 8), byte(i)})
		return tcpip.AddressWithPrefix{Address: a, PrefixLen: 64}.Subnet()
	}
	router := tcpip.AddrFrom16([16]byte{0xfe, 0x80, 15: 9})
	var valid []int
	r := rand.New(rand.NewPCG(1, 1))
	storm := func(rounds, most int) {
		for range rounds {
			if len(valid) < 10 && r.IntN(2) == 0 { // as many as netstack keeps
				valid = append(valid, r.IntN(1<<16))
				d.OnOffLinkRouteUpdated(inet.LoopbackNIC, prefix(valid[len(valid)-1]), router, header.MediumRoutePreference)
				d.OnOnLinkPrefixDiscovered(inet.LoopbackNIC, prefix(valid[len(valid)-1]))
			} else if len(valid) > 0 {
				d.OnOffLinkRouteInvalidated(inet.LoopbackNIC, prefix(valid[0]), router)
				d.OnOnLinkPrefixInvalidated(inet.LoopbackNIC, prefix(valid[0]))
				valid = valid[1:]
			}
			if got := n.Learned(); got > most {
				t.Fatalf("%d are kept", got)
			}
		}
	}
	settled := func() bool { return len(n.Routes()) == before+2*len(valid) && n.Learned() == 2*len(valid) }
	for range 5 {
		off := n.Still() // valid ones, those that were made before, and the one under way
		storm(20000, 20+20+1)
		off()
		storm(20000, 20+20+1) // while they are made
		for end := time.Now().Add(time.Minute); !settled(); time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%d routes of %d, %d are kept", len(n.Routes())-before, 2*len(valid), n.Learned())
			}
		}
	}
}
