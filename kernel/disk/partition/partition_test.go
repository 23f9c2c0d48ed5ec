package partition

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"io"
	"slices"
	"testing"
)

// image is a disk in memory to read a table from.
type image []byte

func (m image) read(b []byte, sector uint64) error {
	if sector > uint64(len(m))/512 || copy(b, m[sector*512:]) < len(b) {
		return io.ErrUnexpectedEOF
	}
	return nil
}

func (m image) table(block int) (Table, error) {
	return Read(uint64(len(m))/512, block, m.read)
}

func (m image) mbr(at uint64, i int, kind byte, start, count uint32) {
	s := m[at*512:]
	e := s[446+16*i:]
	e[4] = kind
	binary.LittleEndian.PutUint32(e[8:], start)
	binary.LittleEndian.PutUint32(e[12:], count)
	s[510], s[511] = 0x55, 0xaa
}

type span struct {
	number         int
	start, sectors uint64
}

func spans(t Table) (list []span) {
	for _, p := range t.Parts {
		list = append(list, span{p.Number, p.Start, p.Sectors})
	}
	return list
}

func TestMBR(t *testing.T) {
	m := make(image, 4<<20)
	if tab, err := m.table(512); err != nil || tab.Kind != "" {
		t.Errorf("nothing on it: %+v, %v", tab, err)
	}
	binary.LittleEndian.PutUint32(m[440:], 0x1234abcd)
	m.mbr(0, 0, 0x83, 64, 1000)
	m.mbr(0, 1, 0x82, 2048, 100)
	m.mbr(0, 2, 0x83, 1000, 100)   // overlaps the first
	m.mbr(0, 3, 0x0f, 3000, 3000)  // extended
	m.mbr(3000, 0, 0x83, 10, 100)  // logical, from here on
	m.mbr(3000, 1, 0x05, 200, 500) // the next table, from the extended one on
	m.mbr(3200, 0, 0x83, 10, 100)  // logical
	m.mbr(3200, 1, 0x05, 100, 100) // leads back: the end
	tab, err := m.table(512)
	want := []span{{1, 64, 1000}, {2, 2048, 100}, {5, 3010, 100}, {6, 3210, 100}}
	if err != nil || tab.Kind != "dos" || tab.UUID != "1234abcd" || !slices.Equal(spans(tab), want) {
		t.Errorf("%+v, %v; want %v", tab, err, want)
	}
	if tab.Parts[2].UUID != "1234abcd-05" {
		t.Errorf("PARTUUID %s", tab.Parts[2].UUID)
	}
	m.mbr(0, 0, 0x83, 64, 1<<31) // beyond the end
	if tab, _ := m.table(512); len(tab.Parts) != 4 || tab.Parts[0].Number != 2 {
		t.Errorf("beyond the end: %v", spans(tab))
	}
	m[446] = 0x33 // code where a flag should be: a boot sector of a file system
	if tab, err := m.table(512); err != nil || tab.Kind != "" {
		t.Errorf("a boot sector: %+v, %v", tab, err)
	}
}

// gpt writes a table with its copy.
func (m image) gpt(block int, parts map[int][2]uint64) {
	m.mbr(0, 0, 0xee, 1, uint32(len(m)/block-1))
	le := binary.LittleEndian
	list := make([]byte, 128*128)
	for i, p := range parts {
		e := list[128*i:]
		e[0], e[16] = 1, byte(i)
		le.PutUint64(e[32:], p[0])
		le.PutUint64(e[40:], p[1])
		copy(e[56:], "d\x00a\x00t\x00a\x00")
	}
	last := len(m)/block - 1
	for _, at := range []struct{ header, entries int }{{1, 2}, {last, last - len(list)/block}} {
		h := m[at.header*block:][:block]
		copy(h, "EFI PART\x00\x00\x01\x00\x5c\x00\x00\x00")
		le.PutUint64(h[24:], uint64(at.header))
		copy(h[56:], "0123456789abcdef")
		le.PutUint64(h[72:], uint64(at.entries))
		le.PutUint32(h[80:], 128)
		le.PutUint32(h[84:], 128)
		le.PutUint32(h[88:], crc32.ChecksumIEEE(list))
		copy(m[at.entries*block:], list)
		clear(h[16:20])
		le.PutUint32(h[16:], crc32.ChecksumIEEE(h[:92]))
	}
}

func TestGPT(t *testing.T) {
	for _, block := range []int{512, 4096} {
		m := make(image, 4<<20)
		m.gpt(block, map[int][2]uint64{0: {100, 199}, 2: {200, 200}, 3: {150, 300}, 5: {300, 299}, 7: {900, uint64(len(m) / block)}})
		per := uint64(block / 512)
		want := []span{{1, 100 * per, 100 * per}, {3, 200 * per, per}}
		check := func(what string) {
			t.Helper()
			tab, err := m.table(block)
			if err != nil || tab.Kind != "gpt" || !slices.Equal(spans(tab), want) {
				t.Errorf("%s: %v, %v; want %v", what, spans(tab), err, want)
			}
			if err == nil && (tab.Parts[0].Label != "data" || tab.UUID != "33323130-3534-3736-3839-616263646566") {
				t.Errorf("%s: label %q, UUID %s", what, tab.Parts[0].Label, tab.UUID)
			}
		}
		check("good")
		keep := bytes.Clone(m)
		m[block+24]++
		check("a damaged header")
		copy(m, keep)
		m[2*block+40]++
		check("damaged entries")
		m[len(m)-block+16]++
		if tab, err := m.table(block); err == nil {
			t.Errorf("both damaged: %+v", tab)
		}
	}
}

func FuzzTable(f *testing.F) {
	m := make(image, 64<<10)
	m.gpt(512, map[int][2]uint64{0: {50, 60}})
	f.Add([]byte(m), false)
	m = make(image, 64<<10)
	m.mbr(0, 0, 0x0f, 10, 100)
	m.mbr(10, 0, 0x83, 1, 10)
	m.mbr(10, 1, 0x05, 20, 10)
	f.Add([]byte(m), true)
	f.Fuzz(func(t *testing.T, b []byte, wide bool) {
		block := 512
		if wide {
			block = 4096
		}
		m := image(b)
		tab, err := m.table(block)
		if err != nil && len(tab.Parts) > 0 {
			t.Error("an error, and partitions")
		}
		for i, p := range tab.Parts {
			if p.Sectors == 0 || p.Start+p.Sectors > uint64(len(m))/512 || p.Number < 1 {
				t.Errorf("%+v on a disk of %d bytes", p, len(m))
			}
			for _, o := range tab.Parts[:i] {
				if p.Number == o.Number || p.Start < o.Start+o.Sectors && o.Start < p.Start+p.Sectors {
					t.Errorf("%+v and %+v", o, p)
				}
			}
		}
	})
}
