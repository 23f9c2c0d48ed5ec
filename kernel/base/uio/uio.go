// Package uio describes the memory of one transfer between the kernel and a
// user program: an unchecked user range, or kernel bytes where the kernel is
// its own caller.
//
// A user address is never dereferenced here: Memory (an address space) checks
// and copies. A Vec is used by one thread at a time.
package uio

import "hardtack/abi/linux"

// Addr is an unchecked user virtual address.
type Addr uint64

// Memory copies between kernel memory and an address space. Both return how
// many bytes were copied and EFAULT if that is fewer than asked.
type Memory interface {
	CopyIn(dst []byte, src Addr) (int, linux.Errno)
	CopyOut(dst Addr, src []byte) (int, linux.Errno)
}

// IOVec is struct iovec.
type IOVec struct {
	Base Addr
	Len  uint64
}

// MaxTransfer is the most bytes that one call moves (Linux's MAX_RW_COUNT).
const MaxTransfer = 0x7ffff000

// Vec is what is left of a transfer: every copy moves it on.
type Vec struct {
	mem  Memory
	cur  IOVec
	rest []IOVec
	kern []byte // used instead of mem where mem is nil
	left int
}

// Init makes v one user range; the length is cut to MaxTransfer.
func (v *Vec) Init(m Memory, base Addr, n uint64) {
	n = min(n, MaxTransfer)
	v.use(m)
	v.cur, v.left = IOVec{base, n}, int(n)
}

// use makes v an empty range of m. Pointers that stay the same are not stored again: while
// the collector marks, a write barrier makes a store of the whole Vec cost 500 instructions.
func (v *Vec) use(m Memory) {
	if !identical(v.mem, m) {
		v.mem = m
	}
	if v.rest != nil {
		v.rest = nil
	}
	if v.kern != nil {
		v.kern = nil
	}
}

// InitVec makes v several user ranges, which it keeps; EINVAL where their sum
// exceeds what a ssize_t holds.
func (v *Vec) InitVec(m Memory, iov []IOVec) linux.Errno {
	var sum uint64
	for _, x := range iov {
		if x.Len > 1<<63-1 || sum+x.Len > 1<<63-1 {
			return linux.EINVAL
		}
		sum += x.Len
	}
	v.use(m)
	v.cur, v.rest, v.left = IOVec{}, iov, int(min(sum, MaxTransfer))
	return 0
}

// InitBytes makes v a range of kernel memory.
func (v *Vec) InitBytes(b []byte) { *v = Vec{kern: b, left: len(b)} }

// Bytes returns a new Vec over kernel memory.
func Bytes(b []byte) *Vec {
	v := new(Vec)
	v.InitBytes(b)
	return v
}

// Len returns how many bytes are left.
func (v *Vec) Len() int { return v.left }

// First returns how many bytes the next range has.
func (v *Vec) First() int {
	if v.cur.Len == 0 && v.kern == nil && len(v.rest) > 0 {
		return int(min(v.rest[0].Len, uint64(v.left)))
	}
	if v.kern != nil {
		return v.left
	}
	return int(min(v.cur.Len, uint64(v.left)))
}

// InPage returns how many bytes of the next range lie in one page of user memory.
func (v *Vec) InPage() int {
	const page = 4096
	for v.cur.Len == 0 && len(v.rest) > 0 {
		v.cur, v.rest = v.rest[0], v.rest[1:]
	}
	return min(v.First(), page-int(v.cur.Base%page))
}

// Limit cuts what is left to at most n bytes.
func (v *Vec) Limit(n int) { v.left = min(v.left, max(n, 0)) }

// CopyOut writes p to the front of the range; a short count comes with EFAULT,
// or without when the range is full.
func (v *Vec) CopyOut(p []byte) (int, linux.Errno) {
	if v.mem != nil && uint64(len(p)) <= v.cur.Len && len(p) <= v.left { // the rule
		n, e := v.mem.CopyOut(v.cur.Base, p)
		v.advance(n)
		return n, e
	}
	p = p[:min(len(p), v.left)]
	if v.mem == nil {
		n := copy(v.kern, p)
		v.kern = v.kern[n:]
		v.left -= n
		return n, 0
	}
	done := 0
	for done < len(p) {
		if v.cur.Len == 0 {
			v.cur, v.rest = v.rest[0], v.rest[1:]
			continue
		}
		n := int(min(v.cur.Len, uint64(len(p)-done)))
		m, e := v.mem.CopyOut(v.cur.Base, p[done:done+n])
		v.advance(m)
		done += m
		if e != 0 {
			return done, e
		}
	}
	return done, 0
}

// CopyIn reads from the front of the range into p; a short count comes with
// EFAULT, or without when the range is used up.
func (v *Vec) CopyIn(p []byte) (int, linux.Errno) {
	if v.mem != nil && uint64(len(p)) <= v.cur.Len && len(p) <= v.left { // the rule
		n, e := v.mem.CopyIn(p, v.cur.Base)
		v.advance(n)
		return n, e
	}
	p = p[:min(len(p), v.left)]
	if v.mem == nil {
		n := copy(p, v.kern)
		v.kern = v.kern[n:]
		v.left -= n
		return n, 0
	}
	done := 0
	for done < len(p) {
		if v.cur.Len == 0 {
			v.cur, v.rest = v.rest[0], v.rest[1:]
			continue
		}
		n := int(min(v.cur.Len, uint64(len(p)-done)))
		m, e := v.mem.CopyIn(p[done:done+n], v.cur.Base)
		v.advance(m)
		done += m
		if e != 0 {
			return done, e
		}
	}
	return done, 0
}

func (v *Vec) advance(n int) {
	v.cur.Base += Addr(n)
	v.cur.Len -= uint64(n)
	v.left -= n
}

// Mark is a place in a Vec to come back to.
type Mark struct{ v Vec }

// Mark remembers the present place; Reset returns to it (a datagram that must
// be copied again, a write that gave back its page).
func (v *Vec) Mark() Mark { return Mark{*v} }

// Reset returns to a mark of the same Vec.
func (v *Vec) Reset(m Mark) { *v = m.v }
