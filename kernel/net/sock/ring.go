package sock

import (
	"math/bits"
	"sync"

	"hardtack/abi/linux"
	"hardtack/kernel/base/accounts"
	"hardtack/kernel/base/uio"
)

// Memory of rings: powers of two from 2 KiB (kept by an idle connection) to
// 16 MiB (SO_SNDBUF at its greatest is 416 KiB unless root raises
// net.core.wmem_max), pooled by size. Users share
// RingBytes: beyond a user's share its sockets hold little at a time, so that
// programs which fill sockets and do not read them cannot exhaust the kernel, nor
// take from others what they need.
const (
	minRingShift = 11
	maxRingShift = 24
	// MaxFlow is the most that can wait in a Flow.
	MaxFlow = 1 << maxRingShift
)

// RingBytes is the memory of all rings but the smallest, of which each flow may have
// one; boot code makes it a share of the machine's.
var RingBytes = accounts.NewPool(64 << 20)

type ringMem struct{ b []byte }

var ringPools [maxRingShift + 1]sync.Pool

func ringShift(n int) int {
	return max(bits.Len(uint(n-1)), minRingShift)
}

// ring is a byte queue; its owner's lock guards it.
type ring struct {
	user *accounts.User // who is charged for mem; immutable
	mem  *ringMem       // nil: no memory
	r, w uint64         // bytes ever read and written; w-r are in the ring
}

func (q *ring) used() int { return int(q.w - q.r) }

// reserve makes room for n more bytes: ENOBUFS if there is no memory.
func (q *ring) reserve(n int) linux.Errno {
	need := q.used() + n
	if q.mem != nil && need <= len(q.mem.b) {
		return 0
	}
	shift := ringShift(need)
	if shift > maxRingShift {
		return linux.ENOBUFS
	}
	size := int64(1) << shift
	if shift > minRingShift && !RingBytes.Charge(q.user, size) {
		return linux.ENOBUFS
	}
	m, _ := ringPools[shift].Get().(*ringMem)
	if m == nil {
		m = &ringMem{b: make([]byte, size)}
	}
	if old := q.mem; old != nil {
		for pos := q.r; pos < q.w; {
			a := piece(old.b, pos, q.w-pos)
			pos += uint64(copy(piece(m.b, pos, uint64(len(a))), a))
		}
		q.drop()
	}
	q.mem = m
	return 0
}

// reserveSome is reserve of as many of n bytes as there is memory for.
func (q *ring) reserveSome(n int) (int, linux.Errno) {
	e := q.reserve(n)
	if e == 0 {
		return n, 0
	}
	if q.mem == nil {
		n = min(n, 1<<minRingShift)
		return n, q.reserve(n)
	}
	if n = len(q.mem.b) - q.used(); n == 0 {
		return 0, e
	}
	return n, 0
}

// piece returns the bytes of ring memory from pos on, up to n or the seam.
func piece(b []byte, pos, n uint64) []byte {
	i := pos & uint64(len(b)-1)
	return b[i : i+min(n, uint64(len(b))-i)]
}

// drop gives the memory back.
func (q *ring) drop() {
	if m := q.mem; m != nil {
		q.mem = nil
		if n := len(m.b); n > 1<<minRingShift {
			RingBytes.Release(q.user, int64(n))
		}
		ringPools[ringShift(len(m.b))].Put(m)
	}
}

// idle is called when the ring is empty: only little memory is kept.
func (q *ring) idle() {
	if q.mem != nil && len(q.mem.b) > 1<<minRingShift {
		q.drop()
	}
}

// copyIn appends n bytes of v, for which there is room.
func (q *ring) copyIn(v *uio.Vec, n int) (int, linux.Errno) {
	done := 0
	for done < n {
		p := piece(q.mem.b, q.w, uint64(n-done))
		m, e := v.CopyIn(p)
		q.w += uint64(m)
		done += m
		if e != 0 || m < len(p) {
			return done, e
		}
	}
	return done, 0
}

// copyOut copies n bytes from position pos on into v without consuming them.
func (q *ring) copyOut(v *uio.Vec, pos uint64, n int) (int, linux.Errno) {
	done := 0
	for done < n {
		p := piece(q.mem.b, pos, uint64(n-done))
		m, e := v.CopyOut(p)
		pos += uint64(m)
		done += m
		if e != 0 || m < len(p) {
			return done, e
		}
	}
	return done, 0
}
