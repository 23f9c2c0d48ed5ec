// Package idl compiles interface files: it reads the interface language of
// Barrelfish's Flounder and writes a Go package and a C11 header and source for
// each interface.
//
// The way of a file is Parse (text to syntax, syntax.go), Check (syntax to a
// resolved Interface, model.go), and then the writers Go and C, which only look
// at the model. Each stage stops at its first mistake and answers one *Error,
// which has the place and says what was expected; no input makes it panic.
// The output depends on nothing but the interface: not on the clock, the host,
// the path or the order of a map.
//
// # Language
//
//	import "types.if";                       ours: other files' type declarations
//	interface NAME "description" {           the description may be left out
//	    alias NAME TYPE;                     another name for a type
//	    typedef TYPE NAME;                   the same
//	    typedef TYPE NAME[N];                an array of N elements
//	    typedef struct { TYPE NAME; … } NAME;
//	    typedef enum { A, B, … } NAME;       numbered from 0
//	    error NAME "description";            ours: how a call can fail; numbered from 1
//	    message NAME(TYPE NAME, …);          either side may send it
//	    call NAME(…);                        a client sends it to its server
//	    response NAME(…);                    a server sends it to a client
//	    rpc NAME(in TYPE NAME, out TYPE NAME, …);
//	};
//
// Every rpc can fail instead of answering: with one of the interface's errors, of
// which the description may be left out, or with one that all interfaces have
// (msg.Code). The text of an error reaches the caller with it. Which rpc fails how
// is not declared; say it in comments. error is a key word only where a
// declaration begins, so that older files mean what they did.
//
// An argument is TYPE NAME, an array of given length TYPE NAME[N] (ours; a
// struct's field can have it too), an array of any length up to MAX with the
// name of its length, TYPE NAME[LEN, MAX] or TYPE NAME[LEN], or a text,
// String NAME[MAX] or string NAME. What gives no MAX is held to DefaultMax
// bytes. Comments are // and /* */, and the latter nest. A declaration
// may stand before or after its use. Annotations @NAME(KEY=VALUE, …) in front of
// a message are read and not used: they steer Barrelfish's own transports.
//
// Built in are int8 to int64, uint8 to uint64, int (int32), intptr, uintptr and
// size (64 bits wide on the wire), bool, char, string, cap and give_away_cap; and,
// as Barrelfish's types.if and the files for its platforms would give them,
// errval, iref, coreid, domainid, coremask, cycles, genpaddr, genvaddr, genfsize,
// genoff and rsrcid, which a file may declare anew. cap stands for a file
// descriptor or an end of a connection that is passed along.
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
