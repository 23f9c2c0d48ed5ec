package netif

import (
	"crypto/rand"
	"testing"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/stack"

	"hardtack/kernel/net/inet"
	"hardtack/kernel/net/netdev"
)

// network is transport as a device sees it.
type network struct {
	stack.NetworkDispatcher
	*transport
}

// Frames that come while the kernel is short of memory are dropped and counted.
func TestShortOfMemory(t *testing.T) {
	was := Short
	defer func() { Short = was }()
	short := true
	Short.Call = func() bool { return short }
	l := &Link{net: inet.New(inet.Config{Rand: rand.Reader}), host: [6]byte{2, 0, 0, 0, 0, 1}, rxPackets: new(tcpip.StatCounter), rxBytes: new(tcpip.StatCounter)}
	l.own4.Store(0x0a0900ff_0a090001)
	d := new(transport)
	var up stack.NetworkDispatcher = network{transport: d}
	l.up.Store(&up)
	frame := []netdev.Frame{piece{1, 7, ack, "data", "", false}.frame()}
	l.receive(frame)
	if len(d.got) != 0 || l.RxDropped.Load() != 1 {
		t.Errorf("short of memory: %d delivered, %d dropped", len(d.got), l.RxDropped.Load())
	}
	short = false
	l.receive(frame)
	if len(d.got) != 1 || l.RxDropped.Load() != 1 {
		t.Errorf("with memory again: %d delivered, %d dropped", len(d.got), l.RxDropped.Load())
	}
}
