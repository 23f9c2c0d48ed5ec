package netif_test

import (
	"bytes"
	"crypto/rand"
	"net/netip"
	"os"
	"testing"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"

	"hardtack/kernel/net/inet"
	"hardtack/kernel/net/netdev"
	"hardtack/kernel/net/netif"
)

// An interface that gets another address asks for its router and so tells
// its own.
func TestRenew(t *testing.T) {
	c, _ := cables(0)
	n := inet.New(inet.Config{Rand: rand.Reader, Log: os.Stderr})
	l, err := netif.Add(n, c, "eth0")
	if err != nil {
		t.Fatal(err)
	}
	router := netip.MustParseAddr("10.9.0.2")
	if err := l.Apply(netif.Settings{Address: netip.MustParsePrefix("10.9.0.1/24"), Router: router}); err != nil {
		t.Fatal(err)
	}
	sent := make(chan []byte, 100)
	c.drop = func(f *netdev.Frame) bool {
		sent <- bytes.Join(f.Parts, nil)
		return true
	}
	mac := [6]byte{2, 0, 0, 0, 0, 9}
	l.Renew(mac)
	for frame := range sent {
		eth := header.Ethernet(frame)
		if eth.Type() != header.ARPProtocolNumber {
			continue
		}
		arp := header.ARP(frame[header.EthernetMinimumSize:])
		if eth.SourceAddress() != tcpip.LinkAddress(mac[:]) || eth.DestinationAddress() != header.EthernetBroadcastAddress {
			t.Errorf("from %v to %v", eth.SourceAddress(), eth.DestinationAddress())
		}
		if arp.Op() != header.ARPRequest || !bytes.Equal(arp.HardwareAddressSender(), mac[:]) ||
			!bytes.Equal(arp.ProtocolAddressSender(), []byte{10, 9, 0, 1}) || !bytes.Equal(arp.ProtocolAddressTarget(), router.AsSlice()) {
			t.Errorf("%x", frame)
		}
		return
	}
}
