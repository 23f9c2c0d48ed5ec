// Package partition reads the partition tables of disks, MBR and GPT. It does not depend
// on the kernel, and does not trust the tables.
package partition

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"strings"
	"unicode/utf16"
)

// Entry is one partition.
type Entry struct {
	Number  int    // from 1
	Start   uint64 // sectors of SectorSize bytes
	Sectors uint64
	UUID    string // PARTUUID, lower case
	Label   string // of GPT
}

// Table is a partition table.
type Table struct {
	Kind  string // "gpt", "dos", or "" where there is none
	UUID  string // of the disk
	Parts []Entry
}

// SectorSize is the unit of positions in bytes, whatever the disk's block is.
const SectorSize = 512

const (
	// maxLogical bounds the chain of logical partitions of an MBR.
	maxLogical = 128
	// A GPT has at most maxEntries, of at most maxEntrySize bytes.
	maxEntries   = 1024
	maxEntrySize = 4096
)

// Read reads a disk's partition table. read fills b from a sector on;
// block is the disk's logical block in bytes. An entry that is not on the
// disk, or overlaps an earlier one, is left out. A damaged table is an error.
func Read(sectors uint64, block int, read func(b []byte, sector uint64) error) (Table, error) {
	per := uint64(block / SectorSize)
	b := make([]byte, block)
	if sectors < 2*per {
		return Table{}, nil
	}
	if err := read(b, 0); err != nil {
		return Table{}, err
	}
	if b[510] != 0x55 || b[511] != 0xaa {
		return Table{}, nil
	}
	entries := mbrEntries(b)
	for _, e := range entries {
		if e.kind == 0xee {
			return readGPT(sectors, block, read)
		}
	}
	// A file system's boot sector has the same signature.
	for i := range 4 {
		if f := b[446+16*i]; f != 0 && f != 0x80 {
			return Table{}, nil
		}
	}
	t := Table{Kind: "dos"}
	id := binary.LittleEndian.Uint32(b[440:])
	t.UUID = fmt.Sprintf("%08x", id)
	for i, e := range entries {
		switch e.kind {
		case 0:
		case 0x05, 0x0f, 0x85:
			// Linux gives it a device of two sectors, for boot loaders; it has
			// nothing of its own.
			logical(&t, sectors, per, uint64(e.start), uint64(e.count), id, block, read)
		default:
			t.add(sectors, per, i+1, uint64(e.start), uint64(e.count), fmt.Sprintf("%08x-%02x", id, i+1), "")
		}
	}
	return t, nil
}

type mbrEntry struct {
	kind         byte
	start, count uint32 // logical blocks
}

func mbrEntries(b []byte) (list [4]mbrEntry) {
	for i := range list {
		e := b[446+16*i:]
		list[i] = mbrEntry{e[4], binary.LittleEndian.Uint32(e[8:]), binary.LittleEndian.Uint32(e[12:])}
	}
	return list
}

// add enters a partition, in logical blocks, if it makes sense.
func (t *Table) add(sectors, per uint64, number int, start, count uint64, uuid, label string) {
	if start == 0 || count == 0 || start > sectors/per || count > sectors/per-start {
		return
	}
	p := Entry{Number: number, Start: start * per, Sectors: count * per, UUID: uuid, Label: label}
	for _, o := range t.Parts {
		if p.Start < o.Start+o.Sectors && o.Start < p.Start+p.Sectors {
			return
		}
	}
	t.Parts = append(t.Parts, p)
}

// logical follows the chain in an extended partition: each table has a
// partition, placed from the table on, and the next table, placed from the
// extended partition on.
func logical(t *Table, sectors, per, base, size uint64, id uint32, block int, read func([]byte, uint64) error) {
	b := make([]byte, block)
	number := 5
	for _, p := range t.Parts {
		number = max(number, p.Number+1)
	}
	at := base
	for range maxLogical {
		if at >= sectors/per || read(b, at*per) != nil || b[510] != 0x55 || b[511] != 0xaa {
			return
		}
		next := uint64(0)
		for _, e := range mbrEntries(b) {
			switch e.kind {
			case 0:
			case 0x05, 0x0f, 0x85:
				if next == 0 && e.count != 0 {
					next = base + uint64(e.start)
				}
			default:
				before := len(t.Parts)
				t.add(sectors, per, number, at+uint64(e.start), uint64(e.count), fmt.Sprintf("%08x-%02x", id, number), "")
				number += len(t.Parts) - before
			}
		}
		if next <= at || next-base >= max(size, 1) { // only forward: no endless chain
			return
		}
		at = next
	}
}

// readGPT reads the table of the header in block 1, or of the one in the last.
func readGPT(sectors uint64, block int, read func([]byte, uint64) error) (Table, error) {
	per := uint64(block / SectorSize)
	t, err := gptAt(1, sectors, block, read)
	if err != nil {
		var err2 error
		if t, err2 = gptAt(sectors/per-1, sectors, block, read); err2 != nil {
			return Table{}, fmt.Errorf("GPT: %w; the copy: %w", err, err2)
		}
	}
	return t, nil
}

func gptAt(lba, sectors uint64, block int, read func([]byte, uint64) error) (Table, error) {
	per := uint64(block / SectorSize)
	h := make([]byte, block)
	if err := read(h, lba*per); err != nil {
		return Table{}, err
	}
	le := binary.LittleEndian
	size := le.Uint32(h[12:])
	switch {
	case string(h[:8]) != "EFI PART":
		return Table{}, fmt.Errorf("no header in block %d", lba)
	case size < 92 || int(size) > block:
		return Table{}, fmt.Errorf("header of %d bytes", size)
	}
	sum := le.Uint32(h[16:])
	clear(h[16:20])
	if crc32.ChecksumIEEE(h[:size]) != sum {
		return Table{}, fmt.Errorf("the header in block %d has a wrong checksum", lba)
	}
	if le.Uint64(h[24:]) != lba {
		return Table{}, fmt.Errorf("the header in block %d says that it is in %d", lba, le.Uint64(h[24:]))
	}
	first, n, entry := le.Uint64(h[72:]), le.Uint32(h[80:]), le.Uint32(h[84:])
	if entry < 128 || entry > maxEntrySize || entry%8 != 0 || n > maxEntries {
		return Table{}, fmt.Errorf("%d entries of %d bytes", n, entry)
	}
	bytes := (uint64(n)*uint64(entry) + uint64(block) - 1) / uint64(block) * uint64(block)
	if blocks := sectors / per; first >= blocks || bytes/uint64(block) > blocks-first {
		return Table{}, fmt.Errorf("entries at block %d lie outside", first)
	}
	list := make([]byte, bytes)
	if n > 0 {
		if err := read(list, first*per); err != nil {
			return Table{}, err
		}
	}
	if crc32.ChecksumIEEE(list[:n*entry]) != le.Uint32(h[88:]) {
		return Table{}, fmt.Errorf("the entries of block %d have a wrong checksum", lba)
	}
	t := Table{Kind: "gpt", UUID: guid(h[56:])}
	for i := range n {
		e := list[i*entry:][:entry]
		if [16]byte(e) == [16]byte{} {
			continue
		}
		start, last := le.Uint64(e[32:]), le.Uint64(e[40:])
		if last < start || last == ^uint64(0) {
			continue
		}
		t.add(sectors, per, int(i)+1, start, last-start+1, guid(e[16:]), label(e[56:128]))
	}
	return t, nil
}

// guid is the text of a GUID, whose first three parts are little-endian.
func guid(b []byte) string {
	le := binary.LittleEndian
	return fmt.Sprintf("%08x-%04x-%04x-%x-%x", le.Uint32(b), le.Uint16(b[4:]), le.Uint16(b[6:]), b[8:10], b[10:16])
}

func label(b []byte) string {
	var u []uint16
	for i := 0; i+1 < len(b); i += 2 {
		c := binary.LittleEndian.Uint16(b[i:])
		if c == 0 {
			break
		}
		u = append(u, c)
	}
	return strings.ToValidUTF8(string(utf16.Decode(u)), "?")
}
