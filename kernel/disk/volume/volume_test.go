package volume_test

import (
	"bytes"
	"testing"

	"hardtack/ext4"
	"hardtack/kernel/base/mem"
	"hardtack/kernel/disk/block"
	"hardtack/kernel/disk/blockdev"
	"hardtack/kernel/disk/volume"
)

// memory is a disk in memory that has done a command when Submit returns.
type memory struct {
	data []byte
	done func(int, []*blockdev.Command)
	todo chan *blockdev.Command
}

func (m *memory) Limits() blockdev.Limits {
	return blockdev.Limits{Sectors: uint64(len(m.data)) >> 9, LogicalBlock: 512, Queues: 1, Depth: 4, MaxSectors: 256, MaxSegments: 8,
		MaxDiscard: 1024, DiscardGrain: 4096, WriteCache: true}
}
func (m *memory) Model() string                             { return "" }
func (m *memory) Serial() string                            { return "" }
func (m *memory) Abort(int, *blockdev.Command) bool         { return false }
func (m *memory) Reset() error                              { return nil }
func (m *memory) Start(done func(int, []*blockdev.Command)) { m.done = done; go m.work() }

func (m *memory) Submit(_ int, cmds []*blockdev.Command) int {
	for i, c := range cmds {
		select {
		case m.todo <- c:
		default:
			return i
		}
	}
	return len(cmds)
}

func (m *memory) work() {
	for c := range m.todo {
		at := m.data[c.Sector<<9:]
		for _, s := range c.Data {
			for left, phys := int(s.Len), s.Phys; left > 0; {
				b := mem.FrameOf(phys).Bytes()[phys&4095:]
				b = b[:min(left, len(b))]
				if c.Op == blockdev.Read {
					copy(b, at)
				} else {
					copy(at, b)
				}
				at, phys, left = at[len(b):], phys+uint64(len(b)), left-len(b)
			}
		}
		if c.Op == blockdev.Discard {
			clear(at[:c.Sectors<<9])
		}
		c.Err = 0
		m.done(0, []*blockdev.Command{c})
	}
}

func newVolume(t *testing.T, size int) (volume.Volume, *memory) {
	mem.InitHost(8192)
	m := &memory{data: make([]byte, size), todo: make(chan *blockdev.Command, 4)}
	d, err := block.New("mem", m)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { close(m.todo) })
	return volume.Volume{Part: d.Whole()}, m
}

// A file system made through a volume is whole, and the same as one made in a
// file.
func TestFileSystem(t *testing.T) {
	v, m := newVolume(t, 32<<20)
	o := ext4.MkfsOptions{UUID: [16]byte{1}, HashSeed: [16]byte{2}, Now: func() int64 { return 1e18 }}
	if err := ext4.Mkfs(v, o); err != nil {
		t.Fatal(err)
	}
	n, err := ext4.Check(v, func(s string) { t.Log(s) })
	if n != 0 || err != nil {
		t.Errorf("%d problems, %v", n, err)
	}
	other := &file{b: make([]byte, len(m.data))}
	if err := ext4.Mkfs(ext4.NewFileDevice(other, int64(len(other.b))), o); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(m.data, other.b) {
		t.Error("the two differ")
	}
	fs, err := ext4.Mount(v, ext4.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := fs.Unmount(); err != nil {
		t.Error(err)
	}
}

func TestDiscard(t *testing.T) {
	v, m := newVolume(t, 1<<20)
	if err := v.WriteAt([]ext4.Transfer{{Off: 0, Buf: bytes.Repeat([]byte{1}, 65536)}}, true); err != nil {
		t.Fatal(err)
	}
	if err := v.Discard(4000, 9000); err != nil { // whole grains only: 4096 to 12288
		t.Fatal(err)
	}
	for at, want := range map[int]byte{4095: 1, 4096: 0, 12287: 0, 12288: 1} {
		if m.data[at] != want {
			t.Errorf("byte %d is %d", at, m.data[at])
		}
	}
	if err := v.ReadAt([]ext4.Transfer{{Off: 1 << 20, Buf: make([]byte, 512)}}); err == nil {
		t.Error("read beyond the end")
	}
}

// file is an ext4.Syncer in memory.
type file struct{ b []byte }

func (f *file) ReadAt(p []byte, off int64) (int, error)  { return copy(p, f.b[off:]), nil }
func (f *file) WriteAt(p []byte, off int64) (int, error) { return copy(f.b[off:], p), nil }
func (f *file) Sync() error                              { return nil }
