package ahci

import (
	"encoding/binary"

	"hardtack/driver"
	"hardtack/kernel/disk/blockdev"
)

// ATA commands.
const (
	ataReadDMA     = 0x25 // EXT
	ataWriteDMA    = 0x35 // EXT
	ataWriteFUA    = 0x3d // EXT
	ataReadQueued  = 0x60 // FPDMA
	ataWriteQueued = 0x61 // FPDMA
	ataDataSet     = 0x06
	ataFlush       = 0xea // EXT
	ataIdentify    = 0xec
)

const (
	fisHostToDevice = 0x27
	fisIsCommand    = 0x80
	fisDwords       = 5

	deviceLBA = 1 << 6
	deviceFUA = 1 << 7 // of queued commands

	headerWrite = 1 << 6

	trimEntries = 64
	trimMost    = 0xffff // sectors a range
)

// putHeaderTable writes the address of a slot's table into its header.
func putHeaderTable(h []byte, phys uint64) { binary.LittleEndian.PutUint64(h[8:], phys) }

// putFIS writes a command: feature and count are 16 bits, lba 48.
func putFIS(b []byte, command byte, feature, count uint16, lba uint64, device byte) {
	clear(b[:20])
	b[0], b[1], b[2], b[3] = fisHostToDevice, fisIsCommand, command, byte(feature)
	b[4], b[5], b[6], b[7] = byte(lba), byte(lba>>8), byte(lba>>16), device
	b[8], b[9], b[10], b[11] = byte(lba>>24), byte(lba>>32), byte(lba>>40), byte(feature>>8)
	b[12], b[13] = byte(count), byte(count>>8)
}

// table is the memory of a slot's command.
func (d *Disk) table(slot int) driver.DMA { return d.tables.Slice(slot*tableSize, tableSize) }

// prepare writes a command into a slot: a queued one if the disk supports NCQ and the
// command can be queued.
func (d *Disk) prepare(slot int, c *blockdev.Command) (queued bool) {
	t := d.table(slot)
	lba, blocks := c.Sector>>d.shift, c.Sectors>>d.shift
	flags := uint32(fisDwords)
	entries := 0
	switch c.Op {
	case blockdev.Read, blockdev.Write:
		write := c.Op == blockdev.Write
		if write {
			flags |= headerWrite
		}
		device := byte(deviceLBA)
		switch {
		case d.queued:
			queued = true
			command := byte(ataReadQueued)
			if write {
				command = ataWriteQueued
				if c.FUA {
					device |= deviceFUA
				}
			}
			putFIS(t.Virt, command, uint16(blocks), uint16(slot)<<3, lba, device)
		case !write:
			putFIS(t.Virt, ataReadDMA, 0, uint16(blocks), lba, device)
		case c.FUA:
			putFIS(t.Virt, ataWriteFUA, 0, uint16(blocks), lba, device)
		default:
			putFIS(t.Virt, ataWriteDMA, 0, uint16(blocks), lba, device)
		}
		for _, s := range c.Data {
			putPRD(t.Virt[tablePRDT+entries*prdtSize:], s.Phys, s.Len)
			entries++
		}
	case blockdev.Flush:
		putFIS(t.Virt, ataFlush, 0, 0, 0, deviceLBA)
	case blockdev.Discard:
		flags |= headerWrite
		b := t.Virt[tableTrim:][:512]
		clear(b)
		for i := 0; blocks > 0; i++ {
			n := min(blocks, trimMost)
			binary.LittleEndian.PutUint64(b[8*i:], lba|uint64(n)<<48)
			lba += uint64(n)
			blocks -= n
		}
		putFIS(t.Virt, ataDataSet, 1, 1, 0, deviceLBA)
		putPRD(t.Virt[tablePRDT:], t.Phys+tableTrim, 512)
		entries = 1
	}
	d.putHeader(slot, flags|uint32(entries)<<16)
	return queued
}

func (d *Disk) putHeader(slot int, flags uint32) {
	h := d.list.Virt[slot*headerSize:]
	binary.LittleEndian.PutUint64(h, uint64(flags)) // no bytes transferred yet
}

func putPRD(b []byte, phys uint64, n uint32) {
	binary.LittleEndian.PutUint64(b, phys)
	binary.LittleEndian.PutUint64(b[8:], uint64(n-1)<<32)
}
