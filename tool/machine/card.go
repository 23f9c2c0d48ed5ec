package machine

import (
	"cmp"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"hardtack/tool/fault"
)

// The network cards there are.
const (
	NICVirtio = "virtio"
	NICE1000E = "e1000e" // Intel 82574L
	NICE1000  = "e1000"  // Intel 82540EM
)

// What the card is connected to, beside QEMU's user network.
const (
	NetUser  = "user"
	NetTap   = "tap"
	NetPasst = "passt"
	NetNone  = "none"
)

// Network is what --net says.
type Network struct {
	Kind    string // user, tap, passt or none
	Tap     string // the host's interface
	DHCP    bool   // the guest asks for its address
	Address string // with prefix; empty with DHCP
	Gateway string
	DNS     string
}

// userNetwork are the addresses of QEMU's user network.
var userNetwork = Network{Kind: NetUser, Address: "10.0.2.15/24", Gateway: "10.0.2.2", DNS: "10.0.2.3"}

// ParseNetwork reads user, tap=NAME, passt or none, for the first three followed by ,dhcp or by
// ,address=ADDR/PREFIX[,gateway=ADDR][,dns=ADDR]; static and dhcp are the user network.
func ParseNetwork(s string) (Network, error) {
	words := strings.Split(s, ",")
	kind, tap, isTap := strings.Cut(words[0], "=")
	n := Network{Kind: kind, DHCP: true}
	switch {
	case isTap && kind == NetTap:
		if n.Tap = tap; tap == "" || len(tap) >= unix.IFNAMSIZ || strings.ContainsAny(tap, "/ \t") {
			return n, fault.Bad("--net %q: want tap=NAME, a network interface", s)
		}
	case isTap:
		return n, fault.Bad("--net %q: want user, tap=NAME, passt or none", s)
	case kind == "static" || kind == NetUser:
		n = userNetwork
	case kind == "dhcp":
		n.Kind = NetUser
	case kind == NetPasst:
	case kind == NetNone && len(words) == 1:
		n.DHCP = false
	default:
		return n, fault.Bad("--net %q: want user, tap=NAME, passt or none", s)
	}
	for _, w := range words[1:] {
		if err := n.set(w); err != nil {
			return n, fault.Bad("--net %q: %v", s, err)
		}
	}
	if n.Address == "" && n.Gateway != "" {
		return n, fault.Bad("--net %q: a gateway without an address", s)
	}
	return n, nil
}

// set takes one of the words behind the kind.
func (n *Network) set(word string) error {
	name, value, _ := strings.Cut(word, "=")
	var err error
	switch {
	case word == "dhcp":
		*n = Network{Kind: n.Kind, Tap: n.Tap, DHCP: true}
	case name == "address":
		_, err = netip.ParsePrefix(value)
		*n = Network{Kind: n.Kind, Tap: n.Tap, Address: value}
	case name == "gateway":
		_, err = netip.ParseAddr(value)
		n.Gateway = value
	case name == "dns":
		_, err = netip.ParseAddr(value)
		n.DNS = value
	default:
		err = fmt.Errorf("%q is not dhcp, address=ADDR/PREFIX, gateway=ADDR or dns=ADDR", word)
	}
	return err
}

// checkNet refuses networks that do not go together with the rest.
func (c *Config) checkNet() error {
	ports := c.forwards(0) != ""
	switch {
	case c.NIC != "" && c.NIC != NICVirtio && c.NIC != NICE1000E && c.NIC != NICE1000:
		return fault.Bad("--nic %q: want %s, %s or %s", c.NIC, NICVirtio, NICE1000E, NICE1000)
	case c.NIC != "" && c.NIC != NICVirtio && c.Machine != Q35:
		return fault.Bad("--nic %s needs --machine %s: the other has no bus for it", c.NIC, Q35)
	case c.MTU != 0 && (c.MTU < 68 || c.MTU > 65521):
		return fault.Bad("--mtu %d: want 68 to 65521", c.MTU)
	case c.MTU > 9000 && c.NIC != "" && c.NIC != NICVirtio:
		return fault.Bad("--mtu %d: the card %s carries up to 9000", c.MTU, c.NIC)
	case c.NoNet && ports:
		return fault.Bad("without a network no port can be published")
	case c.Net.Kind == NetTap && ports:
		return fault.Bad("--net tap=%s publishes no ports: the guest has an address of its own", c.Net.Tap)
	case c.Netdev != "" && (c.NoNet || ports):
		return fault.Bad("--netdev %q: a network of its own publishes no ports, and --net none has no card", c.Netdev)
	case c.Netdev != "" && c.Net.Kind != "" && c.Net.Kind != NetUser:
		return fault.Bad("--netdev %q and --net %s both say what the card is connected to", c.Netdev, c.Net.Kind)
	case c.Pcap != "" && c.NoNet:
		return fault.Bad("--pcap %q: without a network there are no packets", c.Pcap)
	}
	return nil
}

// netArgs are the network card and what it is connected to.
func (c *Config) netArgs(bus string) []string {
	if c.NoNet {
		return nil
	}
	backend, queues := c.backend()
	device := "virtio-net-" + bus
	switch c.NIC {
	case NICE1000E, NICE1000:
		device, queues = c.NIC, 1
	}
	device += ",netdev=net"
	if c.NIC == "" || c.NIC == NICVirtio {
		if c.MTU != 0 {
			device += fmt.Sprintf(",host_mtu=%d", c.MTU)
		}
		if queues > 1 {
			device += fmt.Sprintf(",mq=on,vectors=%d", 2*queues+2)
		}
	}
	if c.Machine == Q35 {
		device += ",romfile=" // no network boot, and its ROM may not be installed
	}
	args := []string{"-netdev", backend, "-device", device}
	if c.Pcap != "" {
		args = append(args, "-object", "filter-dump,id=pcap,netdev=net,file="+strings.ReplaceAll(c.Pcap, ",", ",,"))
	}
	return args
}

// backend is what the card is connected to, and how many queues that has.
func (c *Config) backend() (string, int) {
	switch c.Net.Kind {
	case NetTap:
		s := "tap,id=net,ifname=" + c.Net.Tap + ",script=no,downscript=no"
		queues := 1
		if c.CPUs > 1 && c.Machine == Q35 && c.NIC != NICE1000 && c.NIC != NICE1000E && manyQueues(c.Net.Tap) {
			queues = c.CPUs
			s += ",queues=" + strconv.Itoa(queues)
		}
		return s, queues
	case NetPasst:
		return fmt.Sprintf("stream,id=net,server=off,addr.type=fd,addr.str=%d", fdNet), 1
	}
	return cmp.Or(c.Netdev, "user") + ",id=net" + c.forwards(0), 1
}

// manyQueues reports whether a tap interface may have several queues: it was made so, or QEMU
// makes it. Only opening it tells.
func manyQueues(name string) bool {
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	r, err := unix.NewIfreq(name)
	if err != nil {
		return false
	}
	r.SetUint16(unix.IFF_TAP | unix.IFF_NO_PI | unix.IFF_VNET_HDR | unix.IFF_MULTI_QUEUE)
	return unix.IoctlIfreq(fd, unix.TUNSETIFF, r) == nil
}
