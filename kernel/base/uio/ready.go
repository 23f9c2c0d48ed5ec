package uio

import "hardtack/abi/linux"

// Pager is a Memory that tells faults apart from copies: for who holds what a fault may
// wait for, and so may not have one.
type Pager interface {
	// FaultIn has pages ready for copies, and returns for how many bytes of n.
	FaultIn(a Addr, n int, write bool) (int, linux.Errno)
	// TryCopyIn and TryCopyOut copy up to the first page that is not ready.
	TryCopyIn(dst []byte, src Addr) int
	TryCopyOut(dst Addr, src []byte) int
}

// FaultIn has the pages of the next n bytes ready for TryCopyOut, if write is set, or
// TryCopyIn. It returns for how many bytes; that may change at any time.
func (v *Vec) FaultIn(n int, write bool) (done int, e linux.Errno) {
	n = min(n, v.left)
	p, _ := v.mem.(Pager)
	if p == nil {
		return n, 0 // kernel memory, or one that is tried in vain
	}
	cur, rest := v.cur, v.rest
	for done < n {
		if cur.Len == 0 {
			cur, rest = rest[0], rest[1:]
			continue
		}
		want, m := int(min(cur.Len, uint64(n-done))), 0
		m, e = p.FaultIn(cur.Base, want, write)
		if done += m; m < want {
			break
		}
		cur.Len = 0
	}
	if done > 0 {
		e = 0
	}
	return done, e
}

// TryCopyOut is CopyOut without faults: it ends at the first page that has one.
func (v *Vec) TryCopyOut(b []byte) int {
	if v.mem == nil {
		n, _ := v.CopyOut(b)
		return n
	}
	return v.try(b, true)
}

// TryCopyIn is CopyIn without faults.
func (v *Vec) TryCopyIn(b []byte) int {
	if v.mem == nil {
		n, _ := v.CopyIn(b)
		return n
	}
	return v.try(b, false)
}

// try copies to user memory, or from it.
func (v *Vec) try(b []byte, out bool) (done int) {
	p, _ := v.mem.(Pager)
	for b = b[:min(len(b), v.left)]; done < len(b) && p != nil; {
		if v.cur.Len == 0 {
			v.cur, v.rest = v.rest[0], v.rest[1:]
			continue
		}
		piece := b[done:][:min(v.cur.Len, uint64(len(b)-done))]
		var n int
		if out {
			n = p.TryCopyOut(v.cur.Base, piece)
		} else {
			n = p.TryCopyIn(piece, v.cur.Base)
		}
		v.advance(n)
		if done += n; n < len(piece) {
			break
		}
	}
	return done
}
