package procfs

import (
	"strconv"
	"strings"
	"sync"

	"hardtack/abi/linux"
	"hardtack/kernel/kern"
	"hardtack/kernel/uio"
	"hardtack/kernel/vfs"
	"hardtack/kernel/vm"
)

// mapsText is an open maps or smaps: the mappings of the address space that the
// process had at open. The text is made a page at a time and goes on at the
// address where the last piece ended, whatever was mapped or unmapped meanwhile.
type mapsText struct {
	vfs.BaseOps
	n     *node
	space *vm.Space // immutable; nil: there was none

	mu    sync.Mutex
	begin int64  // offset of piece; guarded by mu
	piece []byte // guarded by mu
	next  uint64 // address of what follows; guarded by mu
}

// mapsPiece is how long a piece gets before no mapping is added.
const mapsPiece = 4096

// Read gives pieces until the reader is content.
func (t *mapsText) Read(c *kern.Ctx, _ *vfs.File, v *uio.Vec, off int64) (done int, e linux.Errno) {
	if t.space == nil || !t.space.TryShare() {
		return 0, 0
	}
	defer t.space.Release()
	x := t.n.x
	x.c = c
	root := x.root()
	t.mu.Lock()
	defer t.mu.Unlock()
	if off < t.begin || off == 0 {
		t.begin, t.piece, t.next = 0, nil, 0
	}
	for v.Len() > 0 {
		if skip := off - t.begin; skip < int64(len(t.piece)) {
			n, err := v.CopyOut(t.piece[skip:])
			done += n
			off += int64(n)
			if err != 0 {
				e = err
				break
			}
			continue
		}
		t.begin += int64(len(t.piece))
		if t.piece = t.make(root); len(t.piece) == 0 {
			t.piece = nil
			break
		}
	}
	if off == t.begin+int64(len(t.piece)) {
		t.begin, t.piece = off, nil
	}
	if done > 0 {
		e = 0
	}
	return done, e
}

// make returns the piece at t.next and moves on; called with mu held.
func (t *mapsText) make(root vfs.Path) []byte {
	b := t.piece[:0]
	t.space.MapsFrom(t.next, func(m vm.MapInfo) bool {
		b = appendMap(b, &m, root)
		if t.n.e.sizes {
			b = appendSizes(b, t.space, &m)
			b = append(m.AppendFlags(append(b, "THPeligible:    0\nVmFlags: "...)), '\n')
		}
		t.next = m.End
		return len(b) < mapsPiece
	})
	return b
}

// Seek moves in the text.
func (t *mapsText) Seek(_ *kern.Ctx, f *vfs.File, off int64, whence int) (int64, linux.Errno) {
	return t.n.e.seek(f, off, whence)
}

// appendMap writes a line of /proc/PID/maps.
func appendMap(b []byte, m *vm.MapInfo, root vfs.Path) []byte {
	prot := [4]byte{'-', '-', '-', 'p'}
	for i, bit := range []uint32{linux.PROT_READ, linux.PROT_WRITE, linux.PROT_EXEC} {
		if m.Prot&bit != 0 {
			prot[i] = "rwx"[i]
		}
	}
	if m.Shared {
		prot[3] = 's'
	}
	var dev, ino, off uint64
	name := m.Name
	if m.File != nil && !m.File.Path.Zero() {
		i := m.File.Path.Inode()
		dev, ino = i.FS.Dev, i.Ino
		if name == "" {
			name = strings.ReplaceAll(m.File.Path.Text(root), "\n", `\012`)
		}
	}
	if m.Object != nil {
		off = m.Offset
	}
	start := len(b)
	b = append(appendHex(b, m.Start, 8), '-')
	b = append(appendHex(b, m.End, 8), ' ')
	b = append(append(b, prot[:]...), ' ')
	b = append(appendHex(b, off, 8), ' ')
	b = append(appendHex(b, uint64(linux.Major(dev)), 2), ':')
	b = append(appendHex(b, uint64(linux.Minor(dev)), 2), ' ')
	b = append(strconv.AppendUint(b, ino, 10), ' ')
	if name != "" {
		for len(b)-start < 73 {
			b = append(b, ' ')
		}
		b = append(b, name...)
	}
	return append(b, '\n')
}
