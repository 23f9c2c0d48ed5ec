// Package idl compiles interface files: it reads the interface language of
// Barrelfish's Flounder and writes a Go package and a C11 header and source for
// each interface.
//
// The way of a file is Parse (text to syntax, syntax.go), Check (syntax to a resolved
// Interface, model.go), and then the writers Go and C, which only look at the model. Each
// stage stops at the first error and returns one *Error with the position and what was
// expected; no input makes it panic. The output depends on the interface only: not on the
// clock, the host, the path or the order of a map.
//
// docs/guides/idl.md describes the language. What it has beyond Flounder's: import lines
// (Flounder takes such files from its command line), errors, arrays of given length at
// arguments and fields, and declarations in any order. error is a key word only where a
// declaration begins, so that older files mean what they did. Annotations in front of a
// message steer Barrelfish's own transports; they are read and not used.
package idl

import "fmt"

// Limits. What is over them is refused where it stands.
const (
	MaxFile     = 1 << 20  // bytes of an interface file
	MaxName     = 64       // bytes of a name
	MaxMessages = 4000     // messages of an interface; an rpc counts for two
	MaxArgs     = 128      // arguments of a message, fields of a struct
	MaxValues   = 4096     // values of an enum
	MaxErrors   = 4096     // errors of an interface
	MaxTypes    = 1024     // declared types of a file with its imports
	MaxDepth    = 16       // structs and arrays within each other
	MaxCaps     = 16       // caps in a message
	MaxImports  = 64       // imported files, directly or not
	MaxSize     = 16 << 20 // bytes of a message on the wire
	DefaultMax  = 1 << 16  // bytes of a text or an array that names no limit
)

// Pos is a place in a file. Lines and columns count from 1, columns in
// characters (a tab is one).
type Pos struct {
	File      string
	Line, Col int
}

func (p Pos) String() string { return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Col) }

// Error is a mistake in an interface file.
type Error struct {
	Pos Pos
	Msg string
}

func (e *Error) Error() string { return e.Pos.String() + ": " + e.Msg }

func errorf(p Pos, format string, args ...any) *Error {
	return &Error{Pos: p, Msg: fmt.Sprintf(format, args...)}
}
