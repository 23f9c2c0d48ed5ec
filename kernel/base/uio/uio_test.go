package uio

import (
	"bytes"
	"testing"

	"hardtack/abi/linux"
)

// flat is an address space whose bytes are at 0x1000.
type flat []byte

func (f flat) at(a Addr, n int) []byte {
	if a < 0x1000 || int(a-0x1000) >= len(f) {
		return nil
	}
	b := f[a-0x1000:]
	return b[:min(n, len(b))]
}
func (f flat) CopyIn(d []byte, a Addr) (int, linux.Errno) {
	n := copy(d, f.at(a, len(d)))
	if n < len(d) {
		return n, linux.EFAULT
	}
	return n, 0
}
func (f flat) CopyOut(a Addr, s []byte) (int, linux.Errno) {
	n := copy(f.at(a, len(s)), s)
	if n < len(s) {
		return n, linux.EFAULT
	}
	return n, 0
}

func TestScatter(t *testing.T) {
	m := make(flat, 64)
	var v Vec
	if e := v.InitVec(m, []IOVec{{0x1000, 3}, {0, 0}, {0x1010, 5}, {0x103e, 9}}); e != 0 {
		t.Fatal(e)
	}
	if v.Len() != 17 {
		t.Fatal(v.Len())
	}
	if n, e := v.CopyOut([]byte("abcde")); n != 5 || e != 0 {
		t.Fatal(n, e)
	}
	if n, e := v.CopyOut([]byte("fghXYZ")); n != 5 || e != linux.EFAULT {
		t.Fatal(n, e) // the last range leaves the memory after two bytes
	}
	if !bytes.Equal(m[:3], []byte("abc")) || !bytes.Equal(m[0x10:0x15], []byte("defgh")) || string(m[0x3e:]) != "XY" {
		t.Fatalf("%q", m)
	}
	for _, long := range [][]IOVec{{{0, 1 << 63}}, {{0x1000, 1 << 62}, {0x1000, 1 << 62}}, {{0x1000, 1<<63 - 1}, {0x1000, 1<<63 - 1}}} {
		if e := v.InitVec(m, long); e != linux.EINVAL {
			t.Fatal(long, e)
		}
	}
}

// What was moved is not left, however it was moved.
func TestLeft(t *testing.T) {
	m := make(flat, 64)
	var one, many Vec
	one.Init(m, 0x1000, 10)
	many.InitVec(m, []IOVec{{0x1000, 4}, {0x1010, 6}})
	for name, v := range map[string]*Vec{"one range": &one, "many": &many} {
		for left := 10; left > 0; {
			n, e := v.CopyOut(make([]byte, 3))
			left -= min(left, 3)
			if e != 0 || v.Len() != left {
				t.Fatalf("%s: %d moved, %d left, want %d", name, n, v.Len(), left)
			}
		}
		if n, e := v.CopyIn(make([]byte, 1)); n != 0 || e != 0 {
			t.Fatalf("%s: %d bytes behind the end, %v", name, n, e)
		}
	}
}

func TestKernelBytesAndMark(t *testing.T) {
	v := Bytes([]byte("hello"))
	mark := v.Mark()
	var b [3]byte
	if n, _ := v.CopyIn(b[:]); n != 3 || string(b[:]) != "hel" || v.Len() != 2 {
		t.Fatal(n, v.Len())
	}
	v.Reset(mark)
	v.Limit(1)
	if n, _ := v.CopyIn(b[:]); n != 1 || b[0] != 'h' {
		t.Fatal(n)
	}
}
