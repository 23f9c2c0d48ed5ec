package ahci

import (
	"encoding/binary"
	"errors"
	"strings"

	"hardtack/kernel/disk/blockdev"
)

// identify reads the disk's identification. It polls: interrupts are not yet set up.
func (d *Disk) identify() error {
	t := d.table(0)
	data := t.Slice(tableTrim, 512)
	putFIS(t.Virt, ataIdentify, 0, 0, 0, deviceLBA)
	putPRD(t.Virt[tablePRDT:], data.Phys, 512)
	d.putHeader(0, fisDwords|1<<16)
	d.write(portCI, 1)
	if !d.until(portCI, 1, 0, readyTime) {
		return errors.New("no answer to IDENTIFY")
	}
	if d.read(portTFD)&tfdError != 0 {
		return errors.New("the disk refuses IDENTIFY")
	}
	d.write(portIS, ^uint32(0))
	return d.parse(data.Virt)
}

// parse reads the words of IDENTIFY DEVICE (ATA8-ACS, section 7.16).
func (d *Disk) parse(b []byte) error {
	word := func(n int) uint16 { return binary.LittleEndian.Uint16(b[2*n:]) }
	if word(0)&0x8000 != 0 || word(83)&(1<<10) == 0 {
		return errors.New("no ATA disk with 48-bit addresses")
	}
	text := func(first, n int) string {
		s := make([]byte, 0, 2*n)
		for i := range n {
			s = append(s, byte(word(first+i)>>8), byte(word(first+i)))
		}
		return strings.TrimSpace(strings.Trim(string(s), "\x00"))
	}
	d.serial, d.model = text(10, 10), text(27, 20)
	block, physical := 512, 512
	if w := word(106); w&0xc000 == 0x4000 {
		if w&(1<<12) != 0 {
			block = 2 * (int(word(117)) | int(word(118))<<16)
		}
		physical = block
		if w&(1<<13) != 0 {
			physical = block << (w & 15)
		}
	}
	if block < 512 || block > 4096 || block&(block-1) != 0 {
		return errors.New("blocks of a size that is not driven")
	}
	for d.shift = 0; 512<<d.shift < block; d.shift++ {
	}
	if d.c.caps&capNCQ != 0 && word(76)&(1<<8) != 0 {
		d.queued = true
		d.depth = min(d.depth, int(word(75)&31)+1)
	}
	blocks := binary.LittleEndian.Uint64(b[200:]) & (1<<48 - 1)
	d.limits = blockdev.Limits{
		Sectors: blocks << d.shift, LogicalBlock: block, PhysicalBlock: physical,
		Rotational: word(217) != 1,
		Queues:     1, Depth: d.depth,
		MaxSectors: 0xffff << d.shift, MaxSegments: maxPRDT, MaxSegment: maxPRDSize,
		WriteCache: word(85)&(1<<5) != 0,
		FUA:        word(84)&(1<<6) != 0 && word(84)&0xc000 == 0x4000,
	}
	if !d.queued {
		d.limits.Depth = 1
	}
	if word(169)&1 != 0 {
		d.limits.MaxDiscard, d.limits.DiscardGrain = trimEntries*trimMost<<d.shift, block
	}
	return nil
}
