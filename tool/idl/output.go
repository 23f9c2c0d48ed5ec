package idl

import (
	"path/filepath"
)

// Output is one file that a compilation makes.
type Output struct {
	Path string // below the output directory
	Data []byte
}

// Languages say what to generate.
type Languages struct {
	Go, C bool
	// Module is the module in which generated Go finds the packages msg, msg/ump
	// and msg/wire; "": DefaultModule.
	Module string
	// NoTransport leaves the choice of transports to the program: the Go package links
	// none.
	NoTransport bool
}

// DefaultModule is the module that package msg belongs to.
const DefaultModule = "hardtack"

// Compile makes the files for the interface file path. Go's go to
// PACKAGE/NAME.go, C's to PACKAGE/c/NAME.h and .c, a directory of their own since
// Go packages cannot have C files without cgo.
func Compile(path string, read Read, want Languages, extra ...string) ([]Output, error) {
	i, err := Load(path, read, extra...)
	if err != nil {
		return nil, err
	}
	var out []Output
	source := filepath.Base(path)
	dir := i.PackageName()
	if want.Go {
		code, err := Go(i, source, want)
		if err != nil {
			return nil, err
		}
		out = append(out, Output{filepath.Join(dir, dir+".go"), code})
	}
	if want.C {
		header, code, err := C(i, source)
		if err != nil {
			return nil, err
		}
		base := filepath.Join(dir, "c", i.CName())
		out = append(out, Output{base + ".h", header}, Output{base + ".c", code})
	}
	return out, nil
}
