// Package counted reads what the plugins of the benchmarks counted: instructions by address.
package counted

import (
	"bytes"
	"debug/elf"
	"debug/gosym"
	"fmt"
	"strings"
)

// EachPC calls f with each line "pc ADDRESS COUNT" of a plugin's output.
func EachPC(counts []byte, f func(pc uint64, n float64)) error {
	for line := range strings.Lines(string(counts)) {
		if !strings.HasPrefix(line, "pc ") {
			continue
		}
		var pc uint64
		var n float64
		if _, err := fmt.Sscanf(line, "pc %x %f", &pc, &n); err != nil {
			return fmt.Errorf("%q: %w", line, err)
		}
		f(pc, n)
	}
	return nil
}

// magic begins the table of functions since Go 1.20, for amd64.
var magic = []byte{0xf1, 0xff, 0xff, 0xff, 0, 0, 1, 8}

// Functions reads the table of functions of a Go program or a kernel image, which has no
// sections.
func Functions(file string) (*gosym.Table, error) {
	f, err := elf.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if text, table := f.Section(".text"), f.Section(".gopclntab"); text != nil && table != nil {
		data, err := table.Data()
		if err != nil {
			return nil, err
		}
		return gosym.NewTable(nil, gosym.NewLineTable(data, text.Addr))
	}
	text := uint64(0)
	for _, p := range f.Progs {
		if p.Type != elf.PT_LOAD {
			continue
		}
		if p.Flags&elf.PF_X != 0 {
			text = p.Vaddr + 0x1000 // behind a page of headers
		}
		b := make([]byte, p.Filesz)
		if _, err := p.ReadAt(b, 0); err != nil {
			return nil, err
		}
		if at := bytes.Index(b, magic); at >= 0 {
			return gosym.NewTable(nil, gosym.NewLineTable(b[at:], text))
		}
	}
	return nil, fmt.Errorf("%s has no table of functions", file)
}
