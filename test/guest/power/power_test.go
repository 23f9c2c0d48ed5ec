package power

import (
	"bytes"
	"encoding/binary"
	"testing"
)

func notes(t *testing.T, list ...record) Files {
	t.Helper()
	fs := Files{}
	for _, r := range list {
		copy(r.Magic[:], "fsx note")
		var b bytes.Buffer
		if err := binary.Write(&b, binary.LittleEndian, r); err != nil {
			t.Fatal(err)
		}
		if err := fs.Note(0, b.Bytes()); err != nil {
			t.Fatal(err)
		}
	}
	return fs
}

// TestFiles: what was synced must be there, what came later may be.
func TestFiles(t *testing.T) {
	fs := notes(t, record{Kind: noteWrite, N: 10, Tag: 3}, record{Kind: noteSync}, record{Kind: noteSynced})
	f := fs[0]
	ten := bytes.Clone(f.last())
	if len(f.Versions) != 1 || !f.Synced || len(ten) != 10 || bytes.IndexByte(ten, 0) >= 0 {
		t.Fatalf("%v", f)
	}
	if f.Check(ten) != nil || f.Check(ten[:9]) == nil || f.Check(append(bytes.Clone(ten), 0)) == nil || f.Check(make([]byte, 10)) == nil {
		t.Error("a file that was synced must be exactly so")
	}
	fs = notes(t, record{Kind: noteWrite, N: 10, Tag: 3}, record{Kind: noteSync}, record{Kind: noteSynced},
		record{Kind: noteZero, Off: 2, N: 3}, record{Kind: noteSize, N: 7}, record{Kind: noteCopy, Off: 12, N: 2},
		record{Kind: noteCopy, File: 1, Off: 1, N: 2, FromOff: 12})
	f = fs[0]
	last := append(append(append(bytes.Clone(ten[:2]), 0, 0, 0), ten[5:7]...), 0, 0, 0, 0, 0, ten[0], ten[1])
	if !bytes.Equal(f.last(), last) {
		t.Errorf("%v, not %v", f.last(), last)
	}
	if !bytes.Equal(fs[1].last(), []byte{0, ten[0], ten[1]}) {
		t.Errorf("the copy is %v", fs[1].last())
	}
	for _, ok := range [][]byte{ten, last, ten[:7], last[:12]} {
		if err := f.Check(ok); err != nil {
			t.Errorf("%v: %v", ok, err)
		}
	}
	for _, bad := range [][]byte{ten[:6], append(bytes.Clone(last), 0), append(bytes.Clone(ten), 0, 0, 9)} {
		if f.Check(bad) == nil {
			t.Errorf("%v", bad)
		}
	}
	if fs.Note(0, make([]byte, 64)) == nil {
		t.Error("zeros are no note")
	}
}
