package main

import (
	"fmt"
	"strings"

	"hardtack/abi/boot"
	"hardtack/driver/acpi"
	"hardtack/driver/pci"
	"hardtack/driver/virtio"
	"hardtack/driver/virtio/find"
	"hardtack/driver/virtio/mmio"
	virtiopci "hardtack/driver/virtio/pci"
	"hardtack/nucleus"
)

// Devices of other clusters. The kernel parameter clusterN.device=ADDRESS gives cluster N the
// virtio device whose registers are at ADDRESS, in hexadecimal, or the function BUS:DEVICE.FUNCTION.
// This kernel has looked at it and resets it when the cluster has ended; the other drives it.

// clusterOptions are the words of the parameters clusterN.WORD for cluster N.
func (k *kernel) clusterOptions(index int) (list []string) {
	for _, w := range strings.Fields(k.cmdline) {
		if v, ok := strings.CutPrefix(w, fmt.Sprintf("cluster%d.", index)); ok {
			list = append(list, v)
		}
	}
	return list
}

// isClusterOption tells whether a parameter is for another cluster.
func isClusterOption(word string) bool {
	rest, ok := strings.CutPrefix(word, "cluster")
	digits := strings.TrimLeft(rest, "0123456789")
	return ok && len(digits) < len(rest) && strings.HasPrefix(digits, ".")
}

// shareDevices gives the other clusters their devices and returns those that are left.
func (k *kernel) shareDevices(found []virtio.Transport, tables *acpi.Tables) (own []virtio.Transport) {
	to := map[string]*otherCluster{}
	for _, o := range k.others.all {
		for _, w := range k.clusterOptions(o.index) {
			if at, ok := strings.CutPrefix(w, "device="); ok {
				to[at] = o
			} else {
				o.options = append(o.options, w)
			}
		}
	}
	for _, t := range found {
		d, _ := t.(interface{ Address() string })
		if d == nil || to[d.Address()] == nil {
			own = append(own, t)
			continue
		}
		o := to[d.Address()]
		delete(to, d.Address())
		if err := o.take(t, tables); err != nil {
			warn("%v for cluster %d: %v", t, o.index, err)
		}
	}
	for at, o := range to {
		warn("there is no device %s for cluster %d", at, o.index)
	}
	return own
}

// take makes a device the cluster's.
func (o *otherCluster) take(t virtio.Transport, tables *acpi.Tables) error {
	switch t := t.(type) {
	case *mmio.Transport:
		phys, gsi := t.Line()
		if len(o.lines) == nucleus.GivenLines {
			return fmt.Errorf("more than %d devices", nucleus.GivenLines)
		}
		o.options = append(o.options, find.MMIOWord(phys, len(o.lines)))
		o.lines = append(o.lines, gsi)
		o.registers = append(o.registers, boot.Range{Start: phys, Size: mmio.Size})
	case *virtiopci.Transport:
		space := pci.Space(tables.MCFG(), t.Function())
		if space == 0 {
			return fmt.Errorf("its configuration space is not in memory")
		}
		o.options = append(o.options, find.PCIWord(t.Address(), space))
		o.registers = append(o.registers, boot.Range{Start: space, Size: 4096})
		for _, w := range t.Windows() {
			o.registers = append(o.registers, boot.Range{Start: w[0], Size: w[1]})
		}
	default:
		return fmt.Errorf("a transport of another kind")
	}
	o.devices = append(o.devices, t)
	return nil
}

// giveLines sends the devices' interrupts to a processor of the cluster's.
func (o *otherCluster) giveLines(apic uint32) {
	for i, gsi := range o.lines {
		if !nucleus.GiveLine(gsi, apic, i) {
			warn("cluster %d: no I/O APIC has the interrupt %d", o.index, gsi)
		}
	}
}

// resetDevices stops the cluster's devices, which may still write to its memory.
func (o *otherCluster) resetDevices() {
	for _, d := range o.devices {
		d.Reset()
		for d.Status() != 0 { // virtio 1.2, section 2.4.1: it is reset when it says so
		}
	}
}
