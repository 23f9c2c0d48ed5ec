package vm

import (
	"bytes"
	"testing"

	"hardtack/abi/linux"
	"hardtack/kernel/base/uio"
)

// Copies without faults reach the pages that are there, and FaultIn those that may be.
func TestTryCopy(t *testing.T) {
	w := newCopyWorld(t)
	b := bytes.Repeat([]byte("x"), 3*pageSize)
	at := uio.Addr(copyBase + 100)
	if n := w.s.TryCopyOut(at, b); n != 0 {
		t.Fatalf("%d bytes to a page that is not there", n)
	}
	if n := w.s.TryCopyIn(b, at); n != 0 {
		t.Fatalf("%d bytes from a page that is not there", n)
	}
	if n, e := w.s.FaultIn(at, 10, true); n != 10 || e != 0 {
		t.Fatal(n, e)
	}
	if n := w.s.TryCopyOut(at, b); n != pageSize-100 {
		t.Fatalf("%d bytes to one page", n)
	}
	if n, e := w.s.FaultIn(at, 3*pageSize, true); n != 2*pageSize-100 || e != linux.EFAULT {
		t.Fatalf("%d bytes may be written, %v", n, e)
	}
	if n, e := w.s.FaultIn(at, 3*pageSize, false); n != 3*pageSize-100 || e != linux.EFAULT {
		t.Fatalf("%d bytes may be read, %v", n, e)
	}
	if n := w.s.TryCopyOut(at, b); n != 2*pageSize-100 {
		t.Fatalf("%d bytes to two pages", n)
	}
	got := make([]byte, len(b))
	if n := w.s.TryCopyIn(got, at); n != 3*pageSize-100 || !bytes.Equal(got[:2*pageSize-100], b[:2*pageSize-100]) {
		t.Fatalf("%d bytes from three pages", n)
	}
	for _, a := range []uio.Addr{userTop, ^uio.Addr(0) - 5, userTop + 1<<46} {
		if n, e := w.s.FaultIn(a, 10, false); n != 0 || e != linux.EFAULT {
			t.Errorf("%#x: %d, %v", a, n, e)
		}
		if n, m := w.s.TryCopyIn(got, a), w.s.TryCopyOut(a, got); n != 0 || m != 0 {
			t.Errorf("%#x: %d bytes from there, %d to it", a, n, m)
		}
	}
	last := uio.Addr(userTop - 5)
	if n, e := w.s.FaultIn(last, 10, true); n != 5 || e != linux.EFAULT {
		t.Errorf("the last page: %d, %v", n, e)
	}
	if n := w.s.TryCopyOut(last, got[:10]); n != 5 {
		t.Errorf("the last page: %d", n)
	}
}
