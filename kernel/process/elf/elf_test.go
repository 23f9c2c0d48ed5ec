package elf

import (
	"encoding/binary"
	"os"
	"testing"

	"hardtack/abi/linux"
)

var le = binary.LittleEndian

// file builds an ELF file's headers.
func file(kind uint16, phs ...[7]uint64) []byte {
	b := make([]byte, HeaderSize+entrySize*len(phs))
	copy(b, "\x7fELF\x02\x01\x01")
	le.PutUint16(b[16:], kind)
	le.PutUint16(b[18:], machine)
	le.PutUint64(b[24:], 0x401000)
	le.PutUint64(b[32:], HeaderSize)
	le.PutUint16(b[54:], entrySize)
	le.PutUint16(b[56:], uint16(len(phs)))
	for i, p := range phs {
		h := b[HeaderSize+i*entrySize:]
		le.PutUint32(h, uint32(p[0]))
		le.PutUint32(h[4:], uint32(p[1]))
		for j, off := range []int{8, 16, 32, 40, 48} {
			le.PutUint64(h[off:], p[2+j])
		}
	}
	return b
}

func parse(b []byte) (*Program, linux.Errno) {
	r, _, e := HeadersAt(b)
	if e != 0 {
		return nil, e
	}
	if r.Offset > uint64(len(b)) || r.Size > uint64(len(b))-r.Offset {
		return nil, linux.ENOEXEC
	}
	return Parse(b, b[r.Offset:r.Offset+r.Size])
}

func load(flags, off, addr, fsize, msize uint64) [7]uint64 {
	return [7]uint64{ptLoad, flags, off, addr, fsize, msize, 0x1000}
}

func TestParse(t *testing.T) {
	p, e := parse(file(typeExec,
		load(R|X, 0, 0x400000, 0x2345, 0x2345),
		load(R|W, 0x2e10, 0x403e10, 0x1f0, 0x1234)))
	if e != 0 {
		t.Fatal(e)
	}
	if p.Dynamic || p.Entry != 0x401000 || len(p.Segments) != 2 || p.Low != 0x400000 || p.High != 0x406000 {
		t.Fatalf("%+v", p)
	}
	if p.PHAddr != 0x400040 {
		t.Fatalf("program headers at %#x", p.PHAddr)
	}
	if s := &p.Segments[1]; s.Start() != 0x403000 || s.FileEnd() != 0x404000 || s.End() != 0x406000 {
		t.Fatalf("%+v", s)
	}
}

func TestRefused(t *testing.T) {
	ok := load(R, 0, 0x400000, 0x1000, 0x1000)
	for name, c := range map[string]struct {
		b    []byte
		want linux.Errno
	}{
		"no headers":        {file(typeExec), linux.ENOEXEC},
		"empty interpreter": {file(typeExec, ok, [7]uint64{ptInterp, R, 0, 0, 1, 1}), linux.ENOEXEC},
		"huge interpreter":  {file(typeExec, ok, [7]uint64{ptInterp, R, 0, 0, 5000, 5000}), linux.ENOEXEC},
	} {
		if _, e := parse(c.b); e != c.want {
			t.Errorf("%s: %v, want %v", name, e, c.want)
		}
	}
	other := file(typeExec, ok)
	le.PutUint16(other[18:], 183) // AArch64
	if _, e := parse(other); e != linux.ENOEXEC {
		t.Error("another machine's program:", e)
	}
}

// What Linux finds out when the old program is gone is still a program here.
func TestLoadable(t *testing.T) {
	ok := load(R, 0, 0x400000, 0x1000, 0x1000)
	for name, c := range map[string]struct {
		b    []byte
		want bool
	}{
		"plain":                   {file(typeExec, ok), true},
		"no segments":             {file(typeExec, [7]uint64{ptGNUStack}), true},
		"overlap":                 {file(typeExec, ok, load(R, 0, 0x400000, 0x10, 0x10)), true},
		"descending":              {file(typeExec, ok, load(R, 0, 0x300000, 0x10, 0x10)), true},
		"offset and address":      {file(typeExec, load(R, 8, 0x400000, 0x10, 0x10)), true},
		"no file":                 {file(typeExec, load(R, 0, 0x400000, 0, 0x10)), true},
		"relocatable":             {file(1, ok), false},
		"more file than memory":   {file(typeExec, load(R, 0, 0x400000, 0x2000, 0x1000)), false},
		"kernel address":          {file(typeExec, load(R, 0, 1<<63, 0x10, 0x10)), false},
		"size wraps":              {file(typeExec, load(R, 0, 0x400000, 0x10, ^uint64(0)-0x400000)), false},
		"size beyond the end":     {file(typeExec, load(R, 0, 0x400000, 0x10, 1<<47)), false},
		"a bad one behind a good": {file(typeExec, ok, load(R, 0, 1<<63, 0x10, 0x10)), false},
	} {
		p, e := parse(c.b)
		if e != 0 || p.Loadable != c.want {
			t.Errorf("%s: %+v %v", name, p, e)
		}
	}
	p, _ := parse(file(typeExec, ok, load(R, 0, 0x300000, 0x10, 0x10)))
	if p.Low != 0x300000 || p.High != 0x401000 || p.PHAddr != 0x400040 {
		t.Errorf("%+v", p)
	}
}

// The host's own programs parse, and what they say is sane.
func TestHostPrograms(t *testing.T) {
	for _, name := range []string{"/bin/true", "/bin/bash", "/lib64/ld-linux-x86-64.so.2"} {
		b, err := os.ReadFile(name)
		if err != nil {
			continue
		}
		p, e := parse(b)
		if e != 0 || p.PHAddr == 0 || p.High <= p.Low {
			t.Errorf("%s: %+v %v", name, p, e)
		}
	}
}

func TestShebang(t *testing.T) {
	long := "#!/" + string(make255('x'))
	for _, c := range []struct {
		in, interp, arg string
		ok              bool
	}{
		{"#!/bin/sh\necho", "/bin/sh", "", true},
		{"#! \t/bin/sh -e  x \n", "/bin/sh", "-e  x", true},
		{"#!/bin/sh", "/bin/sh", "", true},
		{"#!\n", "", "", false},
		{"#!   \n", "", "", false},
		{"#", "", "", false},
		{"", "", "", false},
		{"\x7fELF", "", "", false},
		{long[:ShebangSize], "", "", false},
		{"#!/bin/sh " + long[:ShebangSize-10], "/bin/sh", long[:ShebangSize-11], true},
	} {
		interp, arg, ok := Shebang([]byte(c.in))
		if interp != c.interp || arg != c.arg || ok != c.ok {
			t.Errorf("%.20q: %q %q %v", c.in, interp, arg, ok)
		}
	}
}

func make255(c byte) []byte {
	b := make([]byte, 300)
	for i := range b {
		b[i] = c
	}
	return b
}

// Whatever the bytes are, a plan is within user memory.
func FuzzParse(f *testing.F) {
	f.Add(file(typeExec, load(R|X, 0, 0x400000, 0x2345, 0x2345), load(R|W, 0x2e10, 0x403e10, 0x1f0, 0x1234)))
	f.Add(file(typeDyn, load(R|X, 0, 0, 0x2345, 0x2345), [7]uint64{ptInterp, R, 0, 0, 10, 10}))
	f.Fuzz(func(t *testing.T, b []byte) {
		p, e := parse(b)
		if e != 0 {
			return
		}
		for i := range p.Segments {
			s := &p.Segments[i]
			if s.Start() < p.Low || s.End() > p.High || p.High > linux.TaskSize || s.End() < s.Start() ||
				s.FileSize > s.MemSize || s.FileEnd() > s.End() {
				t.Fatalf("bad segment %+v of %+v", s, p)
			}
		}
	})
}
