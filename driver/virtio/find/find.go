// Package find looks for a machine's virtio devices: what the firmware's tables
// describe, what the kernel command line names, and PCI functions.
package find

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"hardtack/driver"
	"hardtack/driver/acpi"
	"hardtack/driver/pci"
	"hardtack/driver/virtio"
	"hardtack/driver/virtio/mmio"
	virtiopci "hardtack/driver/virtio/pci"
)

// virtioMMIO is the ACPI identifier of a virtio transport in memory.
const virtioMMIO = "LNRO0005"

// Devices returns all devices that can be driven, and why others cannot.
// tables may be nil; QEMU names virtio-mmio devices on the kernel's command line
// where there are none.
func Devices(p driver.Platform, tables *acpi.Tables, commandLine string) (found []virtio.Transport, problems []error) {
	var places []Place
	var spaces []acpi.ECAM
	if tables != nil {
		for _, r := range tables.Devices(virtioMMIO) {
			places = append(places, Place{r.Base, r.Size, r.GSI})
		}
		spaces = tables.MCFG()
	}
	named, err := ParseCommandLine(commandLine)
	if err != nil {
		problems = append(problems, err)
	}
	seen := map[uint64]bool{}
	for _, at := range append(places, named...) {
		if seen[at.Base] {
			continue
		}
		seen[at.Base] = true
		if at.Size < mmio.Size {
			problems = append(problems, fmt.Errorf("virtio-mmio at %#x: only %d bytes of registers", at.Base, at.Size))
			continue
		}
		t, err := mmio.Probe(p, at.Base, at.GSI)
		found, problems = add(found, problems, t, t != nil, err)
	}
	if len(spaces) == 0 && !pci.PortsAnswer(p) {
		return found, problems
	}
	for _, f := range pci.Scan(p, pci.Open(p, spaces)) {
		t, err := virtiopci.Probe(p, f)
		found, problems = add(found, problems, t, t != nil, err)
	}
	return found, problems
}

// add adds a transport that may not be there, or why it cannot be driven.
func add(found []virtio.Transport, problems []error, t virtio.Transport, there bool, err error) ([]virtio.Transport, []error) {
	switch {
	case err != nil:
		problems = append(problems, err)
	case there:
		found = append(found, t)
	}
	return found, problems
}

// PCIWord is what Given reads of a function: its address, and where in memory its
// configuration space is.
func PCIWord(a string, space uint64) string { return fmt.Sprintf("virtio_pci.device=%s@%#x", a, space) }

// MMIOWord is what Given reads of registers in memory.
func MMIOWord(base uint64, line int) string {
	return fmt.Sprintf("virtio_mmio.device=%d@%#x:%d", mmio.Size, base, line)
}

// Given returns the devices that a command line names by MMIOWord and PCIWord, and looks
// for no others.
func Given(p driver.Platform, commandLine string) (found []virtio.Transport, problems []error) {
	places, err := ParseCommandLine(commandLine)
	if err != nil {
		problems = append(problems, err)
	}
	for _, at := range places {
		t, err := mmio.Probe(p, at.Base, at.GSI)
		found, problems = add(found, problems, t, t != nil, err)
	}
	for _, word := range strings.Fields(commandLine) {
		value, ok := strings.CutPrefix(word, "virtio_pci.device=")
		if !ok {
			continue
		}
		var a pci.Address
		var space uint64
		if _, err := fmt.Sscanf(value, "%x:%x.%d@0x%x", &a.Bus, &a.Device, &a.Function, &space); err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", word, err))
			continue
		}
		if f := pci.At(p, a, space); f != nil {
			t, err := virtiopci.Probe(p, f)
			found, problems = add(found, problems, t, t != nil, err)
		}
	}
	return found, problems
}

// Place is where a virtio-mmio transport is.
type Place struct {
	Base, Size uint64
	GSI        uint32
}

// ParseCommandLine reads the kernel command line's
//
//	virtio_mmio.device=SIZE@BASE:IRQ[:ID]
//
// words. SIZE may end in K, M or G. A word that makes no sense is left out, and
// the error names the first.
func ParseCommandLine(line string) ([]Place, error) {
	var list []Place
	var first error
	for _, word := range strings.Fields(line) {
		value, ok := strings.CutPrefix(word, "virtio_mmio.device=")
		if !ok {
			continue
		}
		at, err := parsePlace(value)
		if err != nil {
			if first == nil {
				first = fmt.Errorf("%s: %w", word, err)
			}
			continue
		}
		list = append(list, at)
	}
	return list, first
}

func parsePlace(s string) (at Place, err error) {
	size, rest, ok := strings.Cut(s, "@")
	base, irq, ok2 := strings.Cut(rest, ":")
	if !ok || !ok2 {
		return at, errors.New("want SIZE@BASE:IRQ")
	}
	irq, _, _ = strings.Cut(irq, ":") // the identifier says nothing
	shift := 0
	for i, unit := range []string{"K", "M", "G"} {
		if number, ok := strings.CutSuffix(strings.ToUpper(size), unit); ok {
			size, shift = number, 10*(i+1)
			break
		}
	}
	if at.Size, err = strconv.ParseUint(size, 0, 32); err != nil {
		return at, err
	}
	at.Size <<= shift
	if at.Base, err = strconv.ParseUint(base, 0, 52); err != nil {
		return at, err
	}
	gsi, err := strconv.ParseUint(irq, 0, 32)
	at.GSI = uint32(gsi)
	return at, err
}
