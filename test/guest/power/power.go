// Package power knows what a disk must hold whose power went while fsx
// (test/guest/fsx) worked on it: it replays fsx's notes.
package power

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

// Kinds of notes, as in fsx.h.
const (
	noteWrite = iota + 1
	noteZero
	noteSize
	noteCopy
	noteSync
	noteSynced
	noteRename
)

// record is a note.
type record struct {
	Magic            [8]byte
	Kind, File, From uint32
	Tag              uint32
	Off, N, FromOff  int64
}

// File is what may be in a file.
type File struct {
	// Versions are the contents since the last fsync, each that of an operation that had
	// begun; the first was durable.
	Versions [][]byte
	Synced   bool     // it has been durable once, so its name is
	Last     []string // what was done to it, for whoever looks for an error
	begun    int      // the version that an fsync under way makes durable
}

// Files are fsx's, by number: its name is f and the number, with a prime while it is renamed.
type Files map[int]*File

var kinds = [8]string{"?", "write", "zero", "size", "copy", "sync", "synced", "rename"}

// Note takes a note over, the event of this number.
func (fs Files) Note(when int, b []byte) error {
	var r record
	if err := binary.Read(bytes.NewReader(b), binary.LittleEndian, &r); err != nil {
		return err
	}
	if string(r.Magic[:]) != "fsx note" {
		return fmt.Errorf("a note with magic %q", r.Magic)
	}
	f := fs.file(r.File)
	f.Last = append(f.Last[max(0, len(f.Last)-40):], fmt.Sprintf("%d: %s off %d n %d, from %d of f%d", when, kinds[r.Kind%8], r.Off, r.N, r.FromOff, r.From))
	old := f.last()
	end := int(r.Off + r.N)
	switch r.Kind {
	case noteWrite:
		p := resize(old, max(len(old), end))
		fill(p[r.Off:end], r.Off, r.Tag)
		f.Versions = append(f.Versions, p)
	case noteCopy:
		p := resize(old, max(len(old), end))
		if r.N > 0 {
			copy(p[r.Off:end], bytes.Clone(fs.file(r.From).last()[r.FromOff:r.FromOff+r.N]))
			f.Versions = append(f.Versions, p)
		}
	case noteZero:
		p := resize(old, len(old))
		if r.FromOff != 0 { // it may grow
			p = resize(old, max(len(old), end))
		}
		clear(p[min(int(r.Off), len(p)):min(end, len(p))])
		f.Versions = append(f.Versions, p)
	case noteSize:
		f.Versions = append(f.Versions, resize(old, int(r.N)))
	case noteSync:
		f.begun = len(f.Versions) - 1
	case noteSynced:
		f.Versions, f.begun, f.Synced = f.Versions[f.begun:], 0, true
	case noteRename:
	default:
		return fmt.Errorf("a note of kind %d", r.Kind)
	}
	return nil
}

func (fs Files) file(n uint32) *File {
	f := fs[int(n)]
	if f == nil {
		f = &File{Versions: [][]byte{nil}}
		fs[int(n)] = f
	}
	return f
}

func (f *File) last() []byte { return f.Versions[len(f.Versions)-1] }

// resize is a copy with another size.
func resize(b []byte, size int) []byte {
	p := make([]byte, size)
	copy(p, b)
	return p
}

// fill is fsx's fill.
func fill(p []byte, off int64, tag uint32) {
	base := tag * 2654435761 >> 16
	for i := range p {
		at := uint32(off) + uint32(i)
		if p[i] = byte(base + at*13 + at>>9*7); p[i] == 0 {
			p[i] = 1
		}
	}
}

// Check wants every byte to be that of some version, zero where that is shorter, and the
// length between theirs.
func (f *File) Check(data []byte) error {
	shortest, longest := len(f.Versions[0]), 0
	for _, v := range f.Versions {
		shortest, longest = min(shortest, len(v)), max(longest, len(v))
	}
	if len(data) < shortest || len(data) > longest {
		return fmt.Errorf("%d bytes long, not %d to %d", len(data), shortest, longest)
	}
	for i, b := range data {
		if !f.allows(i, b) {
			return fmt.Errorf("byte %d of %d is %d, and the last of %d versions has %d", i, len(data), b, len(f.Versions), at(f.last(), i))
		}
	}
	return nil
}

func (f *File) allows(i int, b byte) bool {
	for _, v := range f.Versions {
		if at(v, i) == b {
			return true
		}
	}
	return false
}

func at(b []byte, i int) byte {
	if i < len(b) {
		return b[i]
	}
	return 0
}
