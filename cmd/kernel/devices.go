package main

import (
	"fmt"
	"math/bits"

	"hardtack/driver/acpi"
	"hardtack/driver/e1000"
	"hardtack/driver/pci"
	"hardtack/driver/virtio"
	vconsole "hardtack/driver/virtio/console"
	"hardtack/driver/virtio/find"
	vnet "hardtack/driver/virtio/net"
	"hardtack/kernel/net/netdev"
	"hardtack/kernel/pseudofs/procfs"
	"hardtack/live"
	"hardtack/nucleus"
)

// warn reports what the kernel can do without.
func warn(format string, args ...any) { fmt.Printf("kernel: "+format+"\n", args...) }

// startProcessors makes the interrupt controllers known and starts the CPUs that the
// firmware lists, but for those of other clusters.
func (k *kernel) startProcessors(tables *acpi.Tables) {
	p := &k.platform
	m, ok := tables.MADT()
	if !ok {
		warn("no MADT: one CPU, and the I/O APIC where PCs have it")
		nucleus.AddIOAPIC(0xfec00000, 0)
		return
	}
	p.overrides = m.Overrides
	for _, a := range m.IOAPICs {
		nucleus.AddIOAPIC(a.Address, a.GSIBase)
	}
	boot := nucleus.BootAPICID()
	for _, c := range k.planClusters(m.CPUs) {
		if c.APIC == boot {
			continue
		}
		if err := nucleus.StartCPU(c.APIC); err != nil {
			warn("CPU with APIC ID %d: %v", c.APIC, err)
		}
	}
}

// transports finds the machine's virtio devices.
func transports(p *platform, tables *acpi.Tables, cmdline string) []virtio.Transport {
	found, problems := find.Devices(p, tables, cmdline)
	for _, err := range problems {
		warn("%v", err)
	}
	return found
}

// functions finds the machine's PCI functions, if it has a bus.
func functions(p *platform, tables *acpi.Tables) []*pci.Function {
	spaces := tables.MCFG()
	if len(spaces) == 0 && !pci.PortsAnswer(p) {
		return nil
	}
	return pci.Scan(p, pci.Open(p, spaces))
}

// given finds the devices that the first cluster has given to this one.
func given(p *platform, cmdline string) []virtio.Transport {
	found, problems := find.Given(p, cmdline)
	for _, err := range problems {
		warn("%v", err)
	}
	return found
}

// startDevices starts the drivers and returns the network devices.
func (k *kernel) startDevices(found []virtio.Transport, tables *acpi.Tables) (devices []netdev.Device) {
	var onBus []*pci.Function
	if nucleus.ClusterIndex() == 0 { // others have what they were given
		onBus = functions(&k.platform, tables)
	}
	d := findDisks(k, found, onBus, tables)
	for _, t := range found {
		var err error
		switch t.Type() {
		case virtio.TypeNet:
			var d *vnet.Device
			if d, err = vnet.New(&k.platform, t, bits.OnesCount64(nucleus.PresentCPUs())); err == nil {
				devices = append(devices, d)
			}
		case virtio.TypeRNG:
			err = k.startEntropy(t)
		case virtio.TypeConsole:
			err = k.startControl(t)
		case virtio.TypeBlock:
			err = d.addVirtio(k, t)
		case virtio.Type9P:
			err = k.addFolder(t)
		}
		if err != nil {
			warn("%v: %v", t, err)
		}
	}
	d.addPCI(k)
	for _, f := range onBus {
		if e1000.Is(f) {
			if d, err := e1000.New(&k.platform, f); err != nil {
				warn("%v", err)
			} else {
				devices = append(devices, d)
			}
		}
	}
	if len(devices) > 0 { // the one that is used
		procfs.Register("hardtack/network", devices[0].(interface{ Stats() []byte }).Stats)
	}
	return devices
}

// startControl connects the channel to the command that runs the machine.
func (k *kernel) startControl(t virtio.Transport) error {
	c := &control{EOF: k.console.eof, Signal: signalInit, WinSize: k.console.resize, Freeze: k.freeze, Renew: k.renew}
	port := new(livePort)
	link := live.NewLink(port)
	k.feed.Store(link)
	d, err := vconsole.New(&k.platform, t, map[string]func([]byte){vconsole.ControlPort: c.Receive, live.Port: func(b []byte) { k.feed.Load().Feed(b) }})
	if err != nil {
		return err
	}
	c.Attach(d)
	port.Port, k.live, k.livePort = d.Port(live.Port), link, port
	k.control = c
	return nil
}

// livePort is the port of a link that is made before it.
type livePort struct{ *vconsole.Port }
