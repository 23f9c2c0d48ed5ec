package sysctl

import (
	"bytes"

	"hardtack/abi/linux"
	"hardtack/kernel/base/caller"
)

// word is a text of one line.
type word struct {
	most int // bytes that it may have; what is longer is cut
	get  func() string
	set  func(c *caller.Ctx, s string) linux.Errno // nil: read only
}

// Read gives the text from an offset on, and a newline where there is room.
func (w *word) Read(_ *caller.Ctx, most int, off int64) ([]byte, linux.Errno) {
	s := w.get()
	if most == 0 || off > int64(len(s)) {
		return nil, 0
	}
	b := append([]byte(s[off:]), '\n')
	return b[:min(len(b), most)], 0
}

// Write replaces the text from an offset on, which must not be behind its end.
func (w *word) Write(c *caller.Ctx, b []byte, off int64) (int, linux.Errno) {
	if w.set == nil {
		return 0, linux.EPERM
	}
	if len(b) == 0 {
		return 0, 0
	}
	s := ""
	if Strict.Get() == 1 && off != 0 {
		if s = w.get(); off > int64(len(s)) {
			return len(b), 0
		}
		s = s[:off]
	}
	line := b
	if i := bytes.IndexAny(line, "\n\x00"); i >= 0 {
		line = line[:i]
	}
	s += string(line)
	if e := w.set(c, s[:min(len(s), w.most)]); e != 0 {
		return 0, e
	}
	return len(b), 0
}

// Text is a text of at most so many bytes.
func Text(name string, most int, get func() string, set func(c *caller.Ctx, s string) linux.Errno) File {
	return File{Name: name, Mode: 0o644, Value: &word{most, get, set}}
}

// Line shows a text that cannot be changed.
func Line(name string, get func() string) File {
	return File{Name: name, Mode: 0o444, Value: &word{get: get}}
}

// Trigger is a number from lo to hi that makes something happen.
func Trigger(name string, lo, hi int64, do func(v int64) linux.Errno) File {
	return File{Name: name, Mode: 0o200, Value: hook(kindInt, lo, hi, func() int64 { return 0 },
		func(_ *caller.Ctx, v int64) linux.Errno { return do(v) })}
}
