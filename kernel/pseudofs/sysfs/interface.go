package sysfs

import (
	"fmt"
	"net"

	"hardtack/abi/linux"
	"hardtack/kernel/net/inet"
)

// AddInterface shows a network interface under class/net.
func AddInterface(n *inet.Net, i *inet.Interface) {
	at := "devices/virtual/net/" + i.Name + "/"
	text := func(name string, f func() any) {
		Add(at+name, func() string { return fmt.Sprintln(f()) })
	}
	fixed := func(name string, v any) { text(name, func() any { return v }) }
	fixed("addr_len", len(i.MAC))
	fixed("broadcast", broadcast(i))
	fixed("dev_id", "0x0")
	fixed("ifindex", i.Index)
	fixed("iflink", i.Index)
	fixed("link_mode", 0)
	fixed("tx_queue_len", 1000)
	fixed("type", i.HardwareType())
	text("address", func() any { return net.HardwareAddr(i.MAC[:]) })
	text("carrier_changes", func() any { return i.CarrierChanges() })
	text("flags", func() any { return fmt.Sprintf("0x%x", i.Flags()&^(linux.IFF_RUNNING|linux.IFF_LOWER_UP)) })
	text("mtu", func() any { return i.CurrentMTU() })
	text("operstate", func() any { return operState(i) })
	text("carrier", func() any {
		if i.Carrier() {
			return 1
		}
		return 0
	})
	for k, name := range [...]string{"rx_bytes", "rx_packets", "tx_bytes", "tx_packets"} {
		text("statistics/"+name, func() any {
			rb, rp, tb, tp := n.Statistics(i.Index)
			return [...]uint64{rb, rp, tb, tp}[k]
		})
	}
	Link("class/net/"+i.Name, "../../devices/virtual/net/"+i.Name)
}

func broadcast(i *inet.Interface) string {
	if i.Loopback {
		return net.HardwareAddr(make([]byte, 6)).String()
	}
	return "ff:ff:ff:ff:ff:ff"
}

// operState is the state of RFC 2863.
func operState(i *inet.Interface) string {
	switch {
	case !i.Running():
		return "down"
	case i.Loopback:
		return "unknown"
	}
	return "up"
}
