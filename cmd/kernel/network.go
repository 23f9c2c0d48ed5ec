package main

import (
	"net/netip"
	"os"
	"time"

	"hardtack/kernel/base/random"
	"hardtack/kernel/fs/initramfs"
	"hardtack/kernel/fs/vfs"
	"hardtack/kernel/net/clusternet"
	"hardtack/kernel/net/inet"
	"hardtack/kernel/net/netdev"
	"hardtack/kernel/net/netif"
	"hardtack/kernel/net/sock"
	"hardtack/nucleus"
)

// startNetwork makes the TCP/IP stack, and configures the first device and the network of
// the machine's clusters.
func (k *kernel) startNetwork(devices []netdev.Device, config *initramfs.BootConfig, root *vfs.FSContext) {
	most := int64(nucleus.MemoryInfo().Total) * 4096 / 8
	sock.RingBytes.SetMax(most)
	net := inet.Init(inet.Config{Rand: random.Reader{}, Log: os.Stderr, MaxTCPBuffer: tcpBuffer(), MaxQueued: most})
	plugNetwork(net)
	if nucleus.ClusterIndex() > 0 {
		config.Net = initramfs.BootConfig{}.Net // the archive's is the first cluster's
	}
	if len(devices) > 0 && config.Net.Mode != "none" {
		k.startCard(net, devices[0], config, root)
	}
	if k.others.net != nil {
		startClusterNet(net, k.others.net)
	}
}

// startClusterNet makes the interface to the other clusters.
func startClusterNet(net *inet.Net, d *clusternet.Net) {
	link, err := netif.Add(net, d, "cl0")
	if err == nil {
		err = link.Apply(netif.Settings{Address: clusternet.Address(nucleus.ClusterIndex())})
	}
	if err != nil {
		warn("cl0: %v", err)
		return
	}
	d.OnEnd(net.ResetPeer)
}

// startCard makes an interface of a device and configures it.
func (k *kernel) startCard(net *inet.Net, device netdev.Device, config *initramfs.BootConfig, root *vfs.FSContext) {
	link, err := netif.Add(net, device, "eth0")
	if err != nil {
		warn("eth0: %v", err)
		return
	}
	if mtu := config.Net.MTU; mtu != 0 {
		if e := net.SetMTU(net.InterfaceByIndex(link.Index()), mtu); e != 0 {
			warn("eth0: an MTU of %d: %v", mtu, e)
		}
	}
	k.copies.mu.Lock()
	k.copies.link = link
	k.copies.mu.Unlock()
	s, static, err := netSettings(config)
	switch {
	case err != nil:
		warn("eth0: %v", err)
	case static:
		if err := link.Apply(s); err != nil {
			warn("eth0: %v", err)
			return
		}
		k.resolver(root, s)
	default:
		go func() {
			lease, err := link.DHCP(10 * time.Second)
			if err != nil {
				warn("eth0: %v", err)
				return
			}
			k.resolver(root, lease.Settings)
		}()
	}
}

// tcpBuffer bounds what one connection may buffer: less on small machines.
func tcpBuffer() int {
	return min(max(nucleus.MemoryInfo().Total*4096/256, 256<<10), 4<<20)
}

// netSettings turns the boot record's words into addresses.
func netSettings(config *initramfs.BootConfig) (s netif.Settings, static bool, err error) {
	if config.Net.Mode != "static" {
		return s, false, nil
	}
	if s.Address, err = netip.ParsePrefix(config.Net.Address); err != nil {
		return s, true, err
	}
	if config.Net.Gateway != "" {
		if s.Router, err = netip.ParseAddr(config.Net.Gateway); err != nil {
			return s, true, err
		}
	}
	if config.Net.DNS != "" {
		a, err := netip.ParseAddr(config.Net.DNS)
		if err != nil {
			return s, true, err
		}
		s.DNS = []netip.Addr{a}
	}
	return s, true, nil
}

// resolver writes /etc/resolv.conf where the root file system has none.
func (k *kernel) resolver(root *vfs.FSContext, s netif.Settings) {
	k.writeNew(root, "/etc/resolv.conf", s.ResolvConf())
}
