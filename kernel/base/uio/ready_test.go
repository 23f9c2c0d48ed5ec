package uio

import (
	"bytes"
	"testing"

	"hardtack/abi/linux"
)

// paged is a flat whose bytes from some place on have faults, as often as they are copied
// without FaultIn.
type paged struct {
	flat
	ready Addr
}

func (p *paged) FaultIn(a Addr, n int, _ bool) (int, linux.Errno) {
	n = len(p.at(a, n))
	p.ready = max(p.ready, a+Addr(n))
	if n == 0 {
		return 0, linux.EFAULT
	}
	return n, 0
}

// reach cuts n to what has no fault.
func (p *paged) reach(a Addr, n int) int { return min(n, int(max(a, p.ready)-a)) }

func (p *paged) TryCopyIn(b []byte, a Addr) int {
	n, _ := p.CopyIn(b[:p.reach(a, len(b))], a)
	return n
}

func (p *paged) TryCopyOut(a Addr, b []byte) int {
	n, _ := p.CopyOut(a, b[:p.reach(a, len(b))])
	return n
}

// Copies without faults end where pages are not ready, and go on from there.
func TestFaultIn(t *testing.T) {
	m := &paged{make(flat, 64), 0x1002}
	var v Vec
	if e := v.InitVec(m, []IOVec{{0x1000, 3}, {0, 0}, {0x1010, 5}, {0x103e, 9}}); e != 0 {
		t.Fatal(e)
	}
	if n := v.TryCopyOut([]byte("abcde")); n != 2 || v.Len() != 15 {
		t.Fatal(n, v.Len())
	}
	if n, e := v.FaultIn(100, true); n != 8 || e != 0 { // the last range leaves the memory
		t.Fatal(n, e)
	}
	if n := v.TryCopyOut([]byte("cdefghXYZ")); n != 8 || v.Len() != 7 {
		t.Fatal(n, v.Len())
	}
	if !bytes.Equal(m.flat[:3], []byte("abc")) || string(m.flat[0x10:0x15]) != "defgh" || string(m.flat[0x3e:]) != "XY" {
		t.Fatalf("%q", m.flat)
	}
	if n, e := v.FaultIn(100, true); n != 0 || e != linux.EFAULT {
		t.Fatal(n, e)
	}
	v.Init(m, 0x1000, 4)
	b := make([]byte, 9)
	if n := v.TryCopyIn(b); n != 4 || string(b[:4]) != "abc\x00" || v.Len() != 0 {
		t.Fatalf("%d %q", n, b)
	}
}

// Kernel memory has no faults, and what cannot tell them apart is not copied.
func TestFaultInElsewhere(t *testing.T) {
	v := Bytes(make([]byte, 4))
	if n, e := v.FaultIn(9, true); n != 4 || e != 0 {
		t.Fatal(n, e)
	}
	if n := v.TryCopyOut([]byte("abcdef")); n != 4 {
		t.Fatal(n)
	}
	v = Bytes([]byte("abcd"))
	b := make([]byte, 3)
	if n := v.TryCopyIn(b); n != 3 || string(b) != "abc" {
		t.Fatal(n, b)
	}
	v.Init(make(flat, 64), 0x1000, 4)
	if n := v.TryCopyOut([]byte("abcd")); n != 0 || v.Len() != 4 {
		t.Fatal(n)
	}
}
