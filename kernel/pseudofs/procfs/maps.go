package procfs

import (
	"bytes"
	"strconv"
	"strings"
	"sync"

	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
	"hardtack/kernel/base/uio"
	"hardtack/kernel/fs/vfs"
	"hardtack/kernel/mm/vm"
)

// mapsText is an open maps or smaps: the mappings of the address space that the
// process had at open. As on Linux a read gives whole mappings, not more than go into
// a page, and the next goes on at the address where that ended, whatever was mapped or
// unmapped meanwhile. What a short read leaves of its last mapping comes first.
type mapsText struct {
	vfs.BaseOps
	n     *node
	space *vm.Space // immutable; nil: there was none

	mu   sync.Mutex
	pos  int64  // offset of what comes next; guarded by mu
	rest []byte // made and not read yet; guarded by mu
	next uint64 // address of what follows; guarded by mu
	size int    // what goes into one read, less one; guarded by mu
}

// mapsPiece is how much goes into one read, unless one mapping needs more.
const mapsPiece = 4096

// mapsBuffers are what the text is made in: *[]byte.
var mapsBuffers = sync.Pool{New: func() any {
	b := make([]byte, 0, mapsPiece+1024)
	return &b
}}

// Read gives what the last read left, and a piece.
func (t *mapsText) Read(c *caller.Ctx, _ *vfs.File, v *uio.Vec, off int64) (done int, e linux.Errno) {
	if t.space == nil || v.Len() == 0 || !t.space.TryLook() {
		return 0, 0
	}
	defer t.space.EndLook()
	x := t.n.x
	x.c = c
	root := x.root()
	buf := mapsBuffers.Get().(*[]byte)
	defer mapsBuffers.Put(buf)
	t.mu.Lock()
	defer t.mu.Unlock()
	if off != t.pos {
		t.seek(buf, root, off)
	}
	if len(t.rest) > 0 {
		n, e := v.CopyOut(t.rest)
		t.pos += int64(n)
		if t.rest = t.rest[n:]; e != 0 || len(t.rest) > 0 {
			return n, e
		}
		done, t.rest = n, nil
	}
	b := t.make(buf, root, v.Len())
	n, e := v.CopyOut(b)
	t.pos += int64(n)
	t.rest = bytes.Clone(b[n:])
	if done += n; done > 0 {
		e = 0
	}
	return done, e
}

// seek goes from the beginning to an offset that is not where the last read ended;
// called with mu held.
func (t *mapsText) seek(buf *[]byte, root vfs.Path, off int64) {
	t.pos, t.rest, t.next = 0, nil, 0
	for t.pos < off {
		b := t.make(buf, root, 1)
		if len(b) == 0 {
			break
		}
		if left := off - t.pos; left < int64(len(b)) {
			t.rest = bytes.Clone(b[left:])
			break
		}
		t.pos += int64(len(b))
	}
	t.pos = off
}

// make returns, in buf, the mappings from t.next on until there are so many bytes, and
// moves on; called with mu held.
func (t *mapsText) make(buf *[]byte, root vfs.Path, want int) []byte {
	b := (*buf)[:0]
	t.size = max(t.size, mapsPiece)
	policy := ""
	if t.n.e.numa {
		policy = t.n.x.policy()
	}
	t.space.MapsFrom(t.next, func(m vm.MapInfo) bool {
		start := len(b)
		if t.n.e.numa {
			b = appendNuma(b, t.space, &m, policy, root)
		} else {
			b = appendMap(b, &m, root)
		}
		if t.n.e.sizes {
			b = appendSizes(b, t.space, &m)
			b = append(m.AppendFlags(append(b, "THPeligible:    0\nVmFlags: "...)), '\n')
		}
		if start > 0 && len(b) >= t.size { // it is for the next read
			b = b[:start]
			return false
		}
		for len(b) >= t.size {
			t.size *= 2
		}
		t.next = m.End
		return len(b) < want
	})
	*buf = b
	return b
}

// Seek moves in the text.
func (t *mapsText) Seek(_ *caller.Ctx, f *vfs.File, off int64, whence int) (int64, linux.Errno) {
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
