package idl

import (
	"fmt"
	"path"
)

// Kind is what a type is on the wire.
type Kind uint8

const (
	Uint8 Kind = iota
	Uint16
	Uint32
	Uint64
	Int8
	Int16
	Int32
	Int64
	Bool   // one byte, 0 or 1
	Char   // one byte
	Errval // 32 bits
	Iref   // 64 bits
	Cap    // one byte; what it stands for travels beside the body
	Enum   // 32 bits, less than the number of its values
	Text   // a 32-bit length and as many bytes of UTF-8
	Slice  // a 32-bit length and as many elements
	Array  // its elements
	Struct // its fields
	Alias  // what it stands for
)

// width is the size of the kinds that have one alone.
var width = [...]int{Uint8: 1, Uint16: 2, Uint32: 4, Uint64: 8, Int8: 1, Int16: 2, Int32: 4, Int64: 8,
	Bool: 1, Char: 1, Errval: 4, Iref: 8, Cap: 1, Enum: 4}

// Type is a resolved type. Declared types are shared by all that name them.
type Type struct {
	Kind   Kind
	Name   string // in the interface file; empty for lengths written at an argument
	Decl   *TypeDecl
	Elem   *Type // of Slice, Array, Alias
	Len    int   // of Array
	Limit  int   // of Slice in elements, of Text in bytes
	Fields []*Field
	Values []Value
	// Min and Max are the bytes it takes on the wire, Caps the caps in it.
	Min, Max, Caps int

	depth int
}

// Under is the type without aliases.
func (t *Type) Under() *Type {
	for t.Kind == Alias {
		t = t.Elem
	}
	return t
}

// Fixed says whether all values take the same room.
func (t *Type) Fixed() bool { return t.Min == t.Max }

// Field is an argument or a struct's field.
type Field struct {
	Pos  Pos
	Name string
	Len  string // the name of the length of a Slice; may be empty
	Type *Type
}

// Role is what a message is for.
type Role uint8

const (
	OneWay Role = iota // message, call and response
	Call               // of an rpc; the Reply follows it
	Reply
)

// Message is one message on the wire.
type Message struct {
	Decl   *MessageDecl
	Role   Role
	Num    int // from 1
	Fields []*Field
	// Min and Max are the bytes of a body, the number of the call included.
	Min, Max, Caps int
}

// Name is the message's name in the interface; an rpc's two share one.
func (m *Message) Name() string { return m.Decl.Name }

// ToServer says that a client may send the message to its server.
func (m *Message) ToServer() bool { return m.Role != Reply && m.Decl.Key != "response" }

// ToClient says that a server may send it to a client.
func (m *Message) ToClient() bool { return m.Role != Call && m.Decl.Key != "call" }

// Interface is a checked interface file: what the writers look at.
type Interface struct {
	Decl     *IfaceDecl
	Errors   []*ErrorDecl // error number n is Errors[n-1]
	Types    []*Type      // the declared types in use, each after those that it uses
	Messages []*Message
}

// callBytes is the length of the number of a call.
const callBytes = 4

var builtin = func() map[string]*Type {
	m := map[string]*Type{"string": {Kind: Text, Limit: DefaultMax, Min: 4, Max: 4 + DefaultMax}}
	m["String"] = m["string"]
	for name, k := range map[string]Kind{
		"uint8": Uint8, "uint16": Uint16, "uint32": Uint32, "uint64": Uint64, "uintptr": Uint64, "size": Uint64,
		"int8": Int8, "int16": Int16, "int32": Int32, "int64": Int64, "intptr": Int64, "int": Int32,
		"bool": Bool, "char": Char, "cap": Cap, "give_away_cap": Cap,
	} {
		t := &Type{Kind: k, Min: width[k], Max: width[k]}
		if k == Cap {
			t.Caps = 1
		}
		m[name] = t
	}
	return m
}()

// system are the types that files of Barrelfish take from its types.if and the
// files for its platforms. A file may declare them again.
var system = map[string]*Type{
	"errval": {Kind: Errval, Min: 4, Max: 4}, "iref": {Kind: Iref, Min: 8, Max: 8}, "cycles": builtin["uint64"],
	"coreid": builtin["uint8"], "domainid": builtin["uint32"], "coremask": builtin["uint64"],
	"genpaddr": builtin["uint64"], "genvaddr": builtin["uint64"], "genfsize": builtin["uint64"], "genoff": builtin["uint64"],
	"rsrcid": builtin["uint32"],
}

// scope is what names of types mean in one file.
type scope struct {
	decls map[string]*binding
}

// binding is a declaration and the scope that it was written in. The type is
// made at the first use; while that is under way busy is set.
type binding struct {
	decl *TypeDecl
	in   *scope
	typ  *Type
	busy bool
}

// Read gets the text of an imported file.
type Read func(path string) ([]byte, error)

// Load parses and checks the interface file path. Imports are looked up beside
// the file that has them by join(dir of that file, what it says); extra are
// files of types that it sees as if it imported them.
func Load(path string, read Read, extra ...string) (*Interface, error) {
	src, err := read(path)
	if err != nil {
		return nil, err
	}
	f, err := Parse(path, src)
	if err != nil {
		return nil, err
	}
	if f.Iface == nil {
		return nil, errorf(Pos{path, 1, 1}, "the file has types only; expected an interface")
	}
	l := loader{read: read, files: map[string]*scope{}}
	s, err := l.scope(f, path, extra, nil)
	if err != nil {
		return nil, err
	}
	return check(f, s)
}

type loader struct {
	read  Read
	files map[string]*scope
}

// scope collects what a file declares and imports. stack has the files that
// import each other on the way here.
func (l *loader) scope(f *File, path string, extra []string, stack []string) (*scope, error) {
	s := &scope{decls: map[string]*binding{}}
	start := Pos{path, 1, 1}
	for _, x := range extra {
		if err := l.include(s, start, x, append(stack, path)); err != nil {
			return nil, err
		}
	}
	for _, i := range f.Imports {
		at, err := join(path, i.Path)
		if err != nil {
			return nil, errorf(i.Pos, "%v", err)
		}
		if err := l.include(s, i.Pos, at, append(stack, path)); err != nil {
			return nil, err
		}
	}
	own := map[string]*TypeDecl{}
	for _, d := range f.Types {
		if builtin[d.Name] != nil {
			return nil, errorf(d.Pos, "%q is a built-in type; expected another name", d.Name)
		}
		if first := own[d.Name]; first != nil {
			return nil, errorf(d.Pos, "type %q is declared twice; the first is at %v", d.Name, first.Pos)
		}
		own[d.Name] = d
		s.decls[d.Name] = &binding{decl: d, in: s}
	}
	return s, nil
}

// include adds what the file at path declares to s.
func (l *loader) include(s *scope, at Pos, path string, stack []string) error {
	for _, p := range stack {
		if p == path {
			return errorf(at, "%s imports itself", path)
		}
	}
	from := l.files[path]
	if from == nil {
		if len(l.files) == MaxImports {
			return errorf(at, "more than %d imported files", MaxImports)
		}
		src, err := l.read(path)
		if err != nil {
			return errorf(at, "%v", err)
		}
		f, err := Parse(path, src)
		if err != nil {
			return err
		}
		if f.Iface != nil {
			return errorf(at, "%s has an interface; expected a file of types only", path)
		}
		if from, err = l.scope(f, path, nil, stack); err != nil {
			return err
		}
		l.files[path] = from
	}
	for name, b := range from.decls {
		if have := s.decls[name]; have != nil && have != b {
			return errorf(at, "type %q comes from both %v and %v", name, have.decl.Pos, b.decl.Pos)
		}
		s.decls[name] = b
	}
	return nil
}

type checker struct {
	types []*Type
}

// check resolves what an interface uses, and that all declared types of its own
// file mean something.
func check(f *File, s *scope) (*Interface, error) {
	c := &checker{}
	i := &Interface{Decl: f.Iface, Errors: f.Iface.Errors}
	wrong := map[string]*ErrorDecl{}
	for _, d := range i.Errors {
		if first := wrong[d.Name]; first != nil {
			return nil, errorf(d.Pos, "error %q is declared twice; the first is at %v", d.Name, first.Pos)
		}
		wrong[d.Name] = d
	}
	seen := map[string]*MessageDecl{}
	for _, d := range f.Types {
		if _, err := c.declared(s.decls[d.Name], d.Pos); err != nil {
			return nil, err
		}
	}
	c.types = nil // only those that messages use are wanted, in the order of use
	if len(f.Iface.Messages) == 0 {
		return nil, errorf(f.Iface.Pos, "interface %q has no messages; expected at least one", f.Iface.Name)
	}
	for _, d := range f.Iface.Messages {
		if first := seen[d.Name]; first != nil {
			return nil, errorf(d.Pos, "message %q is declared twice; the first is at %v", d.Name, first.Pos)
		}
		seen[d.Name] = d
		if err := unique(d.Args, "argument"); err != nil {
			return nil, err
		}
		roles := []Role{OneWay}
		if d.Key == "rpc" {
			roles = []Role{Call, Reply}
		}
		for _, role := range roles {
			m, err := c.message(d, role, s)
			if err != nil {
				return nil, err
			}
			i.Messages = append(i.Messages, m)
			m.Num = len(i.Messages)
		}
		if len(i.Messages) > MaxMessages {
			return nil, errorf(d.Pos, "more than %d messages (an rpc counts for two)", MaxMessages)
		}
	}
	used := map[*Type]bool{}
	for _, m := range i.Messages {
		for _, fl := range m.Fields {
			i.use(fl.Type, used)
		}
	}
	return i, nil
}

// use appends t's declared types, innermost first.
func (i *Interface) use(t *Type, used map[*Type]bool) {
	if used[t] {
		return
	}
	used[t] = true
	if t.Elem != nil {
		i.use(t.Elem, used)
	}
	for _, f := range t.Fields {
		i.use(f.Type, used)
	}
	if t.Decl != nil {
		i.Types = append(i.Types, t)
	}
}

// unique checks the names of arguments or fields, and of their lengths.
func unique(args []*Arg, what string) error {
	names := map[string]Pos{}
	for _, a := range args {
		for _, n := range []struct {
			name string
			pos  Pos
		}{{a.Name, a.Pos}, {a.LenName, a.LenPos}} {
			if n.name == "" {
				continue
			}
			if first, twice := names[n.name]; twice {
				return errorf(n.pos, "%s %q is declared twice; the first is at %v", what, n.name, first)
			}
			names[n.name] = n.pos
		}
	}
	return nil
}

func (c *checker) message(d *MessageDecl, role Role, s *scope) (*Message, error) {
	m := &Message{Decl: d, Role: role}
	if role != OneWay {
		m.Min, m.Max = callBytes, callBytes
	}
	for _, a := range d.Args {
		if role == Call && a.Dir != In || role == Reply && a.Dir != Out {
			continue
		}
		f, err := c.field(a, s)
		if err != nil {
			return nil, err
		}
		m.Fields = append(m.Fields, f)
		m.Min += f.Type.Min
		m.Max += f.Type.Max
		m.Caps += f.Type.Caps
		if m.Max > MaxSize {
			return nil, errorf(a.Pos, "with %q the %s %q takes up to %d bytes; the limit is %d", a.Name, d.Key, d.Name, m.Max, MaxSize)
		}
		if m.Caps > MaxCaps {
			return nil, errorf(a.Pos, "the %s %q has more than %d caps", d.Key, d.Name, MaxCaps)
		}
	}
	return m, nil
}

// field resolves an argument, a struct's field or the meaning of an alias.
func (c *checker) field(a *Arg, s *scope) (*Field, error) {
	elem, err := c.named(a.Type, a.TypePos, s)
	if err != nil {
		return nil, err
	}
	f := &Field{Pos: a.Pos, Name: a.Name, Len: a.LenName, Type: elem}
	switch {
	case a.HasLen && elem.Under().Kind == Text:
		if f.Type, err = text(a.Len, a.LenPos); err != nil {
			return nil, err
		}
	case a.HasLen:
		if f.Type, err = array(elem, a.Len, a.LenPos); err != nil {
			return nil, err
		}
	case a.LenName != "":
		limit := uint64(max(1, DefaultMax/elem.Max))
		pos := a.LenPos
		if a.HasMax {
			limit, pos = a.Max, a.MaxPos
		}
		if f.Type, err = slice(elem, limit, pos); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// named finds what a type's name means in s.
func (c *checker) named(name string, at Pos, s *scope) (*Type, error) {
	if t := builtin[name]; t != nil {
		return t, nil
	}
	if b := s.decls[name]; b != nil {
		return c.declared(b, at)
	}
	if t := system[name]; t != nil {
		return t, nil
	}
	return nil, errorf(at, "unknown type %q; expected a built-in, declared or imported type", name)
}

func (c *checker) declared(b *binding, at Pos) (*Type, error) {
	if b.typ != nil {
		return b.typ, nil
	}
	d := b.decl
	if b.busy {
		return nil, errorf(at, "type %q contains itself; it would have no end", d.Name)
	}
	b.busy = true
	defer func() { b.busy = false }()
	t, err := c.make(d, b.in)
	if err != nil {
		return nil, err
	}
	if t.depth > MaxDepth {
		return nil, errorf(d.Pos, "type %q has more than %d structs and arrays within each other", d.Name, MaxDepth)
	}
	if t.Max > MaxSize {
		return nil, errorf(d.Pos, "type %q takes up to %d bytes; the limit is %d", d.Name, t.Max, MaxSize)
	}
	t.Name, t.Decl = d.Name, d
	b.typ = t
	return t, nil
}

func (c *checker) make(d *TypeDecl, s *scope) (*Type, error) {
	switch {
	case d.Fields != nil:
		t := &Type{Kind: Struct, depth: 1}
		if err := unique(d.Fields, "field"); err != nil {
			return nil, err
		}
		for _, a := range d.Fields {
			f, err := c.field(a, s)
			if err != nil {
				return nil, err
			}
			t.Fields = append(t.Fields, f)
			t.Min += f.Type.Min
			t.Max += f.Type.Max
			t.Caps += f.Type.Caps
			t.depth = max(t.depth, f.Type.depth+1)
		}
		return t, nil
	case d.Values != nil:
		names := map[string]Pos{}
		for _, v := range d.Values {
			if first, twice := names[v.Name]; twice {
				return nil, errorf(v.Pos, "value %q is declared twice; the first is at %v", v.Name, first)
			}
			names[v.Name] = v.Pos
		}
		return &Type{Kind: Enum, Values: d.Values, Min: 4, Max: 4}, nil
	}
	f, err := c.field(d.Of, s)
	if err != nil {
		return nil, err
	}
	if f.Type.Decl == nil && d.Of.HasLen {
		t := *f.Type
		return &t, nil // the array or text itself gets the name
	}
	return &Type{Kind: Alias, Elem: f.Type, Min: f.Type.Min, Max: f.Type.Max, Caps: f.Type.Caps, depth: f.Type.depth}, nil
}

func text(limit uint64, at Pos) (*Type, error) {
	if err := length(limit, 1, at); err != nil {
		return nil, err
	}
	return &Type{Kind: Text, Limit: int(limit), Min: 4, Max: 4 + int(limit)}, nil
}

func slice(elem *Type, limit uint64, at Pos) (*Type, error) {
	if elem.Caps > 0 {
		return nil, errorf(at, "an array of caps needs a fixed length; expected a number in [ ]")
	}
	if err := length(limit, elem.Max, at); err != nil {
		return nil, err
	}
	return &Type{Kind: Slice, Elem: elem, Limit: int(limit), Min: 4, Max: 4 + int(limit)*elem.Max, depth: elem.depth + 1}, nil
}

func array(elem *Type, n uint64, at Pos) (*Type, error) {
	if err := length(n, elem.Max, at); err != nil {
		return nil, err
	}
	return &Type{Kind: Array, Elem: elem, Len: int(n), Min: int(n) * elem.Min, Max: int(n) * elem.Max,
		Caps: int(n) * elem.Caps, depth: elem.depth + 1}, nil
}

// length checks a number of elements of so many bytes each.
func length(n uint64, each int, at Pos) error {
	if n == 0 {
		return errorf(at, "the length is 0; expected at least 1")
	}
	if limit := uint64(MaxSize / max(1, each)); n > limit {
		return errorf(at, "the length %d is over the limit of %d for elements of %d bytes", n, limit, each)
	}
	return nil
}

// join is where an import leads: beside the file that has it.
func join(from, name string) (string, error) {
	if name == "" || path.IsAbs(name) {
		return "", fmt.Errorf("expected a file's name relative to this file, found %q", name)
	}
	return path.Join(path.Dir(from), name), nil
}
